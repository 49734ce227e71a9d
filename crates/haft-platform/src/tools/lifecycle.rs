//! The life cycle of tools: publishing, deprecating, versions.

use std::sync::Arc;

use haft_core::Timestamp;
use haft_core::catalog::Transition;
use haft_core::lifecycle::Deprecation;
use haft_core::name::Version;
use haft_core::outcome::ErrorCode;
use haft_core::problem::excerpt;
use haft_core::reference::ToolRef;
use haft_core::runnable::Mode;
use haft_core::tool::{Status, Tool};
use haft_runtime::registry::Entry;

use super::find::resolve;
use crate::context::Context;
use crate::error::ServiceError;
use crate::identity::Identity;
use crate::{agents, audit, bundles, definition};

/// The longest message of a deprecation, in characters.
const MAX_MESSAGE: usize = 500;

/// Returns why a tool cannot be published, after it is known whether it can run.
pub async fn unpublishable(app: &Context, entry: &Arc<Entry>) -> Option<String> {
    let tool = &entry.tool;
    definition::refresh_references(app, &tool.spec).await;
    app.registry().verified(entry).await;
    if let Some(fault) = entry.fault() {
        return Some(fault);
    }
    // A published tool runs in production mode, where agents and pipelines must be published, too.
    match agents::target_problem(app, &tool.tenant, &tool.spec, Mode::Production) {
        Some(problem) => Some(problem.to_string()),
        None => app.retrieval().draft_pipeline_of(tool).await,
    }
}

/// Resolves the replacement of a tool; returns the reference that names it.
fn replacement(
    app: &Context,
    identity: &Identity,
    entry: &Entry,
    text: &str,
) -> Result<String, ServiceError> {
    let invalid = |why: &str| {
        ServiceError::bad_request(format!("invalid `replaced_by`: `{}` {why}", excerpt(text, 120)))
    };
    let reference: ToolRef =
        text.parse().map_err(|error| invalid(&format!("is not a reference: {error}")))?;
    let found = resolve(app, identity, &reference).map_err(|error| ServiceError {
        message: format!("invalid `replaced_by`: {}", error.message),
        code: ErrorCode::InvalidRequest,
        ..error
    })?;
    let tool = &found.tool;
    if tool.id == entry.tool.id {
        return Err(invalid("is the deprecated tool itself"));
    }
    if tool.status == Status::Deprecated {
        return Err(invalid("is deprecated, too; name a tool that stays"));
    }
    let has_version = matches!(reference, ToolRef::Name { version: Some(_), .. });
    // Another version of the same tool can be named by its version only.
    let is_same_name = tool.bundle_id == entry.tool.bundle_id && tool.spec.name == entry.tool.spec.name;
    Ok(if has_version || is_same_name {
        tool.qualified()
    } else {
        format!("{}:{}", tool.bundle, tool.spec.name)
    })
}

/// Parses a date or a time in the future.
fn parse_date(text: &str, now: Timestamp) -> Result<Timestamp, ServiceError> {
    let invalid = |why: &str| {
        ServiceError::bad_request(format!("invalid `removal_date`: `{}` {why}", excerpt(text, 60)))
    };
    let parsed = text.parse().or_else(|_| format!("{text}T00:00:00Z").parse::<Timestamp>());
    let at = parsed.map_err(|_| {
        invalid(
            "is not a date; expected a date such as `2027-01-31` or a time such as `2027-01-31T12:00:00Z`",
        )
    })?;
    if at <= now {
        return Err(invalid("is in the past; disable or delete the tool instead"));
    }
    Ok(at)
}

fn check_message(message: String) -> Result<String, ServiceError> {
    let length = message.chars().count();
    if length > MAX_MESSAGE || message.trim().is_empty() || message.chars().any(char::is_control) {
        return Err(ServiceError::bad_request(format!(
            "invalid `message`: expected one line of 1 to {MAX_MESSAGE} characters"
        )));
    }
    Ok(message)
}

/// The request to deprecate a tool.
pub struct NewDeprecation {
    /// The tool to call instead.
    pub replaced_by: Option<String>,
    /// From this time on, calls are rejected: a date or a time.
    pub removal_date: Option<String>,
    /// A message for callers.
    pub message: Option<String>,
}

/// Publishes the newest revision of a tool.
pub async fn publish(app: &Context, identity: &Identity, entry: &Arc<Entry>) -> Result<Tool, ServiceError> {
    if let Some(reason) = unpublishable(app, entry).await {
        let message = format!("cannot publish `{}`: {reason}", entry.qualified);
        return Err(ServiceError::new(ErrorCode::NotReady, message));
    }
    change_status(app, identity, entry, Transition::Publish, "tool.publish").await
}

/// Deprecates a tool: it still runs, with a warning.
pub async fn deprecate(
    app: &Context,
    identity: &Identity,
    entry: &Entry,
    new: NewDeprecation,
) -> Result<Tool, ServiceError> {
    let NewDeprecation { replaced_by, removal_date, message } = new;
    let deprecation = Deprecation {
        replaced_by: replaced_by.map(|text| replacement(app, identity, entry, &text)).transpose()?,
        removal_date: removal_date.map(|text| parse_date(&text, app.now())).transpose()?,
        message: message.map(check_message).transpose()?,
        ..Deprecation::default()
    };
    change_status(app, identity, entry, Transition::Deprecate(deprecation), "tool.deprecate").await
}

/// Sets the version label of a tool.
pub async fn relabel(
    app: &Context,
    identity: &Identity,
    entry: &Entry,
    version: Version,
) -> Result<Tool, ServiceError> {
    change_status(app, identity, entry, Transition::Relabel(version), "tool.version").await
}

async fn change_status(
    app: &Context,
    identity: &Identity,
    entry: &Entry,
    transition: Transition,
    action: &str,
) -> Result<Tool, ServiceError> {
    bundles::require_enabled_bundle(app, identity, entry)?;
    let tool = app.store().catalog().transition(entry.tool.id, transition).await?;
    audit::note(identity, action, &tool.qualified());
    Ok(tool)
}
