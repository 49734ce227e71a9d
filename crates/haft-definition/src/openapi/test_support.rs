//! Small documents, and what they are read to.

use serde_json::{Value, json};

use super::{ImportOptions, ImportedOperation, OpenApiImport, read};
use crate::check;
use haft_core::implementation::{Http, Implementation};

/// A document of that version with these paths and components.
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
pub(super) fn import(document: &Value, options: &ImportOptions) -> OpenApiImport {
    let import = read(&document.to_string(), options).unwrap();
    for tool in &import.tools {
        assert_eq!(check::definition(&tool.spec).errors, [], "{:#?}", tool.spec);
    }
    import
}

/// The only tool of a document.
pub(super) fn only(document: &Value) -> ImportedOperation {
    let mut import = import(document, &ImportOptions::default());
    assert_eq!((import.tools.len(), import.skipped.len()), (1, 0), "{:?}", import.skipped);
    import.tools.remove(0)
}

/// The tool of `POST /things` with this content.
pub(super) fn post(version: &str, operation: &Value, components: &Value) -> ImportedOperation {
    only(&document(version, &json!({"/things": {"post": operation}}), components))
}

pub(super) fn http(imported: &ImportedOperation) -> &Http {
    let Implementation::Http(http) = &imported.spec.implementation else { panic!("not an http tool") };
    http
}

/// The warnings, one per line.
pub(super) fn doubts(imported: &ImportedOperation) -> String {
    let lines = imported.warnings.iter().map(|warning| format!("{}: {warning}", warning.code));
    lines.collect::<Vec<_>>().join("\n")
}
