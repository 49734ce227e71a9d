//! Stores the tools of a document, each completely or not at all, and reports what was done.

use std::collections::BTreeMap;

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use haft_core::catalog::{Backup, FileForm, NewTool, StoreError, ToolChange};
use haft_core::id::ToolId;
use haft_core::name::BundleSlug;
use haft_core::problem::{Problem, join};
use haft_core::spec::ToolSpec;
use haft_core::tool::{Source, Tool};
use haft_import::api::{ApiImport, ImportedOperation, MergePlan, MergeStep};
use serde::Serialize;

use crate::context::Context;
use crate::definition;
use crate::error::ServiceError;
use crate::identity::Identity;

/// The action for an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ImportAction {
    /// A tool was created.
    Created,
    /// A tool of an earlier import was updated.
    Updated,
    /// A tool of an earlier import matches the document.
    Unchanged,
    /// The operation was skipped.
    Skipped,
    /// The operation is no longer in the document; the tool was left unchanged.
    Missing,
    /// The operation is no longer in the document; the tool was deleted.
    Deleted,
}

/// One operation and its tool.
#[derive(Debug, Serialize)]
pub struct ImportedTool {
    /// The operation, such as `GET /pets`.
    pub operation: String,
    /// The name of the tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The action, which a dry run only plans.
    pub action: ImportAction,
    /// Why it was skipped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The fields that the import changed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<&'static str>,
    /// The fields that were kept because they were edited.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<&'static str>,
    /// Warnings about the tool.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Problem>,
}

/// The result of an import.
#[derive(Debug, Serialize)]
pub struct ImportReport {
    /// The title of the document.
    pub title: String,
    /// The version of the described API.
    pub version: String,
    /// The number of operations in the document.
    pub operations: usize,
    /// The bundle of the tools.
    pub bundle: String,
    /// Whether this was a dry run, which stores nothing.
    pub dry_run: bool,
    pub created: usize,
    pub updated: usize,
    pub unchanged: usize,
    pub skipped: usize,
    pub missing: usize,
    pub deleted: usize,
    /// The servers that the tools send requests to.
    pub servers: Vec<String>,
    /// The secrets that the tools need.
    pub secrets: Vec<String>,
    /// One entry per operation, and per tool whose operation is no longer in the document.
    pub tools: Vec<ImportedTool>,
    /// Warnings about the document.
    pub warnings: Vec<Problem>,
}

impl ImportReport {
    /// Returns a summary for the audit log.
    pub fn summary(&self) -> String {
        let Self { bundle, created, updated, deleted, .. } = self;
        format!("{bundle}: {created} created, {updated} updated, {deleted} deleted")
    }
}

/// How many tools are stored in one change.
const BATCH: usize = 100;
/// The number of tools that are checked concurrently: their schemas are compiled on threads.
const PARALLEL_CHECKS: usize = 4;

/// An import into a bundle.
pub struct ImportRun<'a> {
    pub app: &'a Context,
    pub identity: &'a Identity,
    pub bundle: BundleSlug,
    pub dry_run: bool,
    pub delete_missing: bool,
}

impl ImportRun<'_> {
    /// Creates and updates the tools of a document.
    ///
    /// New tools are stored in batches, since a change of the store costs more than the tool. If the store fails in
    /// between, the tools stored so far stay, and repeating the import continues from there.
    pub async fn run(&self, mut import: ApiImport, existing: &[Tool]) -> Result<ImportReport, ServiceError> {
        let mut report = self.report(&mut import);
        let current: Vec<_> = existing
            .iter()
            .map(|tool| haft_import::api::ExistingTool { id: tool.id, spec: &tool.spec })
            .collect();
        let MergePlan { steps, missing } = haft_import::api::merge(import, &current);
        let by_id: BTreeMap<ToolId, &Tool> = existing.iter().map(|tool| (tool.id, tool)).collect();
        let mut steps = steps.into_iter();
        while !steps.as_slice().is_empty() {
            let next = steps.by_ref().take(BATCH).map(|(imported, step)| self.step(imported, step, &by_id));
            let done: Vec<_> = stream::iter(next).buffered(PARALLEL_CHECKS).try_collect().await?;
            let mut batch = Vec::new();
            for (line, new) in done {
                batch.extend(new.map(|spec| (report.tools.len(), spec)));
                report.tools.push(line);
            }
            self.create(batch, &mut report.tools).await?;
        }
        // If every operation was skipped, the import failed and must not delete anything.
        let failed =
            !report.tools.is_empty() && report.tools.iter().all(|tool| tool.action == ImportAction::Skipped);
        for tool in missing.iter().filter_map(|id| by_id.get(id)) {
            report.tools.push(self.missing_operation(tool, self.delete_missing && !failed).await?);
        }
        report.count();
        Ok(report)
    }

    fn report(&self, import: &mut ApiImport) -> ImportReport {
        let skipped = std::mem::take(&mut import.skipped).into_iter().map(|skipped| ImportedTool {
            reason: Some(skipped.reason),
            ..ImportedTool::new(skipped.operation, ImportAction::Skipped)
        });
        let owned = |texts: std::collections::BTreeSet<&str>| texts.into_iter().map(str::to_owned).collect();
        ImportReport {
            title: import.title.clone(),
            version: import.version.clone(),
            operations: import.operations.len(),
            bundle: self.bundle.to_string(),
            dry_run: self.dry_run,
            created: 0,
            updated: 0,
            unchanged: 0,
            skipped: 0,
            missing: 0,
            deleted: 0,
            servers: owned(import.servers()),
            secrets: owned(import.secrets()),
            tools: skipped.collect(),
            warnings: std::mem::take(&mut import.warnings),
        }
    }

    /// Updates the tool of an operation, or returns the definition to create.
    async fn step(
        &self,
        imported: ImportedOperation,
        step: MergeStep,
        by_id: &BTreeMap<ToolId, &Tool>,
    ) -> Result<(ImportedTool, Option<ToolSpec>), ServiceError> {
        let operation = imported.spec.origin.map(|origin| origin.operation).unwrap_or_default();
        let mut line = ImportedTool {
            warnings: imported.warnings,
            ..ImportedTool::new(operation, ImportAction::Unchanged)
        };
        match step {
            MergeStep::Skip(reason) => line.skip(reason),
            MergeStep::Unchanged(id) => line.name = by_id.get(&id).map(|tool| tool.spec.name.to_string()),
            MergeStep::Create(spec) => {
                line.action = ImportAction::Created;
                line.name = Some(spec.name.to_string());
                match self.check(&spec).await {
                    Ok(()) => return Ok((line, Some(*spec))),
                    Err(reason) => line.skip(reason),
                }
            }
            MergeStep::Update(update) => {
                line.action = ImportAction::Updated;
                line.name = Some(update.spec.name.to_string());
                (line.changed, line.kept) = (update.changed, update.kept);
                if let Err(reason) = self.update(update.id, update.spec).await? {
                    line.skip(reason);
                }
            }
        }
        Ok((line, None))
    }

    /// Returns why a tool must be skipped.
    async fn check(&self, spec: &ToolSpec) -> Result<(), String> {
        let folder = self.app.store().catalog().bundle_folder(&self.identity.tenant, &self.bundle);
        let report = definition::validate(self.app, &self.identity.tenant, spec, folder).await;
        if report.errors.is_empty() { Ok(()) } else { Err(join(&report.errors)) }
    }

    /// Creates tools in one change; if that fails, one by one. `lines` records the skipped ones.
    async fn create(
        &self,
        batch: Vec<(usize, ToolSpec)>,
        lines: &mut [ImportedTool],
    ) -> Result<(), ServiceError> {
        if self.dry_run || batch.is_empty() {
            return Ok(());
        }
        let all = batch.iter().map(|(_, spec)| self.new_tool(spec.clone())).collect();
        match tool_result(self.app.store().catalog().create_tools(all).await.map(drop))? {
            Ok(()) => return Ok(()),
            Err(reason) => tracing::debug!(reason, "importing the tools of a batch one by one"),
        }
        for (index, spec) in batch {
            let created = self.app.store().catalog().create_tool(self.new_tool(spec)).await;
            if let (Err(reason), Some(line)) = (tool_result(created.map(drop))?, lines.get_mut(index)) {
                line.skip(reason);
            }
        }
        Ok(())
    }

    /// Updates one tool; the inner error is the reason why it was skipped.
    async fn update(&self, id: ToolId, spec: ToolSpec) -> Result<Result<(), String>, ServiceError> {
        if let Err(reason) = self.check(&spec).await {
            return Ok(Err(reason));
        }
        if self.dry_run {
            return Ok(Ok(()));
        }
        tool_result(self.app.store().catalog().update_tool(id, ToolChange::from(spec)).await.map(drop))
    }

    fn new_tool(&self, spec: ToolSpec) -> NewTool {
        NewTool {
            tenant: self.identity.tenant.clone(),
            bundle: self.bundle.clone(),
            spec,
            form: FileForm::Json,
            text: None,
            enabled: true,
            source: Source::User,
        }
    }

    /// Handles a tool whose operation is no longer in the document: keeps it, or deletes it if requested.
    async fn missing_operation(&self, tool: &Tool, delete: bool) -> Result<ImportedTool, ServiceError> {
        let operation = tool.spec.origin.as_ref().map(|origin| origin.operation.clone()).unwrap_or_default();
        let mut line =
            ImportedTool::new(operation, if delete { ImportAction::Deleted } else { ImportAction::Missing });
        line.name = Some(tool.spec.name.to_string());
        if delete && !self.dry_run {
            let deleted = self.app.store().catalog().delete_tool(tool.id, Backup::Keep).await;
            if let Err(reason) = tool_result(deleted.map(drop))? {
                line.skip(reason);
            }
        }
        Ok(line)
    }
}

/// Separates an error of one tool, which is reported, from an unavailable store, which ends the import.
fn tool_result(stored: Result<(), StoreError>) -> Result<Result<(), String>, ServiceError> {
    match stored {
        Ok(()) => Ok(Ok(())),
        Err(error) if error.is_temporary() => Err(error.into()),
        Err(error) => Ok(Err(error.to_string())),
    }
}

impl ImportedTool {
    fn new(operation: String, action: ImportAction) -> Self {
        Self { operation, name: None, action, reason: None, changed: vec![], kept: vec![], warnings: vec![] }
    }

    fn skip(&mut self, reason: String) {
        self.action = ImportAction::Skipped;
        self.reason = Some(reason);
    }
}

impl ImportReport {
    fn count(&mut self) {
        for line in &self.tools {
            let counter = match line.action {
                ImportAction::Created => &mut self.created,
                ImportAction::Updated => &mut self.updated,
                ImportAction::Unchanged => &mut self.unchanged,
                ImportAction::Skipped => &mut self.skipped,
                ImportAction::Missing => &mut self.missing,
                ImportAction::Deleted => &mut self.deleted,
            };
            *counter += 1;
        }
    }
}
