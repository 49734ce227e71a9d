//! The store: its state, opening and closing.

use std::sync::Arc;

use haft_core::Clock;
use haft_core::agent::AgentDefinition;
use haft_core::artifact::ArtifactDefinition;
use haft_core::catalog::{ChangeSink, StoreError};
use haft_core::retrieval::PipelineDefinition;
use tokio::sync::Mutex;

use crate::access::Access;
use crate::accounts::StoredAccounts;
use crate::approvals::StoredApprovals;
use crate::audit_log::AuditLog;
use crate::catalog::Catalog;
use crate::chats::Chats;
use crate::database::Database;
use crate::database::nodes::Leases;
use crate::database::reports::ChangeReports;
use crate::engine::{Engine, failed_to};
use crate::files::Files;
use crate::files::reserve::Reserve;
use crate::ledger::Calls;
use crate::ledger::LedgerBackend;
use crate::ledger::database::{self, GroupCommitParts};
use crate::ledger::journal::Journal;
use crate::ledger::usage::{LedgerLimits, LedgerUsage};
use crate::limits::Limits;
use crate::outbox::Outbox;
use crate::pipelines::Documents;
use crate::policies::Policies;
use crate::reaper::{ReapReport, Reaper};
use crate::resources::{FileScope, Resources, StoredKind};
use crate::runs::Runs;
use crate::settings::StoreSettings;
use crate::tenants::Tenants;
use crate::vault::{KeySource, NewKey, Vault};
use crate::watch::{Recovery, RemoteChanges};
use crate::webhooks::Webhooks;
use crate::workspaces::Workspaces;
use crate::{migrate, time};

/// The SQLite file in the home folder.
const DATABASE_FILE: &str = "haft.db";

/// The persistent data of haft: one part for each domain, over one database layer.
pub struct Store {
    pub(crate) db: Arc<Database>,
    access: Access,
    accounts: StoredAccounts,
    approvals: StoredApprovals,
    audit: AuditLog,
    pub(crate) calls: Calls,
    pub(crate) catalog: Catalog,
    chats: Chats,
    documents: Documents,
    limits: Limits,
    policies: Policies,
    pub(crate) runs: Runs,
    tenants: Tenants,
    vault: Vault,
    webhooks: Webhooks,
    workspaces: Workspaces,
    /// The background loops.
    pub(crate) changes: RemoteChanges,
    pub(crate) reaper: Reaper,
    pub(crate) recovery: Recovery,
}

impl Store {
    /// Opens the store: migrates the database, syncs the index with the files, and announces the whole catalog.
    pub async fn open(
        settings: StoreSettings,
        clock: Arc<dyn Clock>,
        sink: Arc<dyn ChangeSink>,
    ) -> Result<Arc<Store>, StoreError> {
        let keys = KeySource::of(&settings)?;
        let has_room = prepare_disk(&settings).await;
        let (engine, files) = open_engine(&settings).await?;
        migrate::run(&engine).await?;
        let node = time::new_id(&*clock).to_string();
        let usage = Arc::new(LedgerUsage::new(&engine, LedgerLimits::of(&settings.retention)));
        let outbox = Arc::new(Outbox::default());
        let sync = settings.sync;
        let ledger = match &files {
            None => LedgerBackend::Database({
                let parts = GroupCommitParts { engine: &engine, node: &node, usage: &usage, outbox: &outbox };
                database::group_commit(&parts, sync)
            }),
            Some(files) => {
                let name = node.clone();
                let action = "open the call journal".to_owned();
                let journal = files.run(action, move |home| Journal::open(home, &name, sync)).await?;
                LedgerBackend::Journal(Box::new(journal))
            }
        };
        let db = Arc::new(Database {
            engine,
            files,
            clock,
            node,
            url: settings.database_url,
            leases: Leases::new(settings.lease),
            retention: settings.retention,
            sink,
            reports: ChangeReports::default(),
            outbox,
            generation: Mutex::default(),
        });
        let store = Self::of_parts(db, LedgerParts { backend: ledger, usage }, settings.keep_days, keys);
        store.vault.verify_key().await?;
        if let Err(error) = store.vault.seal_signing_keys(NewKey::Never).await {
            // A full disk must not prevent the start.
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "the signing keys are not encrypted yet"
            );
        }
        // Before calls are recovered: webhooks get the end of those.
        store.webhooks.load().await?;
        store.db.begin_lease().await?;
        if has_room {
            store.recovery.recover().await?;
        } else {
            store.calls.defer_recovery();
        }
        store.tenants.ensure_default().await?;
        store.changes.reload().await?;
        store.read_files(has_room).await?;
        Ok(Arc::new(store))
    }

    fn of_parts(db: Arc<Database>, ledger: LedgerParts, keep_days: u32, keys: KeySource) -> Self {
        let vault = Vault::new(&db, keys);
        let calls = Calls::new(&db, ledger.backend, &ledger.usage, keep_days);
        let runs = Runs::new(&db, &calls);
        let (access, policies) = (Access::new(&db), Policies::new(&db));
        let (catalog, webhooks) = (Catalog::new(&db, &policies), Webhooks::new(&db, &vault));
        let changes = RemoteChanges {
            db: Arc::clone(&db),
            access: access.clone(),
            calls: calls.clone(),
            catalog: catalog.clone(),
            policies: policies.clone(),
            runs: runs.clone(),
            vault: vault.clone(),
            webhooks: webhooks.clone(),
        };
        let tenants = Tenants::new(&changes);
        let (approvals, chats) = (StoredApprovals::new(&db, &calls), Chats::new(&db, &runs));
        let (limits, workspaces) = (Limits::new(&db, &ledger.usage), Workspaces::new(&db));
        let (audit, accounts) = (AuditLog::new(&db), StoredAccounts::new(&db, &vault));
        let reaper = Reaper {
            db: Arc::clone(&db),
            access: access.clone(),
            accounts: accounts.clone(),
            approvals: approvals.clone(),
            audit: audit.clone(),
            calls: calls.clone(),
            catalog: catalog.clone(),
            chats: chats.clone(),
            limits: limits.clone(),
            runs: runs.clone(),
            tenants: tenants.clone(),
            vault: vault.clone(),
            webhooks: webhooks.clone(),
            workspaces: workspaces.clone(),
        };
        let recovery = Recovery { calls: calls.clone(), runs: runs.clone(), approvals: approvals.clone() };
        Self {
            documents: Documents::new(&db),
            db,
            access,
            accounts,
            approvals,
            audit,
            calls,
            catalog,
            chats,
            limits,
            policies,
            runs,
            tenants,
            vault,
            webhooks,
            workspaces,
            changes,
            reaper,
            recovery,
        }
    }

    /// Returns the access tokens, sessions and login links.
    pub fn access(&self) -> &Access {
        &self.access
    }

    /// Returns the accounts of people at providers.
    pub fn accounts(&self) -> &StoredAccounts {
        &self.accounts
    }

    /// Returns the approvals that calls need.
    pub fn approvals(&self) -> &StoredApprovals {
        &self.approvals
    }

    /// Returns the recorded calls and the queue.
    pub fn calls(&self) -> &Calls {
        &self.calls
    }

    /// Returns the chats.
    pub fn chats(&self) -> &Chats {
        &self.chats
    }

    /// Returns the runs of agents.
    pub fn runs(&self) -> &Runs {
        &self.runs
    }

    /// Returns the audit log.
    pub fn audit(&self) -> &AuditLog {
        &self.audit
    }

    /// Returns the documents of retrieval pipelines.
    pub fn documents(&self) -> &Documents {
        &self.documents
    }

    /// Returns the limits that nodes share.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Returns the policy rules.
    pub fn policies(&self) -> &Policies {
        &self.policies
    }

    /// Returns the stored credentials.
    pub fn vault(&self) -> &Vault {
        &self.vault
    }

    /// Returns the webhooks and their deliveries.
    pub fn webhooks(&self) -> &Webhooks {
        &self.webhooks
    }

    /// Returns the workspaces and their states.
    pub fn workspaces(&self) -> &Workspaces {
        &self.workspaces
    }

    /// Returns the resources of a kind.
    pub fn resources<S: StoredKind>(&self) -> Resources<'_, S> {
        Resources::new(&self.db)
    }

    /// Returns the agents.
    pub fn agents(&self) -> Resources<'_, AgentDefinition> {
        self.resources()
    }

    /// Returns the definitions of retrieval pipelines.
    pub fn pipelines(&self) -> Resources<'_, PipelineDefinition> {
        self.resources()
    }

    /// Returns the code artifacts.
    pub fn artifacts(&self) -> Resources<'_, ArtifactDefinition> {
        self.resources()
    }

    /// Returns the bundles, tools, toolsets and MCP servers.
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// Returns the tenants.
    pub fn tenants(&self) -> &Tenants {
        &self.tenants
    }

    /// Migrates the database to the newest schema and does nothing else.
    pub async fn migrate(settings: &StoreSettings) -> Result<(), StoreError> {
        let (engine, _) = open_engine(settings).await?;
        let migrated = migrate::run(&engine).await;
        engine.close().await;
        migrated
    }

    /// Drains the journal and closes the database. Stop the tasks of [`Store::watch`] first.
    pub async fn close(&self) {
        match &self.calls.state.backend {
            LedgerBackend::Database(group_commit) => group_commit.flush().await,
            LedgerBackend::Journal(journal) => {
                journal.close();
                match self.calls.drain_journal().await {
                    Ok(()) => drop(self.calls.with_journal(Journal::remove).await),
                    // The next start recovers them.
                    Err(error) => {
                        tracing::error!(
                            error = &error as &dyn std::error::Error,
                            "calls stay in the journal"
                        );
                    }
                }
            }
        }
        if let Err(error) = self.calls.state.usage.enforce().await {
            tracing::warn!(%error, "cannot store the size of the ledger");
        }
        self.db.end_lease().await;
        self.db.engine.close().await;
        self.keep_reserve().await;
    }

    /// Reserves the remaining space after a start on a full disk, for the next start. Call it after the start; closing the
    /// store does it as well, because SQLite frees files then.
    pub async fn keep_reserve(&self) {
        let Some(files) = &self.db.files else { return };
        let reserve = files.reserve.clone();
        let kept = files.run("reserve space".into(), move |_| {
            reserve.reserve_remaining();
            Ok(())
        });
        drop(kept.await);
    }

    /// Removes bundles deleted 48 hours ago, calls older than `keep_days`, and other expired data.
    pub async fn reap(&self) -> Result<ReapReport, StoreError> {
        let reaper = self.reaper.clone();
        self.db.complete(async move { reaper.reap().await }).await
    }

    /// Checks that the database accepts writes.
    pub async fn ping(&self) -> Result<(), StoreError> {
        let action = "write to the database";
        let tx = self.db.engine.begin().await.map_err(failed_to(action))?;
        tx.rollback().await.map_err(failed_to(action))
    }

    /// Brings the index up to date with the files when the store opens.
    async fn read_files(&self, has_room: bool) -> Result<(), StoreError> {
        let Some(files) = &self.db.files else { return Ok(()) };
        files.clean_history().await?;
        if has_room {
            // Undoes what a crash interrupted, before the files are read.
            drop(self.catalog.state.session().await?);
        }
        match self.catalog.state.sync().await {
            // The catalog is that of the last sync.
            Err(error) if !has_room => {
                tracing::error!(error = &error as &dyn std::error::Error, "changed files are not read");
            }
            result => drop(result?),
        }
        if let Err(error) = self.db.sync_resource_files(FileScope::Changed).await {
            // The resources are those of the last sync.
            tracing::error!(
                error = &error as &dyn std::error::Error,
                "changed files of resources are not read"
            );
        }
        if has_room {
            // In a new home folder. A disk without room for it is full soon, and reports that itself.
            let reserve = files.reserve.clone();
            drop(files.run("reserve space".into(), move |_| reserve.ensure()).await);
        }
        Ok(())
    }
}

/// The parts that [`Calls`] is built from.
struct LedgerParts {
    backend: LedgerBackend,
    usage: Arc<LedgerUsage>,
}

/// Frees reserved space for a start on a full disk; returns whether calls can be recorded.
async fn prepare_disk(settings: &StoreSettings) -> bool {
    let (None, Some(home)) = (&settings.database_url, &settings.home) else { return true };
    let reserve = Reserve::new(home);
    // A new home folder is created later.
    if !home.exists() {
        return true;
    }
    tokio::task::spawn_blocking(move || reserve.prepare()).await.unwrap_or(true)
}

async fn open_engine(settings: &StoreSettings) -> Result<(Engine, Option<Files>), StoreError> {
    match (&settings.database_url, &settings.home) {
        (Some(url), _) => {
            let engine = Engine::postgres(url).await?;
            Ok((Engine { change_timeout: settings.change_timeout, ..engine }, None))
        }
        (None, Some(home)) => {
            let files = Files::open(home)?;
            Ok((Engine::sqlite(&home.join(DATABASE_FILE)).await?, Some(files)))
        }
        (None, None) => {
            Err(StoreError::unavailable("open the store", "neither `home` nor `database_url` is set"))
        }
    }
}

#[cfg(test)]
#[path = "store_tests.rs"]
pub(crate) mod tests;
