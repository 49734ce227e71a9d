//! `POST /tools/{ref}/validate`: checks a definition without running it.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use haft_core::catalog::FileForm;
use haft_core::implementation::Kind;
use haft_core::name::BundleSlug;
use haft_core::problem::{NOT_CHECKED, Problem};
use haft_core::reference::ToolRef;
use haft_core::spec::ToolSpec;
use haft_core::token::Role;
use haft_definition::check::CheckReport;
use haft_definition::dialect::{self, Defaults};
use haft_runtime::registry::Entry;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::app::App;
use crate::body::Body;
use crate::definition::{self, DefinitionBody};
use crate::error::{ApiError, ErrorBody};
use crate::identity::Identity;
use crate::reply::{Success, success};
use crate::routes::broken_file;

/// The body of a validation request.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default, expecting = "an object")]
pub(crate) struct ValidateBody {
    /// Whether templates, expressions and scripts are checked.
    check_syntax: bool,
    /// Whether the schemas are checked.
    check_parameters: bool,
    /// A definition in any dialect, to check instead of the stored one.
    #[schema(value_type = Option<DefinitionBody>)]
    definition: Option<Map<String, Value>>,
    /// The text of a definition, to check instead of the stored one.
    text: Option<String>,
    /// The format of `text`: `json`, `yaml` (or `yml`) or `skill`.
    #[schema(pattern = "^(json|yaml|yml|skill)$")]
    format: Option<String>,
}

impl Default for ValidateBody {
    fn default() -> Self {
        Self { check_syntax: true, check_parameters: true, definition: None, text: None, format: None }
    }
}

/// The result of a validation.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ValidationReport {
    /// Whether there are no errors.
    valid: bool,
    errors: Vec<Problem>,
    warnings: Vec<Problem>,
}

impl ValidationReport {
    /// Adds the positions in the text of the definition.
    fn locate(&mut self, text: &str, form: FileForm) {
        dialect::locate(text, form, &mut self.errors);
        dialect::locate(text, form, &mut self.warnings);
    }
}

/// Check a stored definition, or the one in the body.
#[utoipa::path(
    post, path = "/tools/{ref}/validate", tag = "tools", params(("ref" = String, Path, description = "Id, name or `bundle:name`; the latter two optionally with `@version`", example = "greet")), request_body = Option<ValidateBody>,
    responses((status = 200, body = Success<ValidationReport>), (status = 404, body = ErrorBody), (status = 409, body = ErrorBody))
)]
pub(crate) async fn run(
    State(app): State<Arc<App>>,
    identity: Identity,
    Path(reference): Path<String>,
    body: Body,
) -> Result<Response, ApiError> {
    let request: ValidateBody = body.json_or_default()?;
    let form = parse_form(request.format.as_deref())?;
    let parsed = match (&request.definition, &request.text) {
        (Some(map), _) => Some(dialect::read_value(Value::Object(map.clone()), &defaults(&reference))),
        (None, Some(text)) => Some(definition::read_all(text, form, &defaults(&reference))),
        (None, None) => None,
    };
    let mut report = match parsed {
        Some(Err(problems)) => {
            let (warnings, errors) = problems.into_iter().partition(definition::is_ignored_field);
            ValidationReport { valid: false, errors, warnings }
        }
        Some(Ok(parsed)) => {
            let folder = folder(&app, &identity, &reference, parsed.bundle.as_deref());
            let checks = checks(&app, &identity, &parsed.spec, folder).await;
            let mut report = filtered(checks, parsed.warnings, &request);
            if let Some(text) = &request.text {
                report.locate(text, form);
            }
            report
        }
        None => validate_stored(&app, &identity, &reference, &request).await?,
    };
    // Only editors may learn which secrets exist.
    if identity.role < Role::Editor {
        report.warnings.retain(|warning| warning.code != definition::UNKNOWN_NAME);
    }
    Ok(success(report).into_response())
}

/// Checks a definition. A viewer starts no processes, so the syntax of scripts is not checked for one.
async fn checks(app: &App, identity: &Identity, spec: &ToolSpec, folder: Option<String>) -> CheckReport {
    if identity.role >= Role::Caller {
        return definition::validate(app, &identity.tenant, spec, folder).await;
    }
    let mut report = definition::validate_without_process(app, &identity.tenant, spec, folder).await;
    if matches!(spec.implementation.kind(), Kind::Script | Kind::Exec) {
        let message =
            "the syntax of the code was not checked: that starts a process, which needs the role `caller`";
        report.warnings.push(Problem::new("implementation", NOT_CHECKED, message));
    }
    report
}

/// Returns the folder of the definition's bundle, otherwise that of the tool it would replace.
fn folder(app: &App, identity: &Identity, reference: &str, bundle: Option<&str>) -> Option<String> {
    let named = bundle.and_then(|bundle| BundleSlug::new(bundle).ok());
    let tool_bundle =
        || super::tool::find(app, identity, reference).ok().map(|entry| entry.tool.bundle.clone());
    let bundle = named.or_else(tool_bundle).unwrap_or_else(BundleSlug::user_created);
    app.store().bundle_folder(&identity.tenant, &bundle)
}

async fn validate_stored(
    app: &App,
    identity: &Identity,
    reference: &str,
    request: &ValidateBody,
) -> Result<ValidationReport, ApiError> {
    if let Some(file) = broken_file::find(app, identity, reference) {
        let errors = vec![Problem::new("", "unreadable", file.error.clone())];
        return Ok(ValidationReport { valid: false, errors, warnings: Vec::new() });
    }
    let entry = super::tool::find(app, identity, reference)?;
    let file = file_text(app, &entry).await;
    let checks = checks(app, identity, &entry.tool.spec, entry.tool.folder().map(str::to_owned)).await;
    let warnings = file.as_ref().map(|(text, form)| text_warnings(&entry, text, *form)).unwrap_or_default();
    let mut report = filtered(checks, warnings, request);
    if let Some((text, form)) = &file {
        report.locate(text, *form);
    }
    if let Some(fault) = &entry.tool.fault {
        report.errors.insert(0, Problem::new("", "unreadable", fault.clone()));
        report.valid = false;
    }
    Ok(report)
}

/// Returns the text of the tool's file.
async fn file_text(app: &App, entry: &Entry) -> Option<(String, FileForm)> {
    let path = entry.tool.path.as_deref()?;
    let form = dialect::form_of_extension(path.rsplit_once('.')?.1)?;
    Some((app.store().definition_text(path).await.ok().flatten()?, form))
}

/// Returns the warnings about the text of the tool's file, which the parsed definition no longer shows.
pub(crate) async fn file_warnings(app: &App, entry: &Entry) -> Vec<Problem> {
    let file = file_text(app, entry).await;
    file.map(|(text, form)| text_warnings(entry, &text, form)).unwrap_or_default()
}

fn text_warnings(entry: &Entry, text: &str, form: FileForm) -> Vec<Problem> {
    let parsed = dialect::read(text, form, &defaults(entry.tool.spec.name.as_str())).ok();
    parsed.map(|parsed| parsed.warnings).unwrap_or_default()
}

/// Keeps the problems that the request asks for.
fn filtered(mut checks: CheckReport, warnings: Vec<Problem>, request: &ValidateBody) -> ValidationReport {
    checks.warnings.splice(0..0, warnings);
    let keep = |problem: &Problem| {
        let of_schema =
            problem.field.starts_with("input_schema") || problem.field.starts_with("output_schema");
        let of_syntax = problem.field.starts_with("implementation");
        (request.check_parameters || !of_schema) && (request.check_syntax || !of_syntax)
    };
    checks.errors.retain(keep);
    checks.warnings.retain(keep);
    ValidationReport { valid: checks.errors.is_empty(), errors: checks.errors, warnings: checks.warnings }
}

/// A definition without a name is checked under the name in the path.
fn defaults(reference: &str) -> Defaults {
    let name = match reference.parse() {
        Ok(ToolRef::Name { name, .. }) => Some(name.to_string()),
        _ => None,
    };
    Defaults { name, version: None }
}

fn parse_form(format: Option<&str>) -> Result<FileForm, ApiError> {
    dialect::form_of_extension(format.unwrap_or("json"))
        .ok_or_else(|| ApiError::bad_request("invalid `format`: expected `json`, `yaml` or `skill`"))
}
