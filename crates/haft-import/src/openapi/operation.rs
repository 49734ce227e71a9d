//! Converts an operation to a tool.

use haft_definition::check::{MAX_ENTRIES, MAX_LABEL};
use serde_json::{Map, Value, json};

use super::arguments::Arguments;
use super::document::{Document, Operation};
use super::schema::{Budget, Converter, PatternCache, References};
use super::security::{self, Credentials};
use super::servers::{self, BaseUrls, ServerError};
use super::{body, parameters, response};
use crate::api::templates::{allow_uploads, secret_names};
use crate::api::text::{clean, clean_and_cut, line};
use crate::api::{ImportOptions, ImportedOperation, Selectable as _, digests};
use haft_core::implementation::{ApiKeyLocation, Auth, Http, HttpRequest, Implementation, TextStyle};
use haft_core::name::{BundleSlug, ToolName};
use haft_core::problem::{Problem, join};
use haft_core::schema::{RawSchema, Schema};
use haft_core::spec::{Origin, ToolSpec};

/// The maximum size of a description, in bytes: models read the descriptions of all tools.
const MAX_DESCRIPTION: usize = 4000;
/// The budget of schemas with all references inlined.
const INLINE_BUDGET: Budget = Budget { nodes: 3000, bytes: 150_000 };
/// The budget of schemas with references kept.
const MAX_BUDGET: Budget = Budget { nodes: 8000, bytes: 300_000 };

/// Why an operation is skipped.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum SkipError {
    #[error("invalid request body: {0}")]
    Body(String),
    #[error("unsupported request body {0}")]
    Media(String),
    #[error(transparent)]
    Server(#[from] ServerError),
}

/// The context that all operations of an import share.
pub(super) struct Context<'d> {
    pub(super) document: &'d Document,
    pub(super) patterns: &'d PatternCache,
    pub(super) options: &'d ImportOptions,
    pub(super) title: &'d str,
    pub(super) bundle: &'d BundleSlug,
}

/// A tool under construction.
pub(super) struct Draft<'d> {
    pub(super) converter: Converter<'d>,
    pub(super) arguments: Arguments,
    pub(super) request: HttpRequest,
    pub(super) cookies: Vec<String>,
    /// The definitions that the schemas of the arguments refer to.
    definitions: Map<String, Value>,
}

impl Draft<'_> {
    /// Adds a warning about the operation.
    pub(super) fn warn(&mut self, code: &str, message: impl Into<String>) {
        self.converter.warn("", code, message);
    }

    /// Sets how lists and maps of the argument with this template are serialized.
    pub(super) fn style_text(&mut self, template: &str, style: Option<TextStyle>) {
        let name = template.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
        if let (Some(name), Some(style)) = (name, style) {
            self.request.text_styles.insert(name.to_owned(), style);
        }
    }

    pub(super) fn content_type(&mut self, media: &str) {
        self.header("Content-Type", media.to_owned());
    }

    /// Sets a header; replaces one with the same name, ignoring case.
    fn header(&mut self, name: &str, value: String) {
        self.request.headers.retain(|known, _| !known.eq_ignore_ascii_case(name));
        self.request.headers.insert(name.to_owned(), value);
    }
}

/// Builds the tool of an operation.
pub(super) fn tool<'d>(
    context: &Context<'d>,
    operation: &Operation<'d>,
    name: ToolName,
) -> Result<ImportedOperation, SkipError> {
    let options = context.options;
    let base_urls = BaseUrls { given: options.base_url.as_deref(), fetched: options.document_url.as_deref() };
    let base = servers::base(context.document, operation, base_urls)?;
    let mut credentials = match &options.auth {
        Some(auth) => {
            Credentials { auth: Some(auth.clone()), secrets: secret_names(auth), ..Credentials::default() }
        }
        None => security::credentials(context.document, operation, context.bundle.as_str()),
    };
    let response_info = response::read(context.document, operation);
    let (mut draft, path) = match attempt(context, operation, &credentials, References::Inline)? {
        // Inlining all references exceeded the budget.
        (draft, _) if draft.converter.cut => attempt(context, operation, &credentials, References::Keep)?,
        fits => fits,
    };
    draft.request.method = operation.method.to_ascii_uppercase();
    draft.request.url = format!("{base}{path}");
    if let Some(accept) = response_info.accept {
        draft.header("Accept", accept);
    }
    let auth = apply_credentials(&mut credentials, &mut draft);
    let mut warnings = std::mem::take(&mut draft.converter.warnings);
    warnings.append(&mut credentials.warnings);
    warnings.append(&mut draft.arguments.renamed);
    if draft.converter.cut {
        let message = "the schemas are too large or too deep; some parts accept any value";
        warnings.push(Problem::new("input_schema", "schema_cut", message));
    }
    let http = Http { request: draft.request, auth, ..Http::default() };
    let mut spec = ToolSpec::new(name, Implementation::Http(Box::new(http)));
    spec.input_schema = checked(draft.arguments.schema(draft.definitions), &mut warnings).into();
    spec.output_schema = Some(response_info.schema)
        .filter(|schema| Schema::compile("", schema).is_ok())
        .map(RawSchema::from)
        .unwrap_or_default();
    allow_uploads(&mut spec);
    describe(context, operation, &mut spec, &mut warnings);
    Ok(ImportedOperation { spec, warnings, server: base, secrets: credentials.secrets })
}

fn attempt<'d>(
    context: &Context<'d>,
    operation: &Operation<'d>,
    credentials: &Credentials,
    references: References,
) -> Result<(Draft<'d>, String), SkipError> {
    let budget = if references == References::Inline { INLINE_BUDGET } else { MAX_BUDGET };
    let mut draft = Draft {
        converter: Converter::new(context.document, context.patterns, references, budget),
        arguments: Arguments::default(),
        request: HttpRequest::default(),
        cookies: Vec::new(),
        definitions: Map::new(),
    };
    for secret in &credentials.secrets {
        draft.arguments.reserve(secret);
    }
    let path = parameters::read(context.document, operation, &mut draft);
    body::read(context.document, operation, &mut draft)?;
    draft.definitions = draft.converter.definitions("body");
    Ok((draft, path))
}

/// Adds the credentials to the request; returns the `auth` of the tool.
fn apply_credentials(credentials: &mut Credentials, draft: &mut Draft<'_>) -> Option<Auth> {
    for (name, value) in std::mem::take(&mut credentials.headers) {
        draft.header(&name, value);
    }
    for (name, value) in std::mem::take(&mut credentials.query) {
        draft.request.query.insert(name, json!(value));
    }
    let own: Vec<String> =
        credentials.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
    if !own.is_empty() && draft.cookies.is_empty() && credentials.auth.is_none() {
        return Some(Auth::ApiKey {
            name: "Cookie".to_owned(),
            value: own.join("; "),
            location: ApiKeyLocation::Header,
        });
    }
    let cookies: Vec<String> = own.into_iter().chain(std::mem::take(&mut draft.cookies)).collect();
    if !cookies.is_empty() {
        draft.header("Cookie", cookies.join("; "));
    }
    credentials.auth.take()
}

/// Returns a valid schema: if the converted one does not compile, only names and descriptions are kept.
fn checked(schema: Value, warnings: &mut Vec<Problem>) -> Value {
    let Err(problems) = Schema::compile("input_schema", &schema) else { return schema };
    let first: Vec<Problem> = problems.into_iter().take(1).collect();
    let message = format!("arguments are not validated, because the schemas are invalid: {}", join(&first));
    warnings.push(Problem::new("input_schema", "schema_dropped", message));
    let mut loose = Map::new();
    for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        let description = property.get("description").filter(|text| text.is_string());
        loose
            .insert(name.clone(), description.map_or_else(|| json!({}), |text| json!({"description": text})));
    }
    let mut out = json!({"type": "object", "properties": loose, "additionalProperties": false});
    if let (Value::Object(out), Some(required)) = (&mut out, schema.get("required")) {
        out.insert("required".to_owned(), required.clone());
    }
    out
}

/// Sets the display name, description, category, tags and origin.
fn describe(
    context: &Context<'_>,
    operation: &Operation<'_>,
    spec: &mut ToolSpec,
    warnings: &mut Vec<Problem>,
) {
    let (summary, description) = (operation.text("summary"), operation.text("description"));
    let mut words = Vec::new();
    if operation.is_deprecated() {
        words.push("Deprecated.".to_owned());
        warnings.push(Problem::new("", "deprecated", "the operation is deprecated"));
    }
    words
        .extend([summary, description].iter().filter(|text| !text.is_empty()).map(|text| (*text).to_owned()));
    if summary == description {
        words.dedup();
    }
    if summary.is_empty() && description.is_empty() {
        words.push(format!("`{}` of {}", operation.key, context.title));
    }
    let (description, is_cut) = clean_and_cut(&words.join("\n\n"), MAX_DESCRIPTION);
    spec.description = description;
    if is_cut {
        let message = format!("the description is cut to {MAX_DESCRIPTION} bytes");
        warnings.push(Problem::new("description", "description_cut", message));
    }
    // A display name that repeats the name is redundant.
    spec.display_name =
        Some(line(summary, MAX_LABEL)).filter(|title| title != spec.name.as_str()).unwrap_or_default();
    let mut tags: Vec<String> = Vec::new();
    for tag in operation.tags().into_iter().map(|tag| line(tag, MAX_LABEL)).filter(|tag| !tag.is_empty()) {
        if tags.len() < MAX_ENTRIES && !tags.contains(&tag) {
            tags.push(tag);
        }
    }
    spec.category = tags.first().cloned().unwrap_or_default();
    spec.tags = tags;
    spec.origin = Some(Origin {
        document: context.title.to_owned(),
        operation: operation.key.clone(),
        operation_id: operation.id().map(|id| clean(id, 200)),
        digests: digests(spec),
    });
}
