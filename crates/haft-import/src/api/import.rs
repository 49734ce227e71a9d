//! The options and the result of an import.

use std::collections::BTreeSet;

use haft_core::implementation::Auth;
use haft_core::name::BundleSlug;
use haft_core::problem::{Problem, excerpt};
use haft_core::spec::ToolSpec;

use super::filter::OperationFilter;

/// The default maximum size of a document, in bytes.
pub const MAX_DOCUMENT: usize = 32 * 1024 * 1024;

/// The limits of an import.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The maximum size of the document, in bytes.
    pub bytes: usize,
    /// The maximum number of imported operations.
    pub operations: usize,
    /// The maximum total size of the schemas of all tools, in bytes; shared schemas are copied for each operation.
    pub schemas: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { bytes: MAX_DOCUMENT, operations: 5000, schemas: 64 * 1024 * 1024 }
    }
}

impl Limits {
    /// Rejects a document that is too large.
    pub(crate) fn check_size(&self, bytes: usize) -> Result<(), Problem> {
        if bytes <= self.bytes {
            return Ok(());
        }
        let message = format!(
            "the document has {bytes} bytes; the limit is {} (`import.max_document_bytes`)",
            self.bytes
        );
        Err(Problem::new("", "too_large", message))
    }

    /// Rejects schemas that are too large together.
    pub(crate) fn check_schemas(&self, bytes: usize) -> Result<(), Problem> {
        if bytes <= self.schemas {
            return Ok(());
        }
        let message = format!(
            "the schemas of the tools exceed the limit of {} bytes; select fewer operations",
            self.schemas
        );
        Err(Problem::new("paths", "too_large", message))
    }
}

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
pub struct ApiImport {
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

impl ApiImport {
    /// Returns the names of the secrets that the tools need.
    pub fn secrets(&self) -> BTreeSet<&str> {
        self.tools.iter().flat_map(|tool| &tool.secrets).map(String::as_str).collect()
    }

    /// Returns the base URLs of the tools.
    pub fn servers(&self) -> BTreeSet<&str> {
        self.tools.iter().map(|tool| tool.server.as_str()).collect()
    }
}

/// What the filters read of an operation.
pub(crate) trait Selectable {
    /// `GET /pets/{id}`.
    fn key(&self) -> &str;
    /// Its id, if it has one.
    fn id(&self) -> Option<&str>;
    /// Its path.
    fn path(&self) -> &str;
    /// Its tags.
    fn tags(&self) -> Vec<&str>;
}

/// Returns the operations that match the filters; an error if there is none, or there are too many.
pub(crate) fn select<'a, T: Selectable>(
    all: &'a [T],
    options: &ImportOptions,
) -> Result<Vec<&'a T>, Problem> {
    if all.is_empty() {
        return Err(Problem::new("paths", "no_operations", "the document has no operations"));
    }
    let selected: Vec<&T> = all.iter().filter(|operation| options.selection.matches(*operation)).collect();
    if selected.is_empty() {
        let tags: BTreeSet<&str> = all.iter().flat_map(Selectable::tags).collect();
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
    Ok(selected)
}
