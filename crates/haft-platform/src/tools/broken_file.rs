//! Definition files that never parsed: editors read and fix them like tools.

use std::sync::Arc;

use haft_core::catalog::{SourceText, ToolChange, UnreadableFile};
use haft_core::outcome::ErrorCode;
use haft_core::problem::Problem;
use haft_core::reference::ToolRef;
use haft_core::token::Role;
use haft_core::tool::Tool;
use haft_definition::dialect::{self, ParsedDefinition};
use haft_runtime::registry::ResolveError;

use super::find::ToolSource;
use crate::context::Context;
use crate::error::ServiceError;
use crate::identity::Identity;
use crate::{audit, bundles, definition};

/// Finds the file that a reference names, if no tool has that name.
pub fn find(app: &Context, identity: &Identity, reference: &str) -> Option<Arc<UnreadableFile>> {
    let reference: ToolRef = reference.parse().ok()?;
    let snapshot = app.registry().snapshot();
    let resolved = snapshot.resolve(&identity.tenant, &reference);
    let is_broken = matches!(resolved, Err(ResolveError::Unreadable { .. }));
    snapshot.unreadable_named(&identity.tenant, &reference).filter(|_| is_broken).cloned()
}

/// Returns the text. Editors only: it may contain secrets.
pub async fn source(
    app: &Context,
    identity: &Identity,
    file: &UnreadableFile,
) -> Result<ToolSource, ServiceError> {
    identity.require(Role::Editor)?;
    let form = file.path.rsplit('.').next().and_then(dialect::form_of_extension);
    let text = app.store().catalog().definition_text(&file.path).await?;
    let (Some(form), Some(text)) = (form, text) else {
        return Err(ServiceError::new(ErrorCode::NotReady, file.error.clone()));
    };
    Ok(ToolSource { text, form, path: Some(file.path.clone()) })
}

/// Rejects callers who may not fix a file, and files of disabled bundles.
pub fn check_mendable(app: &Context, identity: &Identity, file: &UnreadableFile) -> Result<(), ServiceError> {
    identity.require(Role::Editor)?;
    bundles::require_enabled(&*bundles::find(app, identity, file.bundle.as_str())?)
}

/// Replaces the text, which creates the tool. Returns it with the warnings about its definition.
pub async fn mend(
    app: &Context,
    identity: &Identity,
    file: &UnreadableFile,
    parsed: ParsedDefinition,
    text: Option<SourceText>,
) -> Result<(Tool, Vec<Problem>), ServiceError> {
    definition::reject_published(parsed.status, None)?;
    let folder = app.store().catalog().bundle_folder(&file.tenant, &file.bundle);
    let checked = definition::check(app, &identity.tenant, (parsed, text.as_ref()), None, folder).await?;
    let change = ToolChange { spec: checked.spec, text, status: None, enabled: checked.enabled };
    let tool = app.store().catalog().mend_file(file.path.clone(), change).await?;
    audit::note(identity, "tool.create", &tool.qualified());
    Ok((tool, checked.warnings))
}
