//! Checks of stored and of new definitions that change nothing.

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

use super::find::find;
use crate::context::Context;
use crate::definition;
use crate::error::ServiceError;
use crate::identity::Identity;

/// Checks a definition. A viewer starts no processes, so the syntax of scripts is not checked for one.
pub async fn checks(
    app: &Context,
    identity: &Identity,
    spec: &ToolSpec,
    folder: Option<String>,
) -> CheckReport {
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

/// Returns the folder of the definition's bundle, otherwise that of the tool it would replace, or of the bundle in the
/// reference.
pub fn folder(app: &Context, identity: &Identity, reference: &str, bundle: Option<&str>) -> Option<String> {
    let named = bundle.and_then(|bundle| BundleSlug::new(bundle).ok());
    let tool_bundle = || find(app, identity, reference).ok().map(|entry| entry.tool.bundle.clone());
    let referred = || match reference.parse() {
        Ok(ToolRef::Name { bundle, .. }) => bundle,
        _ => None,
    };
    let bundle = named.or_else(tool_bundle).or_else(referred).unwrap_or_else(BundleSlug::user_created);
    app.store().catalog().bundle_folder(&identity.tenant, &bundle)
}

/// Returns the text of the tool's file.
pub async fn file_text(app: &Context, entry: &Entry) -> Option<(String, FileForm)> {
    let path = entry.tool.path.as_deref()?;
    let form = dialect::form_of_extension(path.rsplit_once('.')?.1)?;
    Some((app.store().catalog().definition_text(path).await.ok().flatten()?, form))
}

/// Returns the warnings about the text of the tool's file, which the parsed definition no longer shows.
pub async fn file_warnings(app: &Context, entry: &Entry) -> Vec<Problem> {
    let file = file_text(app, entry).await;
    file.map(|(text, form)| text_warnings(entry, &text, form)).unwrap_or_default()
}

pub fn text_warnings(entry: &Entry, text: &str, form: FileForm) -> Vec<Problem> {
    let parsed = dialect::read(text, form, &defaults(entry.tool.spec.name.as_str())).ok();
    parsed.map(|parsed| parsed.warnings).unwrap_or_default()
}

/// A definition without a name is checked under the name in the path.
pub fn defaults(reference: &str) -> Defaults {
    let name = match reference.parse() {
        Ok(ToolRef::Name { name, .. }) => Some(name.to_string()),
        _ => None,
    };
    Defaults { name, version: None }
}

pub fn parse_form(format: Option<&str>) -> Result<FileForm, ServiceError> {
    dialect::form_of_extension(format.unwrap_or("json"))
        .ok_or_else(|| ServiceError::bad_request("invalid `format`: expected `json`, `yaml` or `skill`"))
}
