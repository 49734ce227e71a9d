//! `POST /tools/{ref}/validate`: says everything about a definition without running it.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use haft_core::catalog::FileForm;
use haft_core::name::BundleSlug;
use haft_core::problem::Problem;
use haft_core::reference::ToolRef;
use haft_core::token::Role;
use haft_definition::check::CheckReport;
use haft_definition::dialect::{self, Defaults};
use haft_runtime::registry::Entry;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::app::App;
use crate::body::Body;
use crate::definition;
use crate::error::{ApiError, ErrorBody};
use crate::identity::Identity;
use crate::reply::{Success, success};
use crate::routes::broken_file;

/// What to check.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Wanted {
    /// Whether templates, expressions and scripts are looked at.
    check_syntax: bool,
    /// Whether the schemas are looked at.
    check_parameters: bool,
    /// A definition to look at instead of the stored one, in any dialect.
    #[schema(value_type = Option<Object>)]
    definition: Option<Value>,
    /// The text of a definition to look at instead of the stored one.
    text: Option<String>,
    /// The form of `text`: `json`, `yaml` or `skill`.
    format: Option<String>,
}

impl Default for Wanted {
    fn default() -> Self {
        Self { check_syntax: true, check_parameters: true, definition: None, text: None, format: None }
    }
}

/// What was found.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Verdict {
    /// Whether there is no error.
    valid: bool,
    #[schema(value_type = Vec<Object>)]
    errors: Vec<Problem>,
    #[schema(value_type = Vec<Object>)]
    warnings: Vec<Problem>,
}

/// Check a stored definition, or one that is sent along.
#[utoipa::path(
    post, path = "/tools/{ref}/validate", tag = "tools", params(("ref" = String, Path)), request_body = Wanted,
    responses((status = 200, body = Success<Verdict>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn run(
    State(app): State<Arc<App>>,
    identity: Identity,
    Path(reference): Path<String>,
    body: Body,
) -> Result<Response, ApiError> {
    let wanted: Wanted = body.json_or_default()?;
    let sent = match (&wanted.definition, &wanted.text) {
        (Some(value), _) => Some(dialect::read_value(value.clone(), &defaults(&reference))),
        (None, Some(text)) => {
            Some(dialect::read(text, form(wanted.format.as_deref())?, &defaults(&reference)))
        }
        (None, None) => None,
    };
    let mut verdict = match sent {
        Some(Err(errors)) => Verdict { valid: false, errors, warnings: Vec::new() },
        Some(Ok(reading)) => {
            let folder = folder(&app, &identity, &reference, reading.bundle.as_deref());
            let found = definition::judge(&app, &identity.tenant, &reading.spec, folder).await;
            verdict(found, reading.warnings, &wanted)
        }
        None => stored(&app, &identity, &reference, &wanted).await?,
    };
    // Which credentials there are is for those who may write definitions.
    if identity.role < Role::Editor {
        verdict.warnings.retain(|warning| warning.code != definition::UNKNOWN_NAME);
    }
    Ok(success(verdict).into_response())
}

/// Returns the folder whose files the definition may name: its bundle's, or that of the tool it is to replace.
fn folder(app: &App, identity: &Identity, reference: &str, bundle: Option<&str>) -> Option<String> {
    let named = bundle.and_then(|bundle| BundleSlug::new(bundle).ok());
    let of_tool = || super::tool::find(app, identity, reference).ok().map(|entry| entry.tool.bundle.clone());
    let bundle = named.or_else(of_tool).unwrap_or_else(BundleSlug::user_created);
    app.store().bundle_folder(&identity.tenant, &bundle)
}

async fn stored(
    app: &App,
    identity: &Identity,
    reference: &str,
    wanted: &Wanted,
) -> Result<Verdict, ApiError> {
    if let Some(file) = broken_file::find(app, identity, reference) {
        let errors = vec![Problem::new("", "unreadable", file.error.clone())];
        return Ok(Verdict { valid: false, errors, warnings: Vec::new() });
    }
    let entry = super::tool::find(app, identity, reference)?;
    let mut verdict = verdict(
        definition::judge(app, &identity.tenant, &entry.tool.spec, entry.tool.folder().map(str::to_owned))
            .await,
        doubts_of_file(app, &entry).await,
        wanted,
    );
    if let Some(fault) = &entry.tool.fault {
        verdict.errors.insert(0, Problem::new("", "unreadable", fault.clone()));
        verdict.valid = false;
    }
    Ok(verdict)
}

/// Returns what is doubtful about the text of the tool's file, which the definition does not show any more.
async fn doubts_of_file(app: &App, entry: &Entry) -> Vec<Problem> {
    let Some(path) = entry.tool.path.as_deref() else { return Vec::new() };
    let Ok(Some(text)) = app.store().definition_text(path).await else { return Vec::new() };
    let form = path.rsplit_once('.').and_then(|(_, extension)| dialect::form_of_extension(extension));
    let defaults = defaults(entry.tool.spec.name.as_str());
    let reading = form.and_then(|form| dialect::read(&text, form, &defaults).ok());
    reading.map(|reading| reading.warnings).unwrap_or_default()
}

fn verdict(mut found: CheckReport, warnings: Vec<Problem>, wanted: &Wanted) -> Verdict {
    found.warnings.splice(0..0, warnings);
    let keep = |problem: &Problem| {
        let of_schema =
            problem.field.starts_with("input_schema") || problem.field.starts_with("output_schema");
        let of_syntax = problem.field.starts_with("implementation");
        (wanted.check_parameters || !of_schema) && (wanted.check_syntax || !of_syntax)
    };
    found.errors.retain(keep);
    found.warnings.retain(keep);
    Verdict { valid: found.errors.is_empty(), errors: found.errors, warnings: found.warnings }
}

/// A definition without a name is checked under the name of the address.
fn defaults(reference: &str) -> Defaults {
    let name = match reference.parse() {
        Ok(ToolRef::Name { name, .. }) => Some(name.to_string()),
        _ => None,
    };
    Defaults { name, version: None }
}

fn form(word: Option<&str>) -> Result<FileForm, ApiError> {
    dialect::form_of_extension(word.unwrap_or("json"))
        .ok_or_else(|| ApiError::bad_request("`format` must be `json`, `yaml` or `skill`"))
}
