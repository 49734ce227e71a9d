//! `POST /tools/{ref}/validate`: checks a definition without running it.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use haft_core::catalog::FileForm;
use haft_core::problem::Problem;
use haft_core::token::Role;
use haft_definition::check::CheckReport;
use haft_definition::dialect;
use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::authentication::Caller;
use crate::body::Body;
use crate::error::ApiError;
use crate::error::ErrorBody;
use crate::reply::{Success, success};
use crate::routes::definition_body::DefinitionBody;
use haft_api::validation::ValidationReport;
use haft_platform::Installation;
use haft_platform::definition;
use haft_platform::error::is_ignored_field;
use haft_platform::identity::Identity;
use haft_platform::tools::check::{checks, defaults, file_text, folder, parse_form, text_warnings};
use haft_platform::tools::{broken_file, find};

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

/// The code of the warning that a definition has no description.
const MISSING_DESCRIPTION: &str = "missing_description";
/// The names of the field with the parameters.
const PARAMETER_KEYS: [&str; 5] = ["params", "parameters", "input_schema", "argSchema", "args_schema"];

/// Reports missing fields as errors that YAML definitions require, although the tool could run without them.
fn require_fields(report: &mut ValidationReport, text: &str, form: FileForm) {
    if form != FileForm::Yaml {
        return;
    }
    let missing = report.warnings.extract_if(.., |problem| problem.code == MISSING_DESCRIPTION);
    report.errors.extend(missing);
    let has_params = |line: &str| {
        let key = line.split(':').next().unwrap_or_default().trim_matches([' ', '-', '"', '\'']);
        PARAMETER_KEYS.contains(&key)
    };
    if !text.lines().any(has_params) {
        let message = "is missing; list the parameters, or write `params: []` for a tool without";
        report.errors.push(Problem::new("params", "missing_field", message));
    }
    report.valid &= report.errors.is_empty();
}

/// Adds the positions in the text of the definition.
fn locate(report: &mut ValidationReport, text: &str, form: FileForm) {
    dialect::locate(text, form, &mut report.errors);
    dialect::locate(text, form, &mut report.warnings);
}

/// Check a stored definition, or the one in the body.
#[utoipa::path(
    post, path = "/tools/{ref}/validate", tag = "tools", params(("ref" = String, Path, description = "Id, name or `bundle:name`; the latter two optionally with `@version`", example = "greet")), request_body = Option<ValidateBody>,
    responses((status = 200, body = Success<ValidationReport>), (status = 404, body = ErrorBody), (status = 409, body = ErrorBody))
)]
pub(crate) async fn run(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
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
            let (warnings, errors) = problems.into_iter().partition(is_ignored_field);
            ValidationReport { valid: false, errors, warnings }
        }
        Some(Ok(parsed)) => {
            let folder = folder(&app, &identity, &reference, parsed.bundle.as_deref());
            let checks = checks(&app, &identity, &parsed.spec, folder).await;
            let mut report = filtered(checks, parsed.warnings, &request);
            if let Some(text) = &request.text {
                require_fields(&mut report, text, form);
                locate(&mut report, text, form);
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

async fn validate_stored(
    app: &Installation,
    identity: &Identity,
    reference: &str,
    request: &ValidateBody,
) -> Result<ValidationReport, ApiError> {
    if let Some(file) = broken_file::find(app, identity, reference) {
        let errors = vec![Problem::new("", "unreadable", file.error.clone())];
        return Ok(ValidationReport { valid: false, errors, warnings: Vec::new() });
    }
    let entry = find(app, identity, reference)?;
    let file = file_text(app, &entry).await;
    let checks = checks(app, identity, &entry.tool.spec, entry.tool.folder().map(str::to_owned)).await;
    let warnings = file.as_ref().map(|(text, form)| text_warnings(&entry, text, *form)).unwrap_or_default();
    let mut report = filtered(checks, warnings, request);
    if let Some((text, form)) = &file {
        require_fields(&mut report, text, *form);
        locate(&mut report, text, *form);
    }
    if let Some(fault) = &entry.tool.fault {
        report.errors.insert(0, Problem::new("", "unreadable", fault.clone()));
        report.valid = false;
    }
    Ok(report)
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
