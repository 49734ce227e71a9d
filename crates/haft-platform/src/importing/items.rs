//! Imports of single definitions: what is done with each, and the report.

use haft_core::catalog::{FileForm, SourceText, ToolChange};
use haft_core::name::BundleSlug;
use haft_core::outcome::ErrorCode;
use haft_core::problem::{Problem, excerpt, join};
use haft_core::reference::ToolRef;
use haft_core::tool::Tool;
use haft_definition::dialect::ParsedDefinition;
use serde::Serialize;

use crate::context::Context;
use crate::definition;
use crate::error::ServiceError;
use crate::identity::Identity;
use crate::{bundles, tools};

/// The action for an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ItemAction {
    /// It is created.
    Create,
    /// It replaces the item of the same name.
    Replace,
    /// It was not selected.
    Skip,
    /// It is invalid or was rejected.
    Error,
}

/// One item of an import.
#[derive(Debug, Serialize)]
pub struct ImportItem {
    /// The name of the tool or the server.
    pub name: String,
    /// The action, which a dry run only plans.
    pub action: ItemAction,
    /// Warnings about the item.
    pub warnings: Vec<Problem>,
    /// Why it was not imported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The definition that is stored, in the canonical form with secrets masked; for tools only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub definition: Option<serde_json::Value>,
}

impl ImportItem {
    /// Creates the item of something that cannot be imported.
    pub fn error(name: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            action: ItemAction::Error,
            warnings: Vec::new(),
            message: Some(message.into()),
            definition: None,
        }
    }

    /// Creates the item of something that was not selected.
    pub fn skip(name: impl Into<String>) -> Self {
        Self { action: ItemAction::Skip, message: None, ..Self::error(name, "") }
    }
}

/// The report of an import of single items, or of a dry run.
#[derive(Debug, Serialize)]
pub struct ItemImportReport {
    /// Whether this was a dry run, which stores nothing.
    pub dry_run: bool,
    pub created: usize,
    pub replaced: usize,
    pub skipped: usize,
    pub failed: usize,
    /// One entry per item, in their order.
    pub items: Vec<ImportItem>,
}

impl ItemImportReport {
    pub fn new(dry_run: bool, items: Vec<ImportItem>) -> Self {
        let count = |action| items.iter().filter(|item| item.action == action).count();
        Self {
            dry_run,
            created: count(ItemAction::Create),
            replaced: count(ItemAction::Replace),
            skipped: count(ItemAction::Skip),
            failed: count(ItemAction::Error),
            items,
        }
    }

    /// Returns a summary for the audit log.
    pub fn summary(&self) -> String {
        let Self { created, replaced, failed, .. } = self;
        format!("{created} created, {replaced} replaced, {failed} failed")
    }

    /// Returns whether something was stored.
    pub fn has_changes(&self) -> bool {
        !self.dry_run && self.created + self.replaced > 0
    }
}

/// An import of definitions into a bundle.
pub struct ItemImport<'a> {
    pub app: &'a Context,
    pub identity: &'a Identity,
    /// The bundle; default: that of each definition.
    pub bundle: Option<&'a str>,
    pub dry_run: bool,
    /// The names to import; default: all.
    pub select: Option<&'a [String]>,
}

impl ItemImport<'_> {
    /// Returns whether an item was selected.
    pub fn selects(&self, name: &str) -> bool {
        self.select.is_none_or(|names| names.iter().any(|selected| selected == name))
    }

    /// Imports one definition. An unavailable store ends the import; other errors are reported with the item.
    pub async fn tool(
        &self,
        parsed: Result<ParsedDefinition, Vec<Problem>>,
        text: Option<SourceText>,
    ) -> Result<ImportItem, ServiceError> {
        let parsed = match parsed {
            Ok(parsed) => parsed,
            Err(problems) => {
                return Ok(ImportItem::error(name_in(text.as_ref()), excerpt(&join(&problems), 2000)));
            }
        };
        let name = parsed.spec.name.to_string();
        if !self.selects(&name) {
            return Ok(ImportItem::skip(name));
        }
        let masked = haft_core::redact::masked(&parsed.spec);
        let definition = serde_json::to_value(&masked).ok();
        // A response of the API, and JSON on one line, have no layout worth keeping.
        let has_layout = |text: &SourceText| text.form != FileForm::Json || text.text.trim().contains('\n');
        let text = text.filter(|text| !parsed.from_api && has_layout(text));
        match self.store(parsed, text).await {
            Ok((action, warnings)) => Ok(ImportItem { name, action, warnings, message: None, definition }),
            Err(error) if is_of_server(error.code) => Err(error),
            Err(error) => Ok(ImportItem { definition, ..ImportItem::error(name, error.message) }),
        }
    }

    async fn store(
        &self,
        parsed: ParsedDefinition,
        text: Option<SourceText>,
    ) -> Result<(ItemAction, Vec<Problem>), ServiceError> {
        let (app, identity) = (self.app, self.identity);
        let named = self.bundle.or(parsed.bundle.as_deref());
        let bundle = tools::bundle_slug(app, identity, named)?;
        if let Some(existing) = self.existing(&bundle, &parsed) {
            return Ok((ItemAction::Replace, self.replace(&existing, parsed, text).await?));
        }
        if self.dry_run {
            definition::reject_published(parsed.status, None)?;
            definition::reject_other_scope(parsed.scope.as_deref())?;
            if let Ok(existing) = bundles::find(app, identity, bundle.as_str()) {
                bundles::require_enabled(&existing)?;
            }
            let folder = app.store().catalog().bundle_folder(&identity.tenant, &bundle);
            let checked =
                definition::check(app, &identity.tenant, (parsed, text.as_ref()), None, folder).await?;
            return Ok((ItemAction::Create, checked.warnings));
        }
        let (_, warnings) = tools::store(app, identity, Some(bundle.as_str()), parsed, text).await?;
        Ok((ItemAction::Create, warnings))
    }

    async fn replace(
        &self,
        tool: &Tool,
        parsed: ParsedDefinition,
        text: Option<SourceText>,
    ) -> Result<Vec<Problem>, ServiceError> {
        let (app, tenant) = (self.app, &self.identity.tenant);
        definition::reject_published(parsed.status, Some(tool.status))?;
        let status = parsed.status;
        let folder = tool.folder().map(str::to_owned);
        let checked =
            definition::check(app, tenant, (parsed, text.as_ref()), Some(&tool.spec), folder).await?;
        if !self.dry_run {
            let change = ToolChange { spec: checked.spec, text, status, enabled: checked.enabled };
            app.store().catalog().update_tool(tool.id, change).await?;
        }
        Ok(checked.warnings)
    }

    /// Returns the tenant's tool with the same bundle, name and version.
    fn existing(&self, bundle: &BundleSlug, parsed: &ParsedDefinition) -> Option<Tool> {
        let reference = ToolRef::Name {
            bundle: Some(bundle.clone()),
            name: parsed.spec.name.clone(),
            version: Some(parsed.spec.version.clone()),
        };
        let snapshot = self.app.registry().snapshot();
        let found = snapshot.resolve(&self.identity.tenant, &reference).ok()?;
        (found.tool.tenant == self.identity.tenant).then(|| found.tool.clone())
    }
}

/// Returns whether an error is a failure of the server, not of the item.
fn is_of_server(code: ErrorCode) -> bool {
    matches!(code, ErrorCode::StoreUnavailable | ErrorCode::Internal)
}

/// Returns the name in a definition that cannot be parsed, as far as it can be found.
fn name_in(text: Option<&SourceText>) -> String {
    let lines = text.map(|text| text.text.lines()).into_iter().flatten();
    let name = lines.filter_map(|line| {
        let line = line.trim_start().trim_start_matches(['{', '"', ' ']);
        let value = line.strip_prefix("name")?.trim_start_matches(['"', ' ']).strip_prefix(':')?;
        let value = value.trim().trim_end_matches(',').trim_matches(['"', '\'']);
        (!value.is_empty()).then(|| excerpt(value, 64))
    });
    name.into_iter().next().unwrap_or_else(|| "unnamed".to_owned())
}
