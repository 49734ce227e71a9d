//! Finding tools, and their source texts.

use std::sync::Arc;

use haft_core::catalog::FileForm;
use haft_core::redact;
use haft_core::reference::ToolRef;
use haft_core::token::Role;
use haft_definition::dialect::{self, Defaults};
use haft_runtime::registry::Entry;

use crate::context::Context;
use crate::error::ServiceError;
use crate::identity::Identity;

/// Finds a tool by a reference in a path.
pub fn find(app: &Context, identity: &Identity, reference: &str) -> Result<Arc<Entry>, ServiceError> {
    resolve(app, identity, &reference.parse()?)
}

/// Finds a tool. A tool that is not on the allow-list of the token is not found, as in lists.
pub fn resolve(app: &Context, identity: &Identity, reference: &ToolRef) -> Result<Arc<Entry>, ServiceError> {
    let snapshot = app.registry().snapshot();
    let entry = snapshot.resolve(&identity.tenant, reference)?;
    if !identity.principal().tools.allows(&entry.tool) {
        return Err(ServiceError::not_found("tool", &reference.to_string()));
    }
    Ok(Arc::clone(entry))
}

/// Returns the author's text, including comments, if it contains no secret. A text that does not parse may contain
/// secrets, so only editors get it.
async fn original_text(
    app: &Context,
    identity: &Identity,
    entry: &Entry,
    form: FileForm,
) -> Result<Option<String>, ServiceError> {
    let Some(path) = entry.tool.path.as_deref() else { return Ok(None) };
    let Some(text) = app.store().catalog().definition_text(path).await? else { return Ok(None) };
    let is_visible = match dialect::read(&text, form, &Defaults::default()) {
        Ok(parsed) => !redact::has_literal_secret(&parsed.spec),
        Err(_) => identity.role >= Role::Editor,
    };
    Ok(is_visible.then_some(text))
}

/// The source text of a definition.
pub struct ToolSource {
    pub text: String,
    pub form: FileForm,
    /// The file, relative to the home folder.
    pub path: Option<String>,
}

/// Returns the source text of a definition, in its own form unless another one is requested.
pub async fn source(
    app: &Context,
    identity: &Identity,
    entry: &Entry,
    requested: Option<FileForm>,
) -> Result<ToolSource, ServiceError> {
    let tool = &entry.tool;
    let own =
        tool.path.as_deref().and_then(|path| path.rsplit('.').next()).and_then(dialect::form_of_extension);
    let form = requested.or(own).unwrap_or(FileForm::Json);
    let original = if requested.is_none_or(|requested| Some(requested) == own) {
        original_text(app, identity, entry, form).await?
    } else {
        None
    };
    let text = original.unwrap_or_else(|| dialect::write(&redact::masked(&tool.spec), form, None));
    Ok(ToolSource { text, form, path: tool.path.clone() })
}
