//! The built-in tools. They are global: every tenant sees them.

use std::collections::HashMap;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use haft_core::bundle::{Bundle, BundleKind};
use haft_core::catalog::{Change, StoreError};
use haft_core::id::{BundleId, ToolId};
use haft_core::name::{BundleSlug, TenantId, ToolName};
use haft_core::spec::ToolSpec;
use haft_core::tool::{Source, Status, Tool};
use sqlx::AssertSqlSafe;

use super::insert::ToolInsert;
use super::queries::{ToolFile, hash};
use super::session::Session;
use super::state::CatalogState;
use crate::engine::failed_to;
use crate::rows;
use crate::time;

/// How long a node that starts waits for the changes of others.
const START_TIMEOUT: Duration = Duration::from_mins(5);

const STORE: &str = "store the built-in tools";
const MISSING: &str = "not part of this program, or disabled by `built_ins.enabled`";

impl CatalogState {
    pub(crate) async fn set_built_ins(&self, specs: Vec<ToolSpec>) -> Result<(), StoreError> {
        let start = Instant::now();
        let mut session = loop {
            match self.session().await {
                // A node starts although another one applies a large change.
                Err(StoreError::Busy) if start.elapsed() < START_TIMEOUT => {}
                session => break session?,
            }
        };
        let names = specs.iter().map(|spec| spec.name.clone()).collect();
        *self.built_in_names.write().unwrap_or_else(PoisonError::into_inner) = Some(names);
        let missing = session.set_built_ins(specs).await.map_err(failed_to(STORE))?;
        self.announce(&self.mark_missing_built_ins(missing));
        session.finish().await.map(drop)
    }

    /// Marks built-in tools that this program does not have as not runnable. Only in announcements: another program on
    /// the same home may have them.
    pub(crate) fn mark_missing_built_ins(&self, mut changes: Vec<Change>) -> Vec<Change> {
        let names = self.built_in_names.read().unwrap_or_else(PoisonError::into_inner);
        let Some(names) = &*names else { return changes };
        for change in &mut changes {
            if let Change::Tool(tool) = change
                && tool.built_in
                && !names.contains(&tool.spec.name)
            {
                tool.fault = Some(MISSING.into());
            }
        }
        changes
    }
}

impl Session<'_> {
    /// Stores the built-in tools of this program and returns those of other programs, which stay unchanged.
    async fn set_built_ins(&mut self, specs: Vec<ToolSpec>) -> Result<Vec<Change>, sqlx::Error> {
        let (tenant, slug) = (TenantId::global(), BundleSlug::built_in());
        let bundle = match self.bundle_by_slug(&tenant, &slug).await? {
            Some(bundle) => bundle,
            None if specs.is_empty() => return Ok(Vec::new()),
            None => self.built_in_bundle(tenant, slug).await?,
        };
        let sql = AssertSqlSafe(format!("{} WHERE t.bundle_id = $1", rows::TOOL));
        let mut stored: HashMap<ToolName, Tool> = HashMap::new();
        for row in sqlx::query(sql).bind(bundle.id.to_string()).fetch_all(&mut *self.tx).await? {
            let tool = rows::tool(&row)?;
            stored.insert(tool.spec.name.clone(), tool);
        }
        for spec in specs {
            match stored.remove(&spec.name) {
                Some(tool) => self.refresh_built_in(&tool, &spec).await?,
                None => self.insert_built_in(&bundle, &spec).await?,
            }
        }
        Ok(stored.into_values().map(|tool| Change::Tool(Box::new(tool))).collect())
    }

    async fn built_in_bundle(&mut self, tenant: TenantId, slug: BundleSlug) -> Result<Bundle, sqlx::Error> {
        let now = self.db.now();
        let bundle = Bundle {
            id: BundleId(time::new_id(&*self.db.clock)),
            tenant,
            slug,
            display_name: "Built-in tools".into(),
            description: "The tools that come with haft".into(),
            enabled: true,
            kind: BundleKind::BuiltIn,
            created_at: now,
            modified_at: now,
            soft_deleted_at: None,
        };
        self.save_bundle(&bundle).await?;
        Ok(bundle)
    }

    async fn insert_built_in(&mut self, bundle: &Bundle, spec: &ToolSpec) -> Result<(), sqlx::Error> {
        let insert = ToolInsert {
            id: ToolId(time::new_id(&*self.db.clock)),
            bundle,
            spec,
            status: Status::Published,
            enabled: true,
            source: Source::BuiltIn,
            file: ToolFile::default(),
            at: self.db.now(),
        };
        self.insert_tool(insert).await
    }

    async fn refresh_built_in(&mut self, tool: &Tool, spec: &ToolSpec) -> Result<(), sqlx::Error> {
        if hash(&tool.spec)? == hash(spec)? {
            return Ok(());
        }
        self.append_revision(tool, spec, self.db.now()).await?;
        sqlx::query("UPDATE tools SET published_revision = revision WHERE id = $1")
            .bind(tool.id.to_string())
            .execute(&mut *self.tx)
            .await?;
        Ok(())
    }
}
