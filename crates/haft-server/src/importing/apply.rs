//! What becomes of the tools of a document: each is stored whole or not at all, and each is told.

use std::collections::BTreeMap;

use haft_core::catalog::{Backup, FileForm, NewTool, StoreError, ToolChange};
use haft_core::id::ToolId;
use haft_core::name::BundleSlug;
use haft_core::problem::{Problem, join};
use haft_core::spec::ToolSpec;
use haft_core::tool::{Source, Tool};
use haft_definition::openapi::{ImportedOperation, MergePlan, MergeStep, OpenApiImport};
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::definition;
use crate::error::ApiError;
use crate::identity::Identity;

/// What was done for one operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Action {
    /// A new tool.
    Created,
    /// A tool that was there is different now.
    Updated,
    /// A tool that was there is what the document says.
    Unchanged,
    /// No tool came of it.
    Skipped,
    /// The document does not have the operation of this tool any more; the tool is as it was.
    Missing,
    /// The same, and the tool was deleted.
    Deleted,
}

/// One operation and its tool.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Line {
    /// The operation, such as `GET /pets`.
    operation: String,
    /// The tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// What was done, or would be.
    action: Action,
    /// Why it was skipped.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// Which fields the document changed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    changed: Vec<&'static str>,
    /// Which fields stay because a person edited them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    kept: Vec<&'static str>,
    /// Doubts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<Object>)]
    warnings: Vec<Problem>,
}

/// What came of an import.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Report {
    /// The title of the document.
    title: String,
    /// The version of the described API.
    version: String,
    /// How many operations the document has.
    operations: usize,
    /// The bundle of the tools.
    bundle: String,
    /// Whether nothing was stored.
    dry_run: bool,
    created: usize,
    updated: usize,
    unchanged: usize,
    skipped: usize,
    missing: usize,
    deleted: usize,
    /// Where the tools send their requests.
    servers: Vec<String>,
    /// The secrets that they need.
    secrets: Vec<String>,
    /// One entry per operation, and per tool whose operation is gone.
    tools: Vec<Line>,
    /// Doubts about the document.
    #[schema(value_type = Vec<Object>)]
    warnings: Vec<Problem>,
}

impl Report {
    /// Returns one sentence for the audit record.
    pub(crate) fn summary(&self) -> String {
        let Self { bundle, created, updated, deleted, .. } = self;
        format!("{bundle}: {created} created, {updated} updated, {deleted} deleted")
    }
}

/// An import that is compared with what is there.
pub(crate) struct Plan<'a> {
    pub(crate) app: &'a App,
    pub(crate) identity: &'a Identity,
    pub(crate) bundle: BundleSlug,
    pub(crate) dry_run: bool,
    pub(crate) delete_missing: bool,
}

impl Plan<'_> {
    /// Stores what is new and different.
    ///
    /// Each tool is one change. Where the store fails in between, what is stored stays; the same import again goes on
    /// from there.
    pub(crate) async fn run(&self, mut import: OpenApiImport, existing: &[Tool]) -> Result<Report, ApiError> {
        let mut report = self.report(&mut import);
        let all: Vec<_> = existing
            .iter()
            .map(|tool| haft_definition::openapi::ExistingTool { id: tool.id, spec: &tool.spec })
            .collect();
        let MergePlan { steps, missing } = haft_definition::openapi::merge(import, &all);
        let names: BTreeMap<ToolId, &Tool> = existing.iter().map(|tool| (tool.id, tool)).collect();
        for (imported, step) in steps {
            let line = self.step(imported, step, &names).await?;
            report.tools.push(line);
        }
        // An import of which nothing came has failed: its document says nothing about what may go.
        let failed =
            !report.tools.is_empty() && report.tools.iter().all(|line| line.action == Action::Skipped);
        for tool in missing.iter().filter_map(|id| names.get(id)) {
            report.tools.push(self.gone(tool, self.delete_missing && !failed).await?);
        }
        report.count();
        Ok(report)
    }

    fn report(&self, import: &mut OpenApiImport) -> Report {
        let skipped = std::mem::take(&mut import.skipped).into_iter().map(|skipped| Line {
            reason: Some(skipped.reason),
            ..Line::new(skipped.operation, Action::Skipped)
        });
        let owned = |texts: std::collections::BTreeSet<&str>| texts.into_iter().map(str::to_owned).collect();
        Report {
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

    async fn step(
        &self,
        imported: ImportedOperation,
        step: MergeStep,
        names: &BTreeMap<ToolId, &Tool>,
    ) -> Result<Line, ApiError> {
        let operation = imported.spec.origin.map(|origin| origin.operation).unwrap_or_default();
        let mut line = Line { warnings: imported.warnings, ..Line::new(operation, Action::Unchanged) };
        match step {
            MergeStep::Skip(reason) => line.skip(reason),
            MergeStep::Unchanged(id) => line.name = names.get(&id).map(|tool| tool.spec.name.to_string()),
            MergeStep::Create(spec) => {
                line.action = Action::Created;
                line.name = Some(spec.name.to_string());
                if let Err(reason) = self.store(None, *spec).await? {
                    line.skip(reason);
                }
            }
            MergeStep::Update(update) => {
                line.action = Action::Updated;
                line.name = Some(update.spec.name.to_string());
                (line.changed, line.kept) = (update.changed, update.kept);
                if let Err(reason) = self.store(names.get(&update.id).copied(), update.spec).await? {
                    line.skip(reason);
                }
            }
        }
        Ok(line)
    }

    /// Stores one tool, new or in place of an earlier state; the inner error says why this one could not be.
    async fn store(&self, earlier: Option<&Tool>, spec: ToolSpec) -> Result<Result<(), String>, ApiError> {
        let folder = self.app.store().bundle_folder(&self.identity.tenant, &self.bundle);
        let verdict = definition::judge(self.app, &self.identity.tenant, &spec, folder).await;
        if !verdict.errors.is_empty() {
            return Ok(Err(join(&verdict.errors)));
        }
        if self.dry_run {
            return Ok(Ok(()));
        }
        let stored = match earlier {
            Some(tool) => self.app.store().update_tool(tool.id, ToolChange::from(spec)).await,
            None => self.app.store().create_tool(self.new_tool(spec)).await,
        };
        one(stored.map(drop))
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

    /// A tool whose operation is gone stays, unless it was asked otherwise.
    async fn gone(&self, tool: &Tool, delete: bool) -> Result<Line, ApiError> {
        let operation = tool.spec.origin.as_ref().map(|origin| origin.operation.clone()).unwrap_or_default();
        let mut line = Line::new(operation, if delete { Action::Deleted } else { Action::Missing });
        line.name = Some(tool.spec.name.to_string());
        if delete && !self.dry_run {
            let deleted = self.app.store().delete_tool(tool.id, Backup::Keep).await;
            if let Err(reason) = one(deleted.map(drop))? {
                line.skip(reason);
            }
        }
        Ok(line)
    }
}

/// Tells a fault of one tool from one of the store, which ends the import.
fn one(stored: Result<(), StoreError>) -> Result<Result<(), String>, ApiError> {
    match stored {
        Ok(()) => Ok(Ok(())),
        Err(error @ StoreError::Unavailable { .. }) => Err(error.into()),
        Err(error) => Ok(Err(error.to_string())),
    }
}

impl Line {
    fn new(operation: String, action: Action) -> Self {
        Self { operation, name: None, action, reason: None, changed: vec![], kept: vec![], warnings: vec![] }
    }

    fn skip(&mut self, reason: String) {
        self.action = Action::Skipped;
        self.reason = Some(reason);
    }
}

impl Report {
    fn count(&mut self) {
        for line in &self.tools {
            let counter = match line.action {
                Action::Created => &mut self.created,
                Action::Updated => &mut self.updated,
                Action::Unchanged => &mut self.unchanged,
                Action::Skipped => &mut self.skipped,
                Action::Missing => &mut self.missing,
                Action::Deleted => &mut self.deleted,
            };
            *counter += 1;
        }
    }
}
