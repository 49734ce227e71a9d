//! Brings bundles, tools, toolsets, MCP servers, policy rules, agents, pipelines and artifacts to a new state: all of it
//! or nothing.
//!
//! All rows change in one transaction. Where definitions are files, a journal of what they replace is on disk before the
//! first file changes; the next session undoes a change that was not committed.

use std::collections::HashMap;

use haft_core::agent::AgentDefinition;
use haft_core::artifact::ArtifactDefinition;
use haft_core::audit::AuditRecord;
use haft_core::bundle::{Bundle, BundleKind};
use haft_core::catalog::{Backup, FileForm, SourceText, StoreError};
use haft_core::id::{BundleId, ToolId};
use haft_core::mcp::McpServer;
use haft_core::name::{BundleSlug, TenantId, ToolName};
use haft_core::policy::PolicyRules;
use haft_core::spec::ToolSpec;
use haft_core::tool::{Source, Status};
use haft_definition::folder::BUNDLE_FILE;
use sqlx::Row as _;

use super::apply_state::ApplyScope;
use super::bundles::{check_slug, read_only};
use super::insert::ToolInsert;
use super::session::Session;
use super::state::{Catalog, CatalogState};
use super::tool_files::Content;
use super::toolsets::ToolsetInstall;
use crate::audit;
use crate::engine::failed_to;
use crate::files::write::Undo;
use crate::files::{journal, layout};
use crate::pipelines::PipelineChange;
use crate::policies;
use crate::resources::{self, ResourceChange, StoredKind};
use crate::time;

const APPLY: &str = "apply the changes";

/// The changes that bring a scope to a new state.
#[derive(Debug, Clone, Default)]
pub struct ApplyChanges {
    /// Bundles to create, to change or to restore.
    pub bundles: Vec<BundleFields>,
    /// Toolsets to install or update. Their packages are unpacked.
    pub toolsets: Vec<ToolsetStep>,
    /// Tools of bundles that are not toolsets.
    pub tools: Vec<ToolStep>,
    /// MCP servers to create or change.
    pub mcp_servers: Vec<McpServer>,
    /// MCP servers to delete.
    pub deleted_mcp_servers: Vec<BundleSlug>,
    /// The new policy rules. The caller has compiled them.
    pub policy: Option<PolicyRules>,
    /// Agents to create, change or delete.
    pub agents: Vec<ResourceChange<AgentDefinition>>,
    /// Pipelines to create, change or delete.
    pub pipelines: Vec<PipelineChange>,
    /// Code artifacts to create, change or delete.
    pub artifacts: Vec<ResourceChange<ArtifactDefinition>>,
    /// Who makes the changes.
    pub author: String,
    /// An audit record of each change.
    pub records: Vec<AuditRecord>,
}

/// A bundle as it will be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BundleFields {
    /// The slug.
    pub slug: BundleSlug,
    /// The display name.
    pub display_name: String,
    /// The description.
    pub description: String,
    /// Whether it is enabled.
    pub enabled: bool,
}

/// A toolset to install or update.
#[derive(Debug, Clone)]
pub struct ToolsetStep {
    /// The package.
    pub install: ToolsetInstall,
    /// Tools that are disabled if they are new.
    pub disabled: Vec<ToolName>,
}

/// One change of a tool.
#[derive(Debug, Clone)]
pub enum ToolStep {
    /// A new tool.
    Create {
        /// Its bundle.
        bundle: BundleSlug,
        /// The definition.
        spec: Box<ToolSpec>,
        /// The text of its author, which the file gets.
        text: SourceText,
        /// Whether it is enabled.
        enabled: bool,
        /// Its status.
        status: Status,
    },
    /// A changed tool; name and version stay.
    Update {
        /// The tool.
        id: ToolId,
        /// The definition.
        spec: Box<ToolSpec>,
        /// The text of its author.
        text: SourceText,
        /// Whether it is enabled.
        enabled: bool,
        /// Its status.
        status: Status,
    },
    /// A tool to delete.
    Delete {
        /// The tool.
        id: ToolId,
    },
}

impl Catalog {
    /// Applies changes that were planned for a state, which its digest identifies. If the state has changed since, that
    /// is a conflict, and nothing changes.
    pub async fn apply(
        &self,
        tenant: TenantId,
        scope: ApplyScope,
        digest: String,
        changes: ApplyChanges,
    ) -> Result<(), StoreError> {
        self.run(move |catalog| async move {
            // Edited files count as changes too.
            catalog.sync().await?;
            catalog.apply_changes(&tenant, (&scope, &digest), changes).await
        })
        .await
    }
}

impl CatalogState {
    async fn apply_changes(
        &self,
        tenant: &TenantId,
        (scope, digest): (&ApplyScope, &str),
        changes: ApplyChanges,
    ) -> Result<(), StoreError> {
        let mut session = self.session().await?;
        let state = session.apply_state(tenant, scope).await?;
        if state.digest != digest {
            let message =
                "the installation changed after the plan was made; nothing was applied: make a new plan";
            return Err(StoreError::Conflict(message.to_owned()));
        }
        let paths = session.files_of(tenant, &changes).await?;
        session.write_journal(paths).await?;
        let ApplyChanges { bundles, toolsets, tools, mcp_servers, deleted_mcp_servers, .. } = changes;
        let ApplyChanges { policy, agents, pipelines, artifacts, author, records, .. } = changes;
        let mut known: HashMap<BundleSlug, Bundle> = HashMap::new();
        for bundle in state.bundles {
            known.insert(bundle.slug.clone(), bundle);
        }
        for pipeline in pipelines {
            let change = pipeline.checked(&mut session.tx, tenant).await?;
            session.apply_resource(tenant, change, &author).await?;
        }
        for artifact in artifacts {
            session.apply_resource(tenant, artifact, &author).await?;
        }
        for fields in bundles {
            let bundle = session.store_bundle(tenant, fields, &known).await?;
            known.insert(bundle.slug.clone(), bundle);
        }
        for id in &deleted_mcp_servers {
            session.delete_mcp_server(tenant, id).await?;
        }
        for toolset in toolsets {
            session.apply_toolset(tenant, toolset).await?;
        }
        for step in tools {
            session.apply_tool(step, &known).await?;
        }
        for server in &mcp_servers {
            session.put_mcp_server(server).await?;
        }
        if let Some(rules) = policy {
            session.set_policy(tenant, &rules).await.map_err(failed_to(APPLY))?;
        }
        for agent in agents {
            session.apply_resource(tenant, agent, &author).await?;
        }
        audit::store_records(&mut session.tx, records).await.map_err(failed_to(APPLY))?;
        session.finish().await.map(drop)
    }

    /// Removes the journal of a committed change. If that fails, the next session does it.
    pub(crate) async fn remove_journal(&self) {
        let Some(files) = &self.db.files else { return };
        if let Err(error) = files.run("remove the journal of a change".into(), journal::remove).await {
            tracing::warn!(error = &error as &dyn std::error::Error, "the journal of a change stays");
        }
    }
}

impl Session<'_> {
    /// Undoes a change of several files that a crash interrupted, unless it was committed.
    pub(crate) async fn undo_interrupted_change(&mut self) -> Result<(), StoreError> {
        let Some(files) = self.db.files.clone() else { return Ok(()) };
        if std::fs::symlink_metadata(journal::path(&files.home)).is_err() {
            return Ok(());
        }
        let action = || "undo an interrupted change".to_owned();
        let Some(journal) = files.run(action(), journal::read).await? else { return Ok(()) };
        let query = sqlx::query("SELECT COUNT(*) FROM applies WHERE id = $1").bind(&journal.id);
        let row = query.fetch_one(&mut *self.tx).await.map_err(failed_to(&action()))?;
        let is_committed = row.try_get::<i64, _>(0).map_err(failed_to(&action()))? > 0;
        let now = self.db.now();
        files
            .run(action(), move |home| {
                if !is_committed {
                    tracing::warn!(id = journal.id, "undoing a change that was interrupted");
                    journal.undo(home, now)?;
                }
                journal::remove(home)
            })
            .await
    }

    /// Returns the files that the changes may create, replace or remove.
    async fn files_of(
        &mut self,
        tenant: &TenantId,
        changes: &ApplyChanges,
    ) -> Result<Vec<String>, StoreError> {
        let Some(files) = self.db.files.clone() else { return Ok(Vec::new()) };
        let folder = |slug: &BundleSlug| layout::bundle_folder(tenant, slug);
        let mut paths: Vec<String> =
            changes.bundles.iter().map(|bundle| format!("{}/{BUNDLE_FILE}", folder(&bundle.slug))).collect();
        for step in &changes.tools {
            match step {
                ToolStep::Create { bundle, spec, text, .. } => {
                    let names = layout::file_names(&spec.name, &spec.version, text.form);
                    let names = names.map(|name| format!("{}/{name}", folder(bundle)));
                    // A file that is there keeps its name and its content.
                    let is_free = |path: &String| std::fs::symlink_metadata(files.at(path)).is_err();
                    paths.extend(names.into_iter().filter(is_free));
                    // A new folder gets this file too.
                    paths.push(format!("{}/{BUNDLE_FILE}", folder(bundle)));
                }
                ToolStep::Update { id, .. } | ToolStep::Delete { id } => {
                    paths.extend(self.tool(*id).await?.path);
                }
            }
        }
        paths.sort();
        paths.dedup();
        Ok(paths)
    }

    /// Writes what these files contain now, before the first of them changes.
    async fn write_journal(&mut self, paths: Vec<String>) -> Result<(), StoreError> {
        let Some(files) = self.db.files.clone() else { return Ok(()) };
        if paths.is_empty() {
            return Ok(());
        }
        let id = time::new_id(&*self.db.clock).to_string();
        sqlx::query("DELETE FROM applies").execute(&mut *self.tx).await.map_err(failed_to(APPLY))?;
        let insert = sqlx::query("INSERT INTO applies (id) VALUES ($1)").bind(&id);
        insert.execute(&mut *self.tx).await.map_err(failed_to(APPLY))?;
        files
            .run("write the journal of the change".into(), move |home| journal::write(home, &id, &paths))
            .await?;
        // The first step is undone last: the journal goes when all files are restored.
        self.add_undo(Undo::remove(journal::path(&files.home)));
        self.set_journaled();
        Ok(())
    }

    /// Applies one change of a resource.
    async fn apply_resource<S: StoredKind>(
        &mut self,
        tenant: &TenantId,
        change: ResourceChange<S>,
        author: &str,
    ) -> Result<(), StoreError> {
        self.mark_resources_changed();
        for event in resources::apply_in(self.db, &mut self.tx, tenant, change, author).await? {
            self.report_later(tenant, event);
        }
        Ok(())
    }

    /// Replaces the policy rules of the tenant.
    async fn set_policy(&mut self, tenant: &TenantId, rules: &PolicyRules) -> Result<(), sqlx::Error> {
        policies::set_in(&mut self.tx, tenant, rules, self.db.now()).await?;
        self.mark_policies_changed();
        Ok(())
    }

    async fn store_bundle(
        &mut self,
        tenant: &TenantId,
        fields: BundleFields,
        known: &HashMap<BundleSlug, Bundle>,
    ) -> Result<Bundle, StoreError> {
        let BundleFields { slug, display_name, description, enabled } = fields;
        check_slug(&slug)?;
        let now = self.db.now();
        let bundle = match known.get(&slug).cloned() {
            Some(old) if old.kind.is_read_only() => return Err(read_only(&old)),
            Some(old) => {
                Bundle { display_name, description, enabled, modified_at: now, soft_deleted_at: None, ..old }
            }
            None => Bundle {
                id: BundleId(time::new_id(&*self.db.clock)),
                tenant: tenant.clone(),
                slug,
                display_name,
                description,
                enabled,
                kind: BundleKind::User,
                created_at: now,
                modified_at: now,
                soft_deleted_at: None,
            },
        };
        self.save_bundle(&bundle).await.map_err(failed_to(APPLY))?;
        self.write_bundle_file(&bundle).await?;
        Ok(bundle)
    }

    async fn apply_toolset(&mut self, tenant: &TenantId, step: ToolsetStep) -> Result<(), StoreError> {
        let slug = step.install.toolset.id.clone();
        let report = self.install_toolset(tenant, step.install).await?;
        if step.disabled.is_empty() {
            return Ok(());
        }
        let bundle = self.bundle_by_slug(tenant, &slug).await.map_err(failed_to(APPLY))?;
        let Some(bundle) = bundle else { return Ok(()) };
        for tool in self.tools_in(bundle.id).await.map_err(failed_to(APPLY))? {
            let name = &tool.spec.name;
            if step.disabled.contains(name) && report.added.iter().any(|added| added == name.as_str()) {
                self.set_enabled(tool.id, false).await.map_err(failed_to(APPLY))?;
            }
        }
        Ok(())
    }

    async fn apply_tool(
        &mut self,
        step: ToolStep,
        known: &HashMap<BundleSlug, Bundle>,
    ) -> Result<(), StoreError> {
        let (id, enabled, status) = match step {
            ToolStep::Create { bundle, spec, text, enabled, status } => {
                let bundle = known.get(&bundle).ok_or_else(|| StoreError::not_found("bundle", &bundle))?;
                (self.create_applied(bundle, &spec, &text, enabled).await?, enabled, status)
            }
            ToolStep::Update { id, spec, text, enabled, status } => {
                let tool = self.tool(id).await?;
                let content = Content { spec: &spec, text: Some(&text), enabled };
                self.rewrite(&tool, content).await?;
                (id, enabled, status)
            }
            ToolStep::Delete { id } => {
                let tool = self.tool(id).await?;
                self.remove_file(&tool, Backup::Keep).await?;
                return self.delete(&tool, Backup::Keep).await;
            }
        };
        let tool = self.tool(id).await?;
        let is_newest = tool.published.as_ref().is_some_and(|(number, _)| *number == tool.revision);
        if tool.status != status || (status == Status::Published && !is_newest) {
            self.change_status(&tool, status).await?;
        }
        let tool = self.tool(id).await?;
        if tool.enabled != enabled && status != Status::Disabled {
            self.set_enabled(id, enabled).await.map_err(failed_to(APPLY))?;
        }
        Ok(())
    }

    async fn create_applied(
        &mut self,
        bundle: &Bundle,
        spec: &ToolSpec,
        text: &SourceText,
        enabled: bool,
    ) -> Result<ToolId, StoreError> {
        let folder = layout::bundle_folder(&bundle.tenant, &bundle.slug);
        self.catalog.reject_symlink(&folder)?;
        if self.db.files.as_ref().is_some_and(|files| !files.at(&folder).exists()) {
            self.write_bundle_file(bundle).await?;
        }
        let form: FileForm = text.form;
        let content = Content { spec, text: Some(text), enabled };
        let file = self.write_new_file(&folder, form, content).await?;
        let (id, at) = (ToolId(time::new_id(&*self.db.clock)), self.db.now());
        let (status, source) = (Status::Draft, Source::User);
        self.insert_new(ToolInsert { id, bundle, spec, status, enabled, source, file, at }).await?;
        Ok(id)
    }
}
