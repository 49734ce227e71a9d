//! Reports of haft-platform as the API shows them.

use std::path::Path;

use haft_api::apply::{ApplyReport, ApplySummary, ChangeAction, ChangeKind, PlannedChange};
use haft_api::import::{
    ImportAction, ImportItem, ImportReport, ImportedTool, ItemAction, ItemImportReport, RowAction, RowReport,
};
use haft_api::installation::{Check, CheckStatus, EffectiveSetting, SettingSource};
use haft_api::model::{ConfiguredModel, ConfiguredProvider, Prices};
use haft_api::revision::FieldChange;
use haft_platform::importing::registry;
use haft_platform::{agents, applying, doctor, field_changes, importing, settings};

/// Shows the plan or report of an applied folder.
pub(crate) fn apply(report: applying::ApplyReport) -> ApplyReport {
    let applying::ApplyReport { plan, applied, summary, changes, warnings } = report;
    let applying::ApplySummary { create, update, publish, delete, unchanged, unmanaged } = summary;
    ApplyReport {
        plan,
        applied,
        summary: ApplySummary { create, update, publish, delete, unchanged, unmanaged },
        changes: changes.into_iter().map(planned_change).collect(),
        warnings,
    }
}

fn planned_change(change: applying::PlannedChange) -> PlannedChange {
    let applying::PlannedChange { kind, action, bundle, name, version, file, summary, fields } = change;
    let kind = match kind {
        applying::ChangeKind::Bundle => ChangeKind::Bundle,
        applying::ChangeKind::Tool => ChangeKind::Tool,
        applying::ChangeKind::Toolset => ChangeKind::Toolset,
        applying::ChangeKind::McpServer => ChangeKind::McpServer,
        applying::ChangeKind::Policy => ChangeKind::Policy,
        applying::ChangeKind::Agent => ChangeKind::Agent,
        applying::ChangeKind::Pipeline => ChangeKind::Pipeline,
        applying::ChangeKind::CodeArtifact => ChangeKind::CodeArtifact,
    };
    let action = match action {
        applying::ChangeAction::Create => ChangeAction::Create,
        applying::ChangeAction::Update => ChangeAction::Update,
        applying::ChangeAction::Publish => ChangeAction::Publish,
        applying::ChangeAction::Delete => ChangeAction::Delete,
        applying::ChangeAction::Unchanged => ChangeAction::Unchanged,
        applying::ChangeAction::Unmanaged => ChangeAction::Unmanaged,
    };
    let fields = fields.into_iter().map(field_change).collect();
    PlannedChange { kind, action, bundle, name, version, file, summary, fields }
}

/// Shows a changed field.
pub(crate) fn field_change(change: field_changes::FieldChange) -> FieldChange {
    let field_changes::FieldChange { field, before, after } = change;
    FieldChange { field, before, after }
}

/// Shows the report of an import of an API description.
pub(crate) fn import(report: importing::ImportReport) -> ImportReport {
    ImportReport {
        title: report.title,
        version: report.version,
        operations: report.operations,
        bundle: report.bundle,
        dry_run: report.dry_run,
        created: report.created,
        updated: report.updated,
        unchanged: report.unchanged,
        skipped: report.skipped,
        missing: report.missing,
        deleted: report.deleted,
        servers: report.servers,
        secrets: report.secrets,
        tools: report.tools.into_iter().map(imported_tool).collect(),
        warnings: report.warnings,
    }
}

fn imported_tool(tool: importing::ImportedTool) -> ImportedTool {
    let importing::ImportedTool { operation, name, action, reason, changed, kept, warnings } = tool;
    let action = match action {
        importing::ImportAction::Created => ImportAction::Created,
        importing::ImportAction::Updated => ImportAction::Updated,
        importing::ImportAction::Unchanged => ImportAction::Unchanged,
        importing::ImportAction::Skipped => ImportAction::Skipped,
        importing::ImportAction::Missing => ImportAction::Missing,
        importing::ImportAction::Deleted => ImportAction::Deleted,
    };
    let fields = |names: Vec<&'static str>| names.into_iter().map(Into::into).collect();
    ImportedTool { operation, name, action, reason, changed: fields(changed), kept: fields(kept), warnings }
}

/// Shows one row of the report of a registry import.
pub(crate) fn row(row: registry::RowReport) -> RowReport {
    let registry::RowReport { line, row_id, tool, action, status, hidden, reason, warnings } = row;
    let action = match action {
        registry::RowAction::Created => RowAction::Created,
        registry::RowAction::Updated => RowAction::Updated,
        registry::RowAction::Unchanged => RowAction::Unchanged,
        registry::RowAction::Skipped => RowAction::Skipped,
        registry::RowAction::Failed => RowAction::Failed,
    };
    RowReport { line, row_id, tool, action, status, hidden, reason, warnings }
}

/// Shows the report of an import of single items.
pub(crate) fn items(report: importing::ItemImportReport) -> ItemImportReport {
    let importing::ItemImportReport { dry_run, created, replaced, skipped, failed, items } = report;
    let items = items.into_iter().map(item).collect();
    ItemImportReport { dry_run, created, replaced, skipped, failed, items }
}

fn item(item: importing::ImportItem) -> ImportItem {
    let importing::ImportItem { name, action, warnings, message, definition } = item;
    let action = match action {
        importing::ItemAction::Create => ItemAction::Create,
        importing::ItemAction::Replace => ItemAction::Replace,
        importing::ItemAction::Skip => ItemAction::Skip,
        importing::ItemAction::Error => ItemAction::Error,
    };
    ImportItem { name, action, warnings, message, definition }
}

/// Checks a home folder: that it is writable and private, and that the disk has room. It works without an open
/// installation.
pub fn check_home(home: &Path) -> Vec<Check> {
    doctor::check_home(home).into_iter().map(check).collect()
}

/// Shows a check of an installation.
pub(crate) fn check(check: doctor::Check) -> Check {
    let doctor::Check { name, status, message, fix } = check;
    let status = match status {
        doctor::CheckStatus::Ok => CheckStatus::Ok,
        doctor::CheckStatus::Warning => CheckStatus::Warning,
        doctor::CheckStatus::Error => CheckStatus::Error,
    };
    Check { name, status, message, fix }
}

/// Shows a configuration value.
pub(crate) fn setting(setting: settings::EffectiveSetting) -> EffectiveSetting {
    let settings::EffectiveSetting { key, value, source, description } = setting;
    let source = match source {
        settings::SettingSource::Default => SettingSource::Default,
        settings::SettingSource::File => SettingSource::File,
        settings::SettingSource::Environment => SettingSource::Environment,
        settings::SettingSource::Flag => SettingSource::Flag,
    };
    EffectiveSetting { key, value, source, description }
}

/// Shows a model that agents can use.
pub(crate) fn model(model: agents::ConfiguredModel) -> ConfiguredModel {
    let agents::ConfiguredModel { name, provider, has_key, is_default, prices } = model;
    let prices = prices.map(|prices| {
        let settings::Prices { input, output, cached, cache_written, currency } = prices;
        Prices { input, output, cached, cache_written, currency }
    });
    ConfiguredModel { name, provider, has_key, is_default, prices }
}

/// Shows a provider of models.
pub(crate) fn provider(provider: &agents::ConfiguredProvider) -> ConfiguredProvider {
    let agents::ConfiguredProvider { name, base_url, requires_key, has_key, credentials } = provider;
    ConfiguredProvider {
        name: (*name).into(),
        base_url: base_url.map(Into::into),
        requires_key: *requires_key,
        has_key: *has_key,
        credentials: credentials.iter().map(|name| (*name).into()).collect(),
    }
}
