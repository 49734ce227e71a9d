//! Definition files that never parsed: editors read them with `GET /tools/{ref}/source` and fix them with
//! `PUT /tools/{ref}`.

use std::sync::Arc;

use axum::response::{IntoResponse, Response};
use haft_core::catalog::{ToolChange, UnreadableFile};
use haft_core::outcome::ErrorCode;
use haft_core::reference::ToolRef;
use haft_core::token::Role;
use haft_definition::dialect;
use haft_runtime::registry::ResolveError;

use crate::app::App;
use crate::audit;
use crate::body::Body;
use crate::definition;
use crate::error::ApiError;
use crate::identity::Identity;
use crate::reply::success;
use crate::routes::{bundles, tool};

/// Finds the file that a reference names, if no tool has that name.
pub(crate) fn find(app: &App, identity: &Identity, reference: &str) -> Option<Arc<UnreadableFile>> {
    let reference: ToolRef = reference.parse().ok()?;
    let snapshot = app.registry().snapshot();
    let resolved = snapshot.resolve(&identity.tenant, &reference);
    let is_broken = matches!(resolved, Err(ResolveError::Unreadable { .. }));
    snapshot.unreadable_named(&identity.tenant, &reference).filter(|_| is_broken).cloned()
}

/// Returns the text. Editors only: it may contain secrets.
pub(crate) async fn source(
    app: &App,
    identity: &Identity,
    file: &UnreadableFile,
) -> Result<Response, ApiError> {
    identity.require(Role::Editor)?;
    let form = file.path.rsplit('.').next().and_then(dialect::form_of_extension);
    let text = app.store().definition_text(&file.path).await?;
    let (Some(form), Some(text)) = (form, text) else {
        return Err(ApiError::new(ErrorCode::NotReady, file.error.clone()));
    };
    Ok(success(tool::SourceView { text, form: form.extension(), path: Some(file.path.clone()) })
        .into_response())
}

/// Replaces the text, which creates the tool.
pub(crate) async fn put(
    app: &App,
    identity: &Identity,
    file: &UnreadableFile,
    body: &Body,
) -> Result<Response, ApiError> {
    identity.require(Role::Editor)?;
    bundles::require_enabled(&*bundles::find(app, identity, file.bundle.as_str())?)?;
    let parsed = definition::parse(body, &definition::defaults_from_file(file))?;
    definition::reject_published(parsed.status, None)?;
    let text = definition::author_text(body, &parsed);
    let folder = app.store().bundle_folder(&file.tenant, &file.bundle);
    let checked = definition::check(app, &identity.tenant, (parsed, text.as_ref()), None, folder).await?;
    let change = ToolChange { spec: checked.spec, text, status: None, enabled: checked.enabled };
    let tool = app.store().mend_file(file.path.clone(), change).await?;
    audit::note(identity, "tool.create", &tool.qualified());
    Ok(success(tool::view_with_warnings(app, identity, tool.id, checked.warnings).await?).into_response())
}
