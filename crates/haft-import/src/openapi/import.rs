//! Imports a document.

use std::collections::BTreeSet;

use super::document::{Document, Limits, Operation};
use super::filter::OperationFilter;
use super::names;
use super::operation::{Context, SkipError, tool};
use super::schema::PatternCache;
use super::servers;
use haft_core::implementation::Auth;
use haft_core::name::BundleSlug;
use haft_core::problem::{Problem, excerpt};
use haft_core::spec::ToolSpec;

/// Import options.
#[derive(Debug, Clone, Default)]
pub struct ImportOptions {
    /// The base URL, instead of the servers of the document.
    pub base_url: Option<String>,
    /// The URL of the document, to resolve relative server URLs.
    pub document_url: Option<String>,
    /// The authentication, instead of the security schemes of the document.
    pub auth: Option<Auth>,
    /// The bundle of the tools, which is also the prefix of secret names; by default named after the title.
    pub bundle: Option<BundleSlug>,
    /// The operations to import.
    pub selection: OperationFilter,
    /// The limits.
    pub limits: Limits,
}

/// One imported tool.
#[derive(Debug, Clone, PartialEq)]
pub struct ImportedOperation {
    /// The definition; its `origin` is the operation.
    pub spec: ToolSpec,
    /// Warnings.
    pub warnings: Vec<Problem>,
    /// The base URL of its requests.
    pub server: String,
    /// The names of the required secrets.
    pub secrets: Vec<String>,
}

/// An operation that cannot be imported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkippedOperation {
    /// The operation, such as `POST /files`.
    pub operation: String,
    /// The reason.
    pub reason: String,
}

/// The result of an import.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenApiImport {
    /// The title of the document.
    pub title: String,
    /// The version of the described API.
    pub version: String,
    /// The bundle of the tools.
    pub bundle: BundleSlug,
    /// All operations of the document, selected or not, with their `operationId`.
    pub operations: Vec<(String, Option<String>)>,
    /// The tools of the selected operations.
    pub tools: Vec<ImportedOperation>,
    /// The selected operations that cannot be imported.
    pub skipped: Vec<SkippedOperation>,
    /// Warnings about the document.
    pub warnings: Vec<Problem>,
}

impl OpenApiImport {
    /// Returns the names of the secrets that the tools need.
    pub fn secrets(&self) -> BTreeSet<&str> {
        self.tools.iter().flat_map(|tool| &tool.secrets).map(String::as_str).collect()
    }

    /// Returns the base URLs of the tools.
    pub fn servers(&self) -> BTreeSet<&str> {
        self.tools.iter().map(|tool| tool.server.as_str()).collect()
    }
}

/// Imports an OpenAPI 3.0 or 3.1 document in JSON or YAML.
///
/// ```
/// use haft_import::openapi::{ImportOptions, read};
///
/// let text = "openapi: 3.1.0\ninfo: {title: Pets, version: '1'}\nservers: [{url: https://pets.example}]\n\
///             paths:\n  /pets/{id}:\n    get: {operationId: getPet, summary: Finds a pet}\n";
/// let import = read(text, &ImportOptions::default()).unwrap();
/// assert_eq!(import.tools[0].spec.name.as_str(), "getPet");
/// ```
pub fn read(text: &str, options: &ImportOptions) -> Result<OpenApiImport, Problem> {
    if let Some(given) = &options.base_url {
        servers::check_given(given)?;
    }
    let document = Document::read(text, options.limits)?;
    let title = document.title();
    let bundle = options.bundle.clone().unwrap_or_else(|| names::bundle_slug(&title));
    let (operations, warnings) = document.operations();
    let selected: Vec<&Operation<'_>> =
        operations.iter().filter(|operation| options.selection.matches(operation)).collect();
    check_count(&operations, &selected, options)?;
    let names = names::tool_names(&selected)
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
        if total > options.limits.schemas {
            let limit = options.limits.schemas;
            let message = format!(
                "the schemas of the tools exceed the limit of {limit} bytes; select fewer operations"
            );
            return Err(Problem::new("paths", "too_large", message));
        }
    }
    common_error(&tools, &errors)?;
    let operations = operations.iter().map(|o| (o.key.clone(), o.id().map(str::to_owned))).collect();
    Ok(OpenApiImport { title, version: document.version(), bundle, operations, tools, skipped, warnings })
}

fn check_count(
    all: &[Operation<'_>],
    selected: &[&Operation<'_>],
    options: &ImportOptions,
) -> Result<(), Problem> {
    if all.is_empty() {
        return Err(Problem::new("paths", "no_operations", "the document has no operations"));
    }
    if selected.is_empty() {
        let tags: BTreeSet<&str> = all.iter().flat_map(Operation::tags).collect();
        let tags: Vec<String> =
            tags.into_iter().take(20).map(|tag| format!("`{}`", excerpt(tag, 40))).collect();
        let tags =
            if tags.is_empty() { String::new() } else { format!("; available tags: {}", tags.join(", ")) };
        let message =
            format!("no tools were imported: none of the {} operations matches the filters{tags}", all.len());
        let OperationFilter { tags, paths, include, exclude } = &options.selection;
        let lists = [("tags", tags), ("paths", paths), ("include", include), ("exclude", exclude)];
        let field = lists.into_iter().find(|(_, list)| !list.is_empty()).map_or("paths", |(name, _)| name);
        return Err(Problem::new(field, "nothing_chosen", message));
    }
    let limit = options.limits.operations;
    if selected.len() > limit {
        let message = format!(
            "{} operations are selected; the limit is {limit}. Select fewer by tag, path or pattern",
            selected.len()
        );
        return Err(Problem::new("paths", "too_large", message));
    }
    Ok(())
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
