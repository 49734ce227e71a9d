//! Files that never could be read: `GET /tools/{ref}/source` shows them to those who may mend them, `PUT /tools/{ref}`
//! mends them.

use std::sync::Arc;

use axum::response::{IntoResponse, Response};
use haft_core::catalog::{ToolChange, UnreadableFile};
use haft_core::outcome::ErrorCode;
use haft_core::reference::ToolRef;
use haft_core::token::Role;
use haft_definition::dialect;
use haft_runtime::registry::ResolveError;
use serde_json::json;

use crate::app::App;
use crate::body::Body;
use crate::definition::{self, Place};
use crate::error::ApiError;
use crate::identity::Identity;
use crate::reply::success;
use crate::routes::{bundles, tool};

/// Finds the file that a reference names, where no tool has that name.
pub(crate) fn find(app: &App, identity: &Identity, reference: &str) -> Option<Arc<UnreadableFile>> {
    let reference: ToolRef = reference.parse().ok()?;
    let snapshot = app.registry().snapshot();
    let resolved = snapshot.resolve(&identity.tenant, &reference);
    let broken = matches!(resolved, Err(ResolveError::Unreadable { .. }));
    snapshot.unreadable_named(&identity.tenant, &reference).filter(|_| broken).cloned()
}

/// Shows the text. It may hold anything, secrets too.
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
    Ok(success(json!({"text": text, "form": form.extension(), "path": file.path})).into_response())
}

/// Writes the file anew, which makes it a tool.
pub(crate) async fn put(
    app: &App,
    identity: &Identity,
    file: &UnreadableFile,
    body: &Body,
) -> Result<Response, ApiError> {
    identity.require(Role::Editor)?;
    bundles::refuse_disabled(&*bundles::find(app, identity, file.bundle.as_str())?)?;
    let reading = definition::read(body, &Place::of_file(file))?;
    definition::refuse_published(reading.status, None)?;
    let text = definition::author_text(body, &reading);
    let folder = app.store().bundle_folder(&file.tenant, &file.bundle);
    let checked = definition::check(app, &identity.tenant, (reading, text.as_ref()), None, folder).await?;
    let change = ToolChange { spec: checked.spec, text, status: None, enabled: checked.enabled };
    let mended = app.store().mend_file(file.path.clone(), change).await?;
    app.audit(identity, "tool.create", &mended.qualified());
    let mut view = tool::view(app, identity, mended.id).await?;
    view.warnings = checked.warnings;
    Ok(success(view).into_response())
}
