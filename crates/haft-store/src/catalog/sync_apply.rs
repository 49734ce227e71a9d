//! Applies definition files to the index.
//!
//! A tool is identified by bundle, name and version, so that renaming a file keeps the tool. If two files define the
//! same tool, the indexed one wins, of two new ones the first by path; the other is reported as unreadable. A changed
//! version in a file relabels the tool; a changed name makes another tool.

use std::collections::{HashMap, HashSet};

use haft_core::bundle::{Bundle, BundleKind};
use haft_core::catalog::StoreError;
use haft_core::id::ToolId;
use haft_core::name::{BundleSlug, TenantId, ToolName, Version};
use haft_core::outcome::ErrorCode;
use haft_core::spec::ToolSpec;
use haft_core::tool::{Source, Status, Tool};
use haft_definition::folder::file_form;

use super::insert::ToolInsert;
use super::queries::{ToolFile, hash};
use super::session::Session;
use super::state::IndexedFile;
use super::sync::SyncPlan;
use crate::audit::FileEdit;
use crate::engine::failed_to;
use crate::files::bundle_file::BundleFile;
use crate::files::definition::Definition;
use crate::files::scan::ScannedFile;
use crate::files::{definition, history};
use crate::time;

const INDEX: &str = "index the definition files";
/// From this number of files on, the stored keys are loaded at once instead of one by one.
const BULK_FILES: usize = 100;

/// A file and its definition, or why it has none.
pub(crate) struct ReadFile {
    pub(crate) scanned: ScannedFile,
    pub(crate) definition: Result<Definition, String>,
}

/// Identifies a tool.
type ToolKey = (TenantId, BundleSlug, ToolName, Version);

/// The state of one sync.
#[derive(Default)]
struct SyncPass {
    /// The tool that each read file defines.
    keys: HashMap<String, ToolKey>,
    /// Files that no longer exist.
    missing: HashSet<String>,
    /// Tools that have a file.
    claimed: HashSet<ToolId>,
    /// Tools without a file, unless a later file claims them.
    orphans: Vec<ToolId>,
    bundles: HashMap<(TenantId, BundleSlug), Bundle>,
    /// All keys in the table, if there are many files: a new file then needs no query.
    stored_keys: Option<HashSet<(String, String, String)>>,
}

impl SyncPass {
    /// Returns the other file that defines the tool, unless it no longer exists or defines another tool now.
    fn other_file(&self, tool: &Tool, path: &str) -> Option<String> {
        let other = tool.path.clone().filter(|other| other != path)?;
        let Tool { tenant, bundle, spec, .. } = tool;
        let key = (tenant.clone(), bundle.clone(), spec.name.clone(), spec.version.clone());
        let released = self.missing.contains(&other) || self.keys.get(&other).is_some_and(|now| *now != key);
        (self.claimed.contains(&tool.id) || !released).then_some(other)
    }

    /// Tells whether the table may have this tool.
    fn may_contain(&self, bundle: &Bundle, spec: &ToolSpec) -> bool {
        self.stored_keys.as_ref().is_none_or(|keys| {
            keys.contains(&(bundle.id.to_string(), spec.name.to_string(), spec.version.to_string()))
        })
    }
}

impl Session<'_> {
    /// Applies a plan and the files read for it; returns the number of changed entries.
    pub(crate) async fn apply(&mut self, plan: SyncPlan, files: Vec<ReadFile>) -> Result<usize, StoreError> {
        for bundle in plan.bundles {
            self.apply_bundle(bundle).await?;
        }
        let mut pass =
            SyncPass { missing: plan.missing_files.iter().cloned().collect(), ..SyncPass::default() };
        if files.len() > BULK_FILES {
            pass.stored_keys = Some(self.stored_keys().await.map_err(failed_to(INDEX))?);
        }
        for file in &files {
            if let Ok(definition) = &file.definition {
                let ScannedFile { tenant, bundle, .. } = &file.scanned;
                let spec = &definition.spec;
                let key = (tenant.clone(), bundle.clone(), spec.name.clone(), spec.version.clone());
                pass.keys.insert(file.scanned.path.clone(), key);
            }
        }
        for ReadFile { scanned, definition } in files {
            match definition {
                Ok(definition) => self.apply_definition(&mut pass, &scanned, definition).await?,
                Err(reason) => self.apply_error(&mut pass, &scanned, &reason).await?,
            }
        }
        for path in plan.missing_files {
            self.apply_missing(&mut pass, path).await?;
        }
        for id in std::mem::take(&mut pass.orphans) {
            if !pass.claimed.contains(&id) {
                self.hide_tool_without_file(id).await?;
            }
        }
        for (tenant, slug) in plan.missing_bundles {
            self.drop_missing_bundle(&tenant, &slug).await?;
        }
        Ok(self.count_marked())
    }

    async fn apply_definition(
        &mut self,
        pass: &mut SyncPass,
        file: &ScannedFile,
        definition: Definition,
    ) -> Result<(), StoreError> {
        let bundle = self.bundle_of(pass, file).await?;
        if bundle.kind == BundleKind::Mcp {
            let reason = format!(
                "the bundle `{}` mirrors an MCP server and cannot hold definition files; move the file to another folder",
                bundle.slug
            );
            return self.apply_error(pass, file, &reason).await;
        }
        let spec = &definition.spec;
        let existing = if pass.may_contain(&bundle, spec) {
            self.existing_tool(&bundle, spec).await.map_err(failed_to(INDEX))?
        } else {
            None
        };
        let before = self.indexed_tool(&file.path).await?;
        let target = match (existing, &before) {
            (Some(existing), _) => {
                if let Some(path) = pass.other_file(&existing, &file.path) {
                    let reason = format!(
                        "`{}` is already defined by `{path}`; change the name or the version, or remove one of the files",
                        existing.qualified()
                    );
                    return self.apply_error(pass, file, &reason).await;
                }
                Some(existing)
            }
            (None, Some(before)) if before.spec.name == spec.name && !pass.claimed.contains(&before.id) => {
                Some(before.clone())
            }
            (None, _) => None,
        };
        let id = match target {
            Some(tool) => self.update_from(&tool, file, &definition).await?,
            None => self.create_from(&bundle, file, &definition)?,
        };
        pass.claimed.insert(id);
        pass.orphans.extend(before.map(|tool| tool.id).filter(|old| *old != id));
        if let Some(keys) = &mut pass.stored_keys {
            keys.insert((bundle.id.to_string(), spec.name.to_string(), spec.version.to_string()));
        }
        if pass.stored_keys.is_none() || self.index.files.contains_key(&file.path) {
            self.delete_unreadable(&file.path).await?;
        }
        self.index_file(file.path.clone(), Some(IndexedFile { stamp: file.stamp.clone(), tool: Some(id) }));
        Ok(())
    }

    async fn update_from(
        &mut self,
        tool: &Tool,
        file: &ScannedFile,
        read: &Definition,
    ) -> Result<ToolId, StoreError> {
        let changed =
            hash(&tool.spec).map_err(failed_to(INDEX))? != hash(&read.spec).map_err(failed_to(INDEX))?;
        if changed || tool.fault.is_some() {
            self.note_edit(file, "tool.update", qualified(file, &read.spec), "success");
        }
        if changed {
            let now = self.db.now();
            self.append_revision(tool, &read.spec, now).await.map_err(failed_to(INDEX))?;
        }
        let previous = self.file_enabled(tool.id).await.map_err(failed_to(INDEX))?;
        if let Some(enabled) =
            read.enabled.filter(|enabled| previous != Some(*enabled) && tool.enabled != *enabled)
        {
            self.set_enabled(tool.id, enabled).await.map_err(failed_to(INDEX))?;
        }
        let visible = changed || tool.fault.is_some() || tool.path.as_deref() != Some(&file.path);
        let tool_file = ToolFile {
            path: Some(file.path.clone()),
            stamp: Some(file.stamp.clone()),
            enabled: read.enabled,
        };
        self.set_tool_file(tool.id, &tool_file).await.map_err(failed_to(INDEX))?;
        if visible {
            self.mark_tool_changed(tool.id);
        }
        Ok(tool.id)
    }

    fn create_from(
        &mut self,
        bundle: &Bundle,
        file: &ScannedFile,
        read: &Definition,
    ) -> Result<ToolId, StoreError> {
        let id = ToolId(time::new_id(&*self.db.clock));
        let tool_file = ToolFile {
            path: Some(file.path.clone()),
            stamp: Some(file.stamp.clone()),
            enabled: read.enabled,
        };
        let insert = ToolInsert {
            id,
            bundle,
            spec: &read.spec,
            status: Status::Draft,
            enabled: read.enabled.unwrap_or(true),
            source: Source::User,
            file: tool_file,
            // A rebuilt index then has the same creation times.
            at: file.modified_at.min(self.db.now()),
        };
        self.queue_insert(insert).map_err(failed_to(INDEX))?;
        self.note_edit(file, "tool.create", qualified(file, &read.spec), "success");
        Ok(id)
    }

    async fn apply_error(
        &mut self,
        pass: &mut SyncPass,
        file: &ScannedFile,
        reason: &str,
    ) -> Result<(), StoreError> {
        let text = format!("{}: {}", file.path, reason.replace('\0', " "));
        let before = self.indexed_tool(&file.path).await?.filter(|tool| !pass.claimed.contains(&tool.id));
        let id = before.as_ref().map(|tool| tool.id);
        if let Some(tool) = before {
            self.set_fault(tool.id, &text, &file.stamp).await.map_err(failed_to(INDEX))?;
            if tool.fault.as_deref() != Some(&text) {
                self.mark_tool_changed(tool.id);
                self.note_edit(file, "tool.update", tool.qualified(), ErrorCode::InvalidDefinition.as_str());
            }
            pass.claimed.insert(tool.id);
        } else {
            self.save_unreadable(file, &text).await?;
        }
        self.index_file(file.path.clone(), Some(IndexedFile { stamp: file.stamp.clone(), tool: id }));
        Ok(())
    }

    fn note_edit(&mut self, file: &ScannedFile, action: &'static str, target: String, outcome: &'static str) {
        self.note_file_edit(FileEdit { tenant: file.tenant.clone(), action, target, outcome });
    }

    async fn apply_missing(&mut self, pass: &mut SyncPass, path: String) -> Result<(), StoreError> {
        match self.index.files.get(&path).and_then(|indexed| indexed.tool) {
            Some(id) => pass.orphans.push(id),
            None => self.delete_unreadable(&path).await?,
        }
        self.index_file(path, None);
        Ok(())
    }

    /// Finds the tool that a file defines, including a hidden one.
    async fn existing_tool(&mut self, bundle: &Bundle, spec: &ToolSpec) -> Result<Option<Tool>, sqlx::Error> {
        let (name, version) = (&spec.name, &spec.version);
        match self.tool_by_key(bundle.id, name, version).await? {
            None if self.restore_missing(bundle.id, name, version).await? => {
                self.tool_by_key(bundle.id, name, version).await
            }
            None => self.delete_missing(bundle.id, name, version).await.map(|()| None),
            existing => Ok(existing),
        }
    }

    /// Hides a tool whose file is missing, and backs up its last definition.
    async fn hide_tool_without_file(&mut self, id: ToolId) -> Result<(), StoreError> {
        let Some(tool) = self.find_tool(id).await.map_err(failed_to(INDEX))? else {
            // Another process has deleted it, which has to be announced here.
            self.mark_tool_changed(id);
            return Ok(());
        };
        if let (Some(files), Some(path)) = (self.db.files.clone(), tool.path.clone()) {
            let form = file_form(path.rsplit('/').next().unwrap_or(&path))
                .unwrap_or(haft_core::catalog::FileForm::Json);
            let text = definition::write(&tool.spec, form, None);
            let now = self.db.now();
            files
                .run(format!("back up `{path}`"), move |home| {
                    history::save(home, &path, text.as_bytes(), now)
                })
                .await?;
        }
        let (tenant, target) = (tool.tenant.clone(), tool.qualified());
        self.note_file_edit(FileEdit { tenant, action: "tool.delete", target, outcome: "success" });
        let now = self.db.now();
        self.hide_missing_tool(id, now).await.map_err(failed_to(INDEX))
    }

    async fn indexed_tool(&mut self, path: &str) -> Result<Option<Tool>, StoreError> {
        match self.index.files.get(path).and_then(|indexed| indexed.tool) {
            Some(id) => self.find_tool(id).await.map_err(failed_to(INDEX)),
            None => Ok(None),
        }
    }

    async fn bundle_of(&mut self, pass: &mut SyncPass, file: &ScannedFile) -> Result<Bundle, StoreError> {
        let key = (file.tenant.clone(), file.bundle.clone());
        if let Some(bundle) = pass.bundles.get(&key) {
            return Ok(bundle.clone());
        }
        let stored = self.bundle_by_slug(&key.0, &key.1).await.map_err(failed_to(INDEX))?;
        let bundle = match stored {
            // A new definition in the folder of a deleted bundle revives the bundle.
            Some(bundle) if bundle.soft_deleted_at.is_some() && !bundle.kind.is_read_only() => {
                self.revive(bundle).await?
            }
            Some(bundle) => bundle,
            None => self.insert_bundle(&key.0, &key.1, BundleFile::default()).await?,
        };
        pass.bundles.insert(key, bundle.clone());
        Ok(bundle)
    }
}

/// Returns the qualified name of the tool that a file defines.
fn qualified(file: &ScannedFile, spec: &ToolSpec) -> String {
    format!("{}:{}@{}", file.bundle, spec.name, spec.version)
}
