//! From one operation to one tool.

use serde_json::{Map, Value, json};

use super::arguments::Arguments;
use super::document::{Document, Operation};
use super::import::{ImportOptions, ImportedOperation};
use super::schema::{Budget, Converter, Patterns, References};
use super::security::{self, Proof};
use super::servers::{self, Bases, ServerError};
use super::text::{clean, line};
use super::{body, merge, parameters, response};
use crate::check::{MAX_ENTRIES, MAX_WORDS};
use haft_core::implementation::{ApiKeyLocation, Auth, Http, HttpRequest, Implementation, TextStyle};
use haft_core::name::{BundleSlug, ToolName};
use haft_core::problem::{Problem, join};
use haft_core::schema::Schema;
use haft_core::spec::{Origin, ToolSpec};

/// The most bytes of a description: a model reads those of all tools.
const MAX_DESCRIPTION: usize = 4000;
/// What schemas may come to with every reference put in.
const PUT_IN: Budget = Budget { nodes: 3000, bytes: 150_000 };
/// What they may come to at all.
const AT_ALL: Budget = Budget { nodes: 8000, bytes: 300_000 };

/// Why an operation does not become a tool.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum SkipError {
    #[error("its body cannot be read: {0}")]
    Body(String),
    #[error("its body is {0}, which an `http` tool cannot send")]
    Media(String),
    #[error(transparent)]
    Server(#[from] ServerError),
}

/// What all operations of an import share.
pub(super) struct Context<'d> {
    pub(super) document: &'d Document,
    pub(super) patterns: &'d Patterns,
    pub(super) options: &'d ImportOptions,
    pub(super) title: &'d str,
    pub(super) bundle: &'d BundleSlug,
}

/// A tool that is being made.
pub(super) struct Draft<'d> {
    pub(super) converter: Converter<'d>,
    pub(super) arguments: Arguments,
    pub(super) request: HttpRequest,
    pub(super) cookies: Vec<String>,
    /// What the schemas of the arguments refer to.
    definitions: Map<String, Value>,
}

impl Draft<'_> {
    /// Notes a doubt about the operation.
    pub(super) fn doubt(&mut self, code: &str, message: impl Into<String>) {
        self.converter.warn("", code, message);
    }

    /// Notes how the lists and maps of the argument with this template are spelled.
    pub(super) fn style_text(&mut self, template: &str, style: Option<TextStyle>) {
        let name = template.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
        if let (Some(name), Some(style)) = (name, style) {
            self.request.text_styles.insert(name.to_owned(), style);
        }
    }

    pub(super) fn content_type(&mut self, media: &str) {
        self.header("Content-Type", media.to_owned());
    }

    /// Sets a header in place of one of the same name in any spelling.
    fn header(&mut self, name: &str, value: String) {
        self.request.headers.retain(|known, _| !known.eq_ignore_ascii_case(name));
        self.request.headers.insert(name.to_owned(), value);
    }
}

/// Makes the tool of an operation.
pub(super) fn tool<'d>(
    context: &Context<'d>,
    operation: &Operation<'d>,
    name: ToolName,
) -> Result<ImportedOperation, SkipError> {
    let options = context.options;
    let bases = Bases { given: options.base_url.as_deref(), fetched: options.document_url.as_deref() };
    let base = servers::base(context.document, operation, bases)?;
    let mut proof = match &options.auth {
        Some(auth) => Proof { auth: Some(auth.clone()), secrets: named_in(auth), ..Proof::default() },
        None => security::proof(context.document, operation, context.bundle.as_str()),
    };
    let answer = response::read(context.document, operation);
    let (mut draft, path) = match attempt(context, operation, &proof, References::PutIn)? {
        // Putting all references in came to too much.
        (draft, _) if draft.converter.cut => attempt(context, operation, &proof, References::Keep)?,
        fits => fits,
    };
    draft.request.method = operation.method.to_ascii_uppercase();
    draft.request.url = format!("{base}{path}");
    if let Some(accept) = answer.accept {
        draft.header("Accept", accept);
    }
    let auth = prove(&mut proof, &mut draft);
    let mut warnings = std::mem::take(&mut draft.converter.warnings);
    warnings.append(&mut proof.warnings);
    warnings.append(&mut draft.arguments.renamed);
    if draft.converter.cut {
        let message = "the schemas are too large or too deep; parts of them accept anything";
        warnings.push(Problem::new("input_schema", "schema_cut", message));
    }
    let http = Http { request: draft.request, auth, ..Http::default() };
    let mut spec = ToolSpec::new(name, Implementation::Http(Box::new(http)));
    spec.input_schema = checked(draft.arguments.schema(draft.definitions), &mut warnings);
    spec.output_schema =
        Some(answer.schema).filter(|schema| Schema::compile("", schema).is_ok()).unwrap_or_else(|| json!({}));
    describe(context, operation, &mut spec, &mut warnings);
    Ok(ImportedOperation { spec, warnings, server: base, secrets: proof.secrets })
}

fn attempt<'d>(
    context: &Context<'d>,
    operation: &Operation<'d>,
    proof: &Proof,
    references: References,
) -> Result<(Draft<'d>, String), SkipError> {
    let budget = if references == References::PutIn { PUT_IN } else { AT_ALL };
    let mut draft = Draft {
        converter: Converter::new(context.document, context.patterns, references, budget),
        arguments: Arguments::default(),
        request: HttpRequest::default(),
        cookies: Vec::new(),
        definitions: Map::new(),
    };
    for secret in &proof.secrets {
        draft.arguments.reserve(secret);
    }
    let path = parameters::read(context.document, operation, &mut draft);
    body::read(context.document, operation, &mut draft)?;
    draft.definitions = draft.converter.definitions("body");
    Ok((draft, path))
}

/// Puts the proof into the request; returns what becomes the tool's `auth`.
fn prove(proof: &mut Proof, draft: &mut Draft<'_>) -> Option<Auth> {
    for (name, value) in std::mem::take(&mut proof.headers) {
        draft.header(&name, value);
    }
    for (name, value) in std::mem::take(&mut proof.query) {
        draft.request.query.insert(name, json!(value));
    }
    let own: Vec<String> = proof.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
    if !own.is_empty() && draft.cookies.is_empty() && proof.auth.is_none() {
        return Some(Auth::ApiKey {
            name: "Cookie".to_owned(),
            value: own.join("; "),
            place: ApiKeyLocation::Header,
        });
    }
    let cookies: Vec<String> = own.into_iter().chain(std::mem::take(&mut draft.cookies)).collect();
    if !cookies.is_empty() {
        draft.header("Cookie", cookies.join("; "));
    }
    proof.auth.take()
}

/// Returns a schema that compiles: where the document's does not, the arguments stay and their rules go.
fn checked(schema: Value, warnings: &mut Vec<Problem>) -> Value {
    let Err(problems) = Schema::compile("input_schema", &schema) else { return schema };
    let first: Vec<Problem> = problems.into_iter().take(1).collect();
    let message = format!("the schemas cannot be used, so that arguments are not checked: {}", join(&first));
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

/// Adds the words: title, description, category, tags, and where the tool came from.
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
        warnings.push(Problem::new("", "deprecated", "the document says that this operation is deprecated"));
    }
    words
        .extend([summary, description].iter().filter(|text| !text.is_empty()).map(|text| (*text).to_owned()));
    if summary == description {
        words.dedup();
    }
    if summary.is_empty() && description.is_empty() {
        words.push(format!("`{}` of {}", operation.key, context.title));
    }
    spec.description = clean(&words.join("\n\n"), MAX_DESCRIPTION);
    // A title that is the name is none.
    spec.display_name =
        Some(line(summary, MAX_WORDS)).filter(|title| title != spec.name.as_str()).unwrap_or_default();
    let mut tags: Vec<String> = Vec::new();
    for tag in operation.tags().map(|tag| line(tag, MAX_WORDS)).filter(|tag| !tag.is_empty()) {
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
        said: merge::digests(spec),
    });
}

/// Returns the names of the secrets in an `auth`.
fn named_in(auth: &Auth) -> Vec<String> {
    let text = serde_json::to_string(auth).unwrap_or_default();
    let names = text.split("${").skip(1).filter_map(|part| part.split_once('}'));
    names.map(|(name, _)| name.trim().to_owned()).collect()
}
