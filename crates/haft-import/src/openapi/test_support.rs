//! Helpers for tests with small documents.

use haft_definition::check;
use serde_json::{Value, json};

use super::read;
use crate::api::{ApiImport, ImportOptions, ImportedOperation};
use haft_core::implementation::{Http, Implementation};

/// Returns a document of a version with paths and components.
pub(super) fn document(version: &str, paths: &Value, components: &Value) -> Value {
    json!({
        "openapi": version,
        "info": {"title": "Pets", "version": "1"},
        "servers": [{"url": "https://pets.example/v1"}],
        "paths": paths,
        "components": components,
    })
}

/// Reads a document; every tool that comes of it can be stored.
pub(super) fn import(document: &Value, options: &ImportOptions) -> ApiImport {
    let import = read(&document.to_string(), options).unwrap();
    for tool in &import.tools {
        assert_eq!(check::definition(&tool.spec).errors, [], "{:#?}", tool.spec);
    }
    import
}

/// Returns the only tool of a document.
pub(super) fn only(document: &Value) -> ImportedOperation {
    let mut import = import(document, &ImportOptions::default());
    assert_eq!((import.tools.len(), import.skipped.len()), (1, 0), "{:?}", import.skipped);
    import.tools.remove(0)
}

/// Returns the tool of `POST /things` with a request body.
pub(super) fn post(version: &str, operation: &Value, components: &Value) -> ImportedOperation {
    only(&document(version, &json!({"/things": {"post": operation}}), components))
}

pub(super) fn http(imported: &ImportedOperation) -> &Http {
    let Implementation::Http(http) = &imported.spec.implementation else { panic!("not an http tool") };
    http
}

/// Returns the warnings, one per line.
pub(super) fn warnings_text(imported: &ImportedOperation) -> String {
    let lines = imported.warnings.iter().map(|warning| format!("{}: {warning}", warning.code));
    lines.collect::<Vec<_>>().join("\n")
}
