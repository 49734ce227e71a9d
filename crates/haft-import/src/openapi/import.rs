//! Imports a document.

use super::document::Document;
use super::operation::{Context, SkipError, tool};
use super::schema::PatternCache;
use super::servers;
use crate::api::{
    ApiImport, ImportOptions, ImportedOperation, Selectable as _, SkippedOperation, names, select,
};
use haft_core::problem::Problem;

/// Imports an OpenAPI 3.0, 3.1 or 3.2 document, or a Swagger 2.0 document, in JSON or YAML.
///
/// ```
/// use haft_import::{api::ImportOptions, openapi::read};
///
/// let text = "openapi: 3.1.0\ninfo: {title: Pets, version: '1'}\nservers: [{url: https://pets.example}]\n\
///             paths:\n  /pets/{id}:\n    get: {operationId: getPet, summary: Finds a pet}\n";
/// let import = read(text, &ImportOptions::default()).unwrap();
/// assert_eq!(import.tools[0].spec.name.as_str(), "getPet");
/// ```
pub fn read(text: &str, options: &ImportOptions) -> Result<ApiImport, Problem> {
    if let Some(given) = &options.base_url {
        servers::check_given(given)?;
    }
    let document = Document::read(text, options)?;
    let title = document.title();
    let bundle = options.bundle.clone().unwrap_or_else(|| names::bundle_slug(&title));
    let (operations, warnings) = document.operations();
    let selected = select(&operations, options)?;
    let plain: Vec<(String, &str)> = selected
        .iter()
        .map(|operation| (names::plain(operation.id(), operation.method, operation.path), operation.key()))
        .collect();
    let names = names::tool_names(&plain)
        .map_err(|error| Problem::new("paths", "invalid_name", error.to_string()))?;
    let patterns = PatternCache::default();
    let context =
        Context { document: &document, patterns: &patterns, options, title: &title, bundle: &bundle };
    let (mut tools, mut skipped, mut errors) = (Vec::new(), Vec::new(), Vec::new());
    let mut total = 0_usize;
    for (operation, name) in selected.iter().zip(names) {
        match tool(&context, operation, name) {
            Ok(imported) => {
                total += imported.spec.input_schema.as_str().len();
                tools.push(imported);
            }
            Err(error) => {
                skipped
                    .push(SkippedOperation { operation: operation.key.clone(), reason: error.to_string() });
                errors.push(error);
            }
        }
        options.limits.check_schemas(total)?;
    }
    common_error(&tools, &errors)?;
    let operations = operations.iter().map(|o| (o.key.clone(), o.id().map(str::to_owned))).collect();
    Ok(ApiImport { title, version: document.version(), bundle, operations, tools, skipped, warnings })
}

/// If every operation was skipped for the same reason, that is an error of the document.
fn common_error(tools: &[ImportedOperation], errors: &[SkipError]) -> Result<(), Problem> {
    match errors.split_first() {
        Some((first @ SkipError::Server(_), rest))
            if tools.is_empty() && rest.iter().all(|other| other == first) =>
        {
            Err(Problem::new("servers", "no_server", first.to_string()))
        }
        _ => Ok(()),
    }
}
