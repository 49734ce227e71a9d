//! Toolsets: bundles that were installed as packages, and their packages.

use std::collections::HashMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use haft_core::bundle::{Bundle, BundleKind};
use haft_core::catalog::StoreError;
use haft_core::id::{BundleId, ToolId};
use haft_core::name::{BundleSlug, TenantId, ToolName};
use haft_core::spec::ToolSpec;
use haft_core::tool::{Source, Status, Tool};
use haft_core::toolset::{InstalledToolset, keep_settings};
use sqlx::any::AnyRow;
use sqlx::{AssertSqlSafe, Row as _};

use super::insert::ToolInsert;
use super::queries::ToolFile;
use super::retention::remove_empty;
use super::session::Session;
use super::state::{Catalog, CatalogState};
use crate::engine::failed_to;
use crate::files::layout;
use crate::limits;
use crate::list_page::ListPage;
use crate::rows;
use crate::time;

const READ: &str = "read the toolset";
const INSTALL: &str = "install the toolset";
const UNINSTALL: &str = "uninstall the toolset";
/// The bytes of a package in one row.
const PART: usize = 1 << 20;

/// A package to install, unpacked and checked.
#[derive(Debug, Clone)]
pub struct ToolsetInstall {
    /// What is installed; `previous` is filled in.
    pub toolset: InstalledToolset,
    /// Its tools.
    pub tools: Vec<ToolSpec>,
    /// The package as a ZIP file.
    pub archive: Vec<u8>,
}

/// The result of an installation.
#[derive(Debug, Clone, PartialEq)]
pub struct InstallReport {
    /// The toolset as it is now.
    pub toolset: InstalledToolset,
    /// Tools that are new.
    pub added: Vec<String>,
    /// Tools that changed.
    pub changed: Vec<String>,
    /// Tools that the package does not have any more.
    pub removed: Vec<String>,
}

impl Catalog {
    /// Returns the number of toolsets of a tenant.
    pub async fn toolset_count(&self, tenant: &TenantId) -> Result<usize, StoreError> {
        let query = sqlx::query("SELECT COUNT(*) FROM toolsets WHERE tenant = $1").bind(tenant.as_str());
        let counted =
            query.fetch_one(&self.state.db.engine.pool).await.and_then(|row| row.try_get::<i64, _>(0));
        counted.map(|count| usize::try_from(count).unwrap_or_default()).map_err(failed_to(READ))
    }

    /// Lists toolsets of a tenant by id.
    pub async fn toolsets(
        &self,
        tenant: &TenantId,
        page: &ListPage,
    ) -> Result<Vec<InstalledToolset>, StoreError> {
        let sql = format!("SELECT body FROM toolsets WHERE tenant = $1 {}", page.sql("id"));
        let query = sqlx::query(AssertSqlSafe(sql)).bind(tenant.as_str()).bind(page.start());
        let found = query.fetch_all(&self.state.db.engine.pool).await.map_err(failed_to(READ))?;
        found.iter().map(toolset).collect::<Result<_, _>>().map_err(failed_to(READ))
    }

    /// Returns a toolset.
    pub async fn toolset(
        &self,
        tenant: &TenantId,
        id: &BundleSlug,
    ) -> Result<Option<InstalledToolset>, StoreError> {
        let query = sqlx::query("SELECT body FROM toolsets WHERE tenant = $1 AND id = $2");
        let query = query.bind(tenant.as_str()).bind(id.as_str());
        let found = query.fetch_optional(&self.state.db.engine.pool).await.map_err(failed_to(READ))?;
        found.as_ref().map(toolset).transpose().map_err(failed_to(READ))
    }

    /// Returns a stored package as a ZIP file.
    pub async fn package(&self, tenant: &TenantId, hash: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let sql = "SELECT data FROM toolset_packages WHERE tenant = $1 AND hash = $2 ORDER BY part";
        let query = sqlx::query(sql).bind(tenant.as_str()).bind(hash);
        let found = query.fetch_all(&self.state.db.engine.pool).await.map_err(failed_to(READ))?;
        let mut archive = Vec::new();
        for row in &found {
            let data: &str = row.try_get(0).map_err(failed_to(READ))?;
            let part = STANDARD.decode(data).map_err(|error| StoreError::unavailable(READ, error))?;
            archive.extend(part);
        }
        Ok((!found.is_empty()).then_some(archive))
    }

    /// Returns whether a tenant has a package.
    pub async fn has_package(&self, tenant: &TenantId, hash: &str) -> Result<bool, StoreError> {
        let sql = "SELECT hash FROM toolset_packages WHERE tenant = $1 AND hash = $2 AND part = 0";
        let query = sqlx::query(sql).bind(tenant.as_str()).bind(hash);
        let found = query.fetch_optional(&self.state.db.engine.pool).await.map_err(failed_to(READ))?;
        Ok(found.is_some())
    }

    /// Returns the hashes of the packages of all tenants, each with its tenant.
    pub async fn packages(&self) -> Result<Vec<(TenantId, String)>, StoreError> {
        let query = sqlx::query("SELECT tenant, hash FROM toolset_packages WHERE part = 0");
        let found = query.fetch_all(&self.state.db.engine.pool).await.map_err(failed_to(READ))?;
        let parse = |row: &AnyRow| Ok((rows::parse_column(row, "tenant")?, row.try_get("hash")?));
        found.iter().map(parse).collect::<Result<_, sqlx::Error>>().map_err(failed_to(READ))
    }

    /// Installs or updates a toolset in one step. Its tools are published; the settings of an earlier installation are
    /// kept.
    pub async fn install_toolset(
        &self,
        tenant: TenantId,
        install: ToolsetInstall,
    ) -> Result<InstallReport, StoreError> {
        self.run(move |catalog| async move { catalog.install_toolset(&tenant, install).await }).await
    }

    /// Removes a toolset with its bundle, tools and packages; returns it as it was.
    pub async fn uninstall_toolset(
        &self,
        tenant: TenantId,
        id: BundleSlug,
    ) -> Result<InstalledToolset, StoreError> {
        self.run(move |catalog| async move { catalog.uninstall_toolset(&tenant, &id).await }).await
    }
}

fn toolset(row: &AnyRow) -> Result<InstalledToolset, sqlx::Error> {
    rows::json_column(row, "body")
}

fn encode(error: serde_json::Error) -> sqlx::Error {
    sqlx::Error::Encode(Box::new(error))
}

impl CatalogState {
    async fn install_toolset(
        &self,
        tenant: &TenantId,
        install: ToolsetInstall,
    ) -> Result<InstallReport, StoreError> {
        let mut session = self.session().await?;
        let report = session.install_toolset(tenant, install).await?;
        session.finish().await?;
        Ok(report)
    }

    fn bundle_of_toolset(&self, tenant: &TenantId, toolset: &InstalledToolset) -> Bundle {
        let now = self.db.now();
        Bundle {
            id: BundleId(time::new_id(&*self.db.clock)),
            tenant: tenant.clone(),
            slug: toolset.id.clone(),
            display_name: toolset.name.clone(),
            description: toolset.description.clone(),
            enabled: true,
            kind: BundleKind::Toolset,
            created_at: now,
            modified_at: now,
            soft_deleted_at: None,
        }
    }

    async fn uninstall_toolset(
        &self,
        tenant: &TenantId,
        id: &BundleSlug,
    ) -> Result<InstalledToolset, StoreError> {
        let mut session = self.session().await?;
        let known = session.toolset(tenant, id).await.map_err(failed_to(UNINSTALL))?;
        let Some(known) = known else { return Err(StoreError::not_found("toolset", id)) };
        if let Some(bundle) = session.bundle_by_slug(tenant, id).await.map_err(failed_to(UNINSTALL))? {
            for tool in session.tools_in(bundle.id).await.map_err(failed_to(UNINSTALL))? {
                session.remove_tool(tool.id).await.map_err(failed_to(UNINSTALL))?;
            }
            session.remove_bundle(bundle.id).await.map_err(failed_to(UNINSTALL))?;
            // The folder contains the settings of the bundle; if it remained, it would be read as a user bundle.
            if let Some(files) = self.db.files.clone() {
                let folder = layout::bundle_folder(tenant, id);
                files.run(UNINSTALL.into(), move |home| remove_empty(&home.join(folder))).await?;
            }
            session.index_bundle(tenant, id, None);
        }
        let removed = sqlx::query("DELETE FROM toolsets WHERE tenant = $1 AND id = $2")
            .bind(tenant.as_str())
            .bind(id.as_str())
            .execute(&mut *session.tx)
            .await;
        removed.map_err(failed_to(UNINSTALL))?;
        session.remove_unused_packages(tenant).await.map_err(failed_to(UNINSTALL))?;
        session.finish().await?;
        Ok(known)
    }
}

type ChangedTools = (Vec<String>, Vec<String>, Vec<String>);

impl Session<'_> {
    /// Installs or updates a toolset.
    pub(super) async fn install_toolset(
        &mut self,
        tenant: &TenantId,
        install: ToolsetInstall,
    ) -> Result<InstallReport, StoreError> {
        let ToolsetInstall { mut toolset, tools, archive } = install;
        let known = self.toolset(tenant, &toolset.id).await.map_err(failed_to(INSTALL))?;
        let bundle = self.bundle_by_slug(tenant, &toolset.id).await.map_err(failed_to(INSTALL))?;
        let bundle = match bundle {
            Some(bundle) if known.is_some() => Bundle {
                display_name: toolset.name.clone(),
                description: toolset.description.clone(),
                modified_at: self.db.now(),
                soft_deleted_at: None,
                ..bundle
            },
            Some(_) => {
                let message = format!(
                    "bundle `{}` already exists and is not a toolset; delete it first, or change the id of the toolset",
                    toolset.id
                );
                return Err(StoreError::Conflict(message));
            }
            None => self.catalog.bundle_of_toolset(tenant, &toolset),
        };
        self.save_bundle(&bundle).await.map_err(failed_to(INSTALL))?;
        self.mark_bundle_changed(bundle.id);
        toolset.previous = match known {
            // The same package again: what it can be rolled back to stays.
            Some(known) if known.package == toolset.package => known.previous,
            Some(known) => Some(known.package),
            None => None,
        };
        let report = self.replace_tools(&bundle, tools).await?;
        self.save_toolset(tenant, &toolset, &archive).await.map_err(failed_to(INSTALL))?;
        let (added, changed, removed) = report;
        Ok(InstallReport { toolset, added, changed, removed })
    }

    /// Returns the toolsets of a tenant by id.
    pub(super) async fn toolsets_of(
        &mut self,
        tenant: &TenantId,
    ) -> Result<Vec<InstalledToolset>, sqlx::Error> {
        let query = sqlx::query("SELECT body FROM toolsets WHERE tenant = $1 ORDER BY id");
        let found = query.bind(tenant.as_str()).fetch_all(&mut *self.tx).await?;
        found.iter().map(toolset).collect()
    }

    /// Returns the definitions of the tools of a toolset as its package has them.
    pub(super) async fn package_specs(
        &mut self,
        bundle: BundleId,
    ) -> Result<Vec<(ToolId, ToolSpec)>, sqlx::Error> {
        let sql = "SELECT p.tool_id AS tool_id, p.spec AS spec FROM toolset_tools p \
                   JOIN tools t ON t.id = p.tool_id WHERE t.bundle_id = $1";
        let found = sqlx::query(sql).bind(bundle.to_string()).fetch_all(&mut *self.tx).await?;
        let read = |row: &AnyRow| Ok((rows::parse_column(row, "tool_id")?, rows::json_column(row, "spec")?));
        found.iter().map(read).collect()
    }

    async fn toolset(
        &mut self,
        tenant: &TenantId,
        id: &BundleSlug,
    ) -> Result<Option<InstalledToolset>, sqlx::Error> {
        let query = sqlx::query("SELECT body FROM toolsets WHERE tenant = $1 AND id = $2");
        let found = query.bind(tenant.as_str()).bind(id.as_str()).fetch_optional(&mut *self.tx).await?;
        found.as_ref().map(toolset).transpose()
    }

    /// Brings the tools of the bundle to those of the package; returns the names of the added, changed and removed ones.
    async fn replace_tools(
        &mut self,
        bundle: &Bundle,
        tools: Vec<ToolSpec>,
    ) -> Result<ChangedTools, StoreError> {
        let (mut added, mut changed, mut removed) = ChangedTools::default();
        let stored = self.tools_in(bundle.id).await.map_err(failed_to(INSTALL))?;
        let mut stored: HashMap<ToolName, Tool> = stored
            .into_iter()
            .filter(|tool| tool.source == Source::Toolset)
            .map(|tool| (tool.spec.name.clone(), tool))
            .collect();
        for package in tools {
            let name = package.name.to_string();
            match stored.remove(&package.name) {
                None => {
                    limits::check_tool_room(&mut self.tx, &bundle.tenant, &package).await?;
                    self.add_package_tool(bundle, &package).await.map_err(failed_to(INSTALL))?;
                    added.push(name);
                }
                Some(tool) => {
                    if self.update_package_tool(&tool, package).await.map_err(failed_to(INSTALL))? {
                        changed.push(name);
                    }
                }
            }
        }
        for tool in stored.into_values() {
            removed.push(tool.spec.name.to_string());
            self.remove_tool(tool.id).await.map_err(failed_to(INSTALL))?;
        }
        removed.sort();
        Ok((added, changed, removed))
    }

    async fn add_package_tool(&mut self, bundle: &Bundle, spec: &ToolSpec) -> Result<(), sqlx::Error> {
        let id = ToolId(time::new_id(&*self.db.clock));
        self.delete_missing(bundle.id, &spec.name, &spec.version).await?;
        self.insert_tool(ToolInsert {
            id,
            bundle,
            spec,
            status: Status::Published,
            enabled: true,
            source: Source::Toolset,
            file: ToolFile::default(),
            at: self.db.now(),
        })
        .await?;
        self.save_package_spec(id, spec).await
    }

    /// Updates a tool; returns whether it changed.
    async fn update_package_tool(&mut self, tool: &Tool, package: ToolSpec) -> Result<bool, sqlx::Error> {
        let mut spec = package.clone();
        if let Some(before) = self.package_spec(tool.id).await? {
            keep_settings(&mut spec, &tool.spec, &before);
        }
        self.save_package_spec(tool.id, &package).await?;
        let is_changed = spec != *tool.spec;
        if is_changed {
            self.append_revision(tool, &spec, self.db.now()).await?;
        }
        if is_changed || tool.status != Status::Published {
            let sql = "UPDATE tools SET published_revision = revision, fault = NULL, status = 'published', \
                       published_at = $1 WHERE id = $2";
            let query = sqlx::query(sql).bind(self.db.now().as_microsecond()).bind(tool.id.to_string());
            query.execute(&mut *self.tx).await?;
            self.mark_tool_changed(tool.id);
        }
        Ok(is_changed)
    }

    async fn package_spec(&mut self, id: ToolId) -> Result<Option<ToolSpec>, sqlx::Error> {
        let query = sqlx::query("SELECT spec FROM toolset_tools WHERE tool_id = $1").bind(id.to_string());
        let found = query.fetch_optional(&mut *self.tx).await?;
        found.as_ref().map(|row| rows::json_column(row, "spec")).transpose()
    }

    async fn save_package_spec(&mut self, id: ToolId, spec: &ToolSpec) -> Result<(), sqlx::Error> {
        let sql = "INSERT INTO toolset_tools (tool_id, spec) VALUES ($1, $2) \
                   ON CONFLICT (tool_id) DO UPDATE SET spec = excluded.spec";
        let spec = serde_json::to_string(spec).map_err(encode)?;
        sqlx::query(sql).bind(id.to_string()).bind(spec).execute(&mut *self.tx).await?;
        Ok(())
    }

    async fn save_toolset(
        &mut self,
        tenant: &TenantId,
        toolset: &InstalledToolset,
        archive: &[u8],
    ) -> Result<(), sqlx::Error> {
        let sql = "INSERT INTO toolsets (tenant, id, package, previous, body) VALUES ($1, $2, $3, $4, $5) \
                   ON CONFLICT (tenant, id) DO UPDATE SET package = excluded.package, previous = excluded.previous, \
                   body = excluded.body";
        sqlx::query(sql)
            .bind(tenant.as_str())
            .bind(toolset.id.as_str())
            .bind(&toolset.package)
            .bind(toolset.previous.as_deref())
            .bind(serde_json::to_string(toolset).map_err(encode)?)
            .execute(&mut *self.tx)
            .await?;
        for (part, bytes) in archive.chunks(PART).enumerate() {
            let sql = "INSERT INTO toolset_packages (tenant, hash, part, data) VALUES ($1, $2, $3, $4) \
                       ON CONFLICT (tenant, hash, part) DO NOTHING";
            sqlx::query(sql)
                .bind(tenant.as_str())
                .bind(&toolset.package)
                .bind(i64::try_from(part).unwrap_or(i64::MAX))
                .bind(STANDARD.encode(bytes))
                .execute(&mut *self.tx)
                .await?;
        }
        self.remove_unused_packages(tenant).await
    }

    /// Removes the packages that no toolset has or can be rolled back to.
    async fn remove_unused_packages(&mut self, tenant: &TenantId) -> Result<(), sqlx::Error> {
        let sql = "DELETE FROM toolset_packages WHERE tenant = $1 AND NOT EXISTS (SELECT 1 FROM toolsets t \
                   WHERE t.tenant = toolset_packages.tenant \
                   AND (t.package = toolset_packages.hash OR t.previous = toolset_packages.hash))";
        sqlx::query(sql).bind(tenant.as_str()).execute(&mut *self.tx).await?;
        Ok(())
    }
}
