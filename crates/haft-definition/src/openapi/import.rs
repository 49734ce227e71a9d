//! From a document to tools.

use std::collections::BTreeSet;

use super::document::{Document, Limits, Operation};
use super::names;
use super::operation::{Context, SkipError, tool};
use super::schema::Patterns;
use super::select::OperationFilter;
use super::servers;
use haft_core::implementation::Auth;
use haft_core::name::BundleSlug;
use haft_core::problem::{Problem, excerpt};
use haft_core::spec::ToolSpec;

/// How a document is read.
#[derive(Debug, Clone, Default)]
pub struct ImportOptions {
    /// Where the operations are, in place of what the document says.
    pub base_url: Option<String>,
    /// Where the document was fetched from, which relative servers are relative to.
    pub document_url: Option<String>,
    /// How all operations prove who sends them, in place of what the document says.
    pub auth: Option<Auth>,
    /// The bundle that the tools go to, with whose name the names of secrets begin; one after the title of the document
    /// where none is given.
    pub bundle: Option<BundleSlug>,
    /// Which operations are wanted.
    pub selection: OperationFilter,
    /// What the document may cost.
    pub limits: Limits,
}

/// One tool of a document.
#[derive(Debug, Clone, PartialEq)]
pub struct ImportedOperation {
    /// What it is; its `origin` names the operation.
    pub spec: ToolSpec,
    /// Doubts.
    pub warnings: Vec<Problem>,
    /// Where it sends its request.
    pub server: String,
    /// The secrets that it needs.
    pub secrets: Vec<String>,
}

/// An operation that does not become a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkippedOperation {
    /// The operation, such as `POST /files`.
    pub operation: String,
    /// Why.
    pub reason: String,
}

/// What was read.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenApiImport {
    /// The title of the document.
    pub title: String,
    /// The version of the described API.
    pub version: String,
    /// The bundle that the tools go to.
    pub bundle: BundleSlug,
    /// All operations that the document has, wanted or not, with their own names.
    pub operations: Vec<(String, Option<String>)>,
    /// The tools of those that were wanted.
    pub tools: Vec<ImportedOperation>,
    /// Those that were wanted and cannot be tools.
    pub skipped: Vec<SkippedOperation>,
    /// Doubts about the document.
    pub warnings: Vec<Problem>,
}

impl OpenApiImport {
    /// Returns the secrets that the tools need.
    pub fn secrets(&self) -> BTreeSet<&str> {
        self.tools.iter().flat_map(|tool| &tool.secrets).map(String::as_str).collect()
    }

    /// Returns where the tools send their requests.
    pub fn servers(&self) -> BTreeSet<&str> {
        self.tools.iter().map(|tool| tool.server.as_str()).collect()
    }
}

/// Reads an OpenAPI 3.0 or 3.1 document, JSON or YAML.
///
/// ```
/// use haft_definition::openapi::{Options, read};
///
/// let text = "openapi: 3.1.0\ninfo: {title: Pets, version: '1'}\nservers: [{url: https://pets.example}]\n\
///             paths:\n  /pets/{id}:\n    get: {operationId: getPet, summary: Finds a pet}\n";
/// let import = read(text, &Options::default()).unwrap();
/// assert_eq!(import.tools[0].spec.name.as_str(), "getPet");
/// ```
pub fn read(text: &str, options: &ImportOptions) -> Result<OpenApiImport, Problem> {
    if let Some(given) = &options.base_url {
        servers::check_given(given)?;
    }
    let document = Document::read(text, options.limits)?;
    let title = document.title();
    let bundle = options.bundle.clone().unwrap_or_else(|| names::bundle_of(&title));
    let (operations, warnings) = document.operations();
    let wanted: Vec<&Operation<'_>> =
        operations.iter().filter(|operation| options.selection.takes(operation)).collect();
    check_count(&operations, &wanted, options)?;
    let names =
        names::of_tools(&wanted).map_err(|error| Problem::new("paths", "invalid_name", error.to_string()))?;
    let patterns = Patterns::default();
    let context =
        Context { document: &document, patterns: &patterns, options, title: &title, bundle: &bundle };
    let (mut tools, mut skipped, mut faults) = (Vec::new(), Vec::new(), Vec::new());
    let mut total = 0_usize;
    for (operation, name) in wanted.iter().zip(names) {
        match tool(&context, operation, name) {
            Ok(imported) => {
                total += serde_json::to_string(&imported.spec.input_schema).map_or(0, |text| text.len());
                tools.push(imported);
            }
            Err(error) => {
                skipped
                    .push(SkippedOperation { operation: operation.key.clone(), reason: error.to_string() });
                faults.push(error);
            }
        }
        if total > options.limits.schemas {
            let most = options.limits.schemas;
            let message =
                format!("the schemas of the tools come to more than {most} bytes; choose fewer operations");
            return Err(Problem::new("paths", "too_large", message));
        }
    }
    same_fault(&tools, &faults)?;
    let operations = operations.iter().map(|o| (o.key.clone(), o.id().map(str::to_owned))).collect();
    Ok(OpenApiImport { title, version: document.version(), bundle, operations, tools, skipped, warnings })
}

fn check_count(
    all: &[Operation<'_>],
    wanted: &[&Operation<'_>],
    options: &ImportOptions,
) -> Result<(), Problem> {
    if all.is_empty() {
        return Err(Problem::new("paths", "no_operations", "the document describes no operations"));
    }
    if wanted.is_empty() {
        let tags: BTreeSet<&str> = all.iter().flat_map(Operation::tags).collect();
        let tags: Vec<String> =
            tags.into_iter().take(20).map(|tag| format!("`{}`", excerpt(tag, 40))).collect();
        let tags =
            if tags.is_empty() { String::new() } else { format!("; its tags are {}", tags.join(", ")) };
        let message = format!("none of the {} operations was chosen{tags}", all.len());
        let OperationFilter { tags, paths, include, exclude } = &options.selection;
        let lists = [("tags", tags), ("paths", paths), ("include", include), ("exclude", exclude)];
        let field = lists.into_iter().find(|(_, list)| !list.is_empty()).map_or("paths", |(name, _)| name);
        return Err(Problem::new(field, "nothing_chosen", message));
    }
    let most = options.limits.operations;
    if wanted.len() > most {
        let message = format!(
            "{} operations were chosen; one import takes at most {most}. Choose fewer by tag, path or pattern",
            wanted.len()
        );
        return Err(Problem::new("paths", "too_large", message));
    }
    Ok(())
}

/// Where no operation became a tool and all for one reason, that reason is the fault of the document.
fn same_fault(tools: &[ImportedOperation], faults: &[SkipError]) -> Result<(), Problem> {
    match faults.split_first() {
        Some((first @ SkipError::Server(_), rest))
            if tools.is_empty() && rest.iter().all(|other| other == first) =>
        {
            Err(Problem::new("servers", "no_server", first.to_string()))
        }
        _ => Ok(()),
    }
}
