//! Enters into the index what was read from disk.
//!
//! A tool is found again by its `<bundle, name, version>`, so that renaming a file keeps the tool. Two files of
//! the same pair: the one that the index knows stays, of two new ones the first by path; the other is shown as
//! unreadable. A version changed inside a file relabels the tool; a changed name is another tool.

use std::collections::{HashMap, HashSet};

use haft_core::bundle::Bundle;
use haft_core::catalog::StoreError;
use haft_core::id::ToolId;
use haft_core::name::{BundleSlug, TenantId, ToolName, Version};
use haft_core::spec::ToolSpec;
use haft_core::tool::{Source, Status, Tool};

use super::insert::Fresh;
use super::queries::{Filed, hash};
use super::sync::Plan;
use crate::engine::fault;
use crate::files::bundle_file::BundleFile;
use crate::files::definition::Definition;
use crate::files::scan::Found;
use crate::files::{definition, history, layout};
use crate::session::Session;
use crate::store::KnownFile;
use crate::time;

const DOING: &str = "enter the definition files into the index";
/// From so many files on, the pairs that are stored are read once instead of one by one.
const MANY: usize = 100;

/// A file that was read.
pub(crate) struct Item {
    pub(crate) found: Found,
    pub(crate) reading: Result<Definition, String>,
}

/// What entering did.
pub(crate) struct Outcome {
    pub(crate) touched: usize,
}

type Pair = (TenantId, BundleSlug, ToolName, Version);

/// What one pass keeps in mind.
#[derive(Default)]
struct Pass {
    /// What each read file says it defines.
    pairs: HashMap<String, Pair>,
    gone: HashSet<String>,
    /// Tools that have a file.
    claimed: HashSet<ToolId>,
    /// Tools that lost their file; a later file may still claim them.
    orphans: Vec<ToolId>,
    bundles: HashMap<(TenantId, BundleSlug), Bundle>,
    /// With many files: every pair that the table held before, so that a new file costs no look-up.
    stored: Option<HashSet<(String, String, String)>>,
}

impl Pass {
    /// Returns the other file that defines the tool, unless that file is gone or defines something else now.
    fn other_file(&self, holder: &Tool, path: &str) -> Option<String> {
        let other = holder.path.clone().filter(|other| other != path)?;
        let Tool { tenant, bundle, spec, .. } = holder;
        let pair = (tenant.clone(), bundle.clone(), spec.name.clone(), spec.version.clone());
        let left = self.gone.contains(&other) || self.pairs.get(&other).is_some_and(|now| *now != pair);
        (self.claimed.contains(&holder.id) || !left).then_some(other)
    }

    /// Tells whether the table may hold a tool of the pair.
    fn may_hold(&self, bundle: &Bundle, spec: &ToolSpec) -> bool {
        self.stored.as_ref().is_none_or(|stored| {
            stored.contains(&(bundle.id.to_string(), spec.name.to_string(), spec.version.to_string()))
        })
    }
}

impl Session<'_> {
    /// Enters a plan and the files that were read for it.
    pub(crate) async fn apply(&mut self, plan: Plan, items: Vec<Item>) -> Result<Outcome, StoreError> {
        for bundle in plan.bundles {
            self.apply_bundle(bundle).await?;
        }
        let mut pass = Pass { gone: plan.gone.iter().cloned().collect(), ..Pass::default() };
        if items.len() > MANY {
            pass.stored = Some(self.stored_pairs().await.map_err(fault(DOING))?);
        }
        for item in &items {
            if let Ok(definition) = &item.reading {
                let Found { tenant, bundle, .. } = &item.found;
                let spec = &definition.spec;
                let pair = (tenant.clone(), bundle.clone(), spec.name.clone(), spec.version.clone());
                pass.pairs.insert(item.found.path.clone(), pair);
            }
        }
        for Item { found, reading } in items {
            match reading {
                Ok(definition) => self.apply_definition(&mut pass, &found, definition).await?,
                Err(why) => self.apply_fault(&mut pass, &found, &why).await?,
            }
        }
        for path in plan.gone {
            self.apply_gone(&mut pass, path).await?;
        }
        for id in std::mem::take(&mut pass.orphans) {
            if !pass.claimed.contains(&id) {
                self.bury(id).await?;
            }
        }
        for (tenant, slug) in plan.lost {
            self.drop_bundle(&tenant, &slug).await?;
        }
        Ok(Outcome { touched: self.touched() })
    }

    async fn apply_definition(
        &mut self,
        pass: &mut Pass,
        found: &Found,
        definition: Definition,
    ) -> Result<(), StoreError> {
        let bundle = self.bundle_of(pass, found).await?;
        if self.is_mcp_bundle(&bundle).await.map_err(fault(DOING))? {
            let why = format!(
                "`{}` is an MCP server, and its bundle holds only what that server lists; move the file to another folder",
                bundle.slug
            );
            return self.apply_fault(pass, found, &why).await;
        }
        let spec = &definition.spec;
        let holder = if pass.may_hold(&bundle, spec) {
            self.holder(&bundle, spec).await.map_err(fault(DOING))?
        } else {
            None
        };
        let before = self.known_tool(&found.path).await?;
        let target = match (holder, &before) {
            (Some(holder), _) => {
                if let Some(path) = pass.other_file(&holder, &found.path) {
                    let why = format!(
                        "`{}` is defined by `{path}` already; change the name or the version, or remove one of the two",
                        holder.qualified()
                    );
                    return self.apply_fault(pass, found, &why).await;
                }
                Some(holder)
            }
            (None, Some(before)) if before.spec.name == spec.name && !pass.claimed.contains(&before.id) => {
                Some(before.clone())
            }
            (None, _) => None,
        };
        let id = match target {
            Some(tool) => self.update_from(&tool, found, &definition).await?,
            None => self.create_from(&bundle, found, &definition)?,
        };
        pass.claimed.insert(id);
        pass.orphans.extend(before.map(|tool| tool.id).filter(|old| *old != id));
        if let Some(stored) = &mut pass.stored {
            stored.insert((bundle.id.to_string(), spec.name.to_string(), spec.version.to_string()));
        }
        if pass.stored.is_none() || self.state.files.contains_key(&found.path) {
            self.forget_unreadable(&found.path).await?;
        }
        self.learn_file(found.path.clone(), Some(KnownFile { stamp: found.stamp.clone(), tool: Some(id) }));
        Ok(())
    }

    async fn update_from(
        &mut self,
        tool: &Tool,
        found: &Found,
        read: &Definition,
    ) -> Result<ToolId, StoreError> {
        let changed = hash(&tool.spec).map_err(fault(DOING))? != hash(&read.spec).map_err(fault(DOING))?;
        if changed {
            let now = self.inner.now();
            self.append_revision(tool, &read.spec, now).await.map_err(fault(DOING))?;
        }
        let said = self.file_enabled(tool.id).await.map_err(fault(DOING))?;
        if let Some(enabled) =
            read.enabled.filter(|enabled| said != Some(*enabled) && tool.enabled != *enabled)
        {
            self.set_enabled(tool.id, enabled).await.map_err(fault(DOING))?;
        }
        let visible = changed || tool.fault.is_some() || tool.path.as_deref() != Some(&found.path);
        let filed =
            Filed { path: Some(found.path.clone()), stamp: Some(found.stamp.clone()), enabled: read.enabled };
        self.file_tool(tool.id, &filed).await.map_err(fault(DOING))?;
        if visible {
            self.touch_tool(tool.id);
        }
        Ok(tool.id)
    }

    fn create_from(
        &mut self,
        bundle: &Bundle,
        found: &Found,
        read: &Definition,
    ) -> Result<ToolId, StoreError> {
        let id = ToolId(time::new_id(&*self.inner.clock));
        let filed =
            Filed { path: Some(found.path.clone()), stamp: Some(found.stamp.clone()), enabled: read.enabled };
        let fresh = Fresh {
            id,
            bundle,
            spec: &read.spec,
            status: Status::Draft,
            enabled: read.enabled.unwrap_or(true),
            source: Source::User,
            filed,
            // So that a rebuilt index tells the same age.
            at: found.modified_at.min(self.inner.now()),
        };
        self.insert_later(fresh).map_err(fault(DOING))?;
        Ok(id)
    }

    async fn apply_fault(&mut self, pass: &mut Pass, found: &Found, why: &str) -> Result<(), StoreError> {
        let text = format!("{}: {}", found.path, why.replace('\0', " "));
        let before = self.known_tool(&found.path).await?.filter(|tool| !pass.claimed.contains(&tool.id));
        let id = before.as_ref().map(|tool| tool.id);
        if let Some(tool) = before {
            self.set_fault(tool.id, &text, &found.stamp).await.map_err(fault(DOING))?;
            if tool.fault.as_deref() != Some(&text) {
                self.touch_tool(tool.id);
            }
            pass.claimed.insert(tool.id);
        } else {
            self.note_unreadable(found, &text).await?;
        }
        self.learn_file(found.path.clone(), Some(KnownFile { stamp: found.stamp.clone(), tool: id }));
        Ok(())
    }

    async fn apply_gone(&mut self, pass: &mut Pass, path: String) -> Result<(), StoreError> {
        match self.state.files.get(&path).and_then(|known| known.tool) {
            Some(id) => pass.orphans.push(id),
            None => self.forget_unreadable(&path).await?,
        }
        self.learn_file(path, None);
        Ok(())
    }

    /// Finds the tool that a file defines, also one whose file was away.
    async fn holder(&mut self, bundle: &Bundle, spec: &ToolSpec) -> Result<Option<Tool>, sqlx::Error> {
        let (name, version) = (&spec.name, &spec.version);
        match self.tool_by_pair(bundle.id, name, version).await? {
            None if self.bring_back(bundle.id, name, version).await? => {
                self.tool_by_pair(bundle.id, name, version).await
            }
            found => Ok(found),
        }
    }

    /// Takes a tool whose file is gone out of sight, and keeps its last state in the history.
    async fn bury(&mut self, id: ToolId) -> Result<(), StoreError> {
        let Some(tool) = self.find_tool(id).await.map_err(fault(DOING))? else {
            // Another process has deleted it; it is still to be announced here.
            self.touch_tool(id);
            return Ok(());
        };
        if let (Some(files), Some(path)) = (self.inner.files.clone(), tool.path.clone()) {
            let form = layout::form_of(path.rsplit('/').next().unwrap_or(&path))
                .unwrap_or(haft_core::catalog::FileForm::Json);
            let text = definition::write(&tool.spec, form, None);
            let now = self.inner.now();
            files
                .run(format!("back up `{path}`"), move |home| {
                    history::keep(home, &path, text.as_bytes(), now)
                })
                .await?;
        }
        let now = self.inner.now();
        self.hide_tool(id, now).await.map_err(fault(DOING))
    }

    async fn known_tool(&mut self, path: &str) -> Result<Option<Tool>, StoreError> {
        match self.state.files.get(path).and_then(|known| known.tool) {
            Some(id) => self.find_tool(id).await.map_err(fault(DOING)),
            None => Ok(None),
        }
    }

    async fn bundle_of(&mut self, pass: &mut Pass, found: &Found) -> Result<Bundle, StoreError> {
        let key = (found.tenant.clone(), found.bundle.clone());
        if let Some(bundle) = pass.bundles.get(&key) {
            return Ok(bundle.clone());
        }
        let stored = self.bundle_by_slug(&key.0, &key.1).await.map_err(fault(DOING))?;
        let bundle = match stored {
            // Whoever puts a definition into the folder of a deleted bundle wants the bundle.
            Some(bundle) if bundle.soft_deleted_at.is_some() && !bundle.built_in => {
                self.revive(bundle).await?
            }
            Some(bundle) => bundle,
            None => self.enter_bundle(&key.0, &key.1, BundleFile::default()).await?,
        };
        pass.bundles.insert(key, bundle.clone());
        Ok(bundle)
    }
}
