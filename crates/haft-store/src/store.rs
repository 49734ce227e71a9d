//! The store: its state, opening and closing.

use std::collections::{HashMap, HashSet};
use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicI64};
use std::sync::{Arc, RwLock};

use futures_util::TryStreamExt as _;
use haft_core::catalog::{Change, ChangeSink, StoreError};
use haft_core::id::{BundleId, ToolId};
use haft_core::name::{BundleSlug, TenantId, ToolName};
use haft_core::secret::Secret;
use haft_core::spec::ToolSpec;
use haft_core::tool::Tool;
use haft_core::{Clock, Timestamp};
use haft_definition::folder::FileStamp;
use sqlx::Row as _;
use tokio::sync::{Mutex, Notify, watch};

use crate::engine::{Engine, failed_to};
use crate::files::Files;
use crate::files::reserve::Reserve;
use crate::ledger::LedgerBackend;
use crate::ledger::database::{self, GroupCommitParts};
use crate::ledger::health::LedgerHealth;
use crate::ledger::journal::Journal;
use crate::ledger::unsaved::UnsavedCalls;
use crate::ledger::usage::LedgerUsage;
use crate::nodes::Leases;
use crate::resources::FileScope;
use crate::runs::signals::RunSignals;
use crate::settings::{Retention, StoreSettings};
use crate::vault::Vault;
use crate::watch::reports::ChangeReports;
use crate::webhooks::Outbox;
use crate::{audit, migrate, rows, time};

/// The SQLite file in the home folder.
const DATABASE_FILE: &str = "haft.db";
const GENERATION: &str = "SELECT value FROM generation WHERE one = 1";

/// The persistent data of haft.
pub struct Store {
    pub(crate) inner: Arc<Inner>,
}

/// The state that the tasks of the store share.
pub(crate) struct Inner {
    pub(crate) engine: Engine,
    pub(crate) files: Option<Files>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) state: Mutex<State>,
    /// The id of this process among those that share the database.
    pub(crate) node: String,
    pub(crate) keep_days: u32,
    pub(crate) retention: Retention,
    pub(crate) ledger: LedgerBackend,
    pub(crate) usage: Arc<LedgerUsage>,
    pub(crate) health: LedgerHealth,
    /// The calls of dead processes wait for room on the disk.
    pub(crate) recovery_due: AtomicBool,
    pub(crate) unsaved: UnsavedCalls,
    pub(crate) vault: Vault,
    pub(crate) database_url: Option<Secret>,
    /// With PostgreSQL, what is known of the other nodes.
    pub(crate) leases: Leases,
    /// Signals that there may be calls in the queue.
    pub(crate) queue_changed: Notify,
    /// The tenant whose queued call was claimed last: the next claim begins after it.
    pub(crate) queue_cursor: Mutex<String>,
    /// Workspaces that changed before this time have no surplus states.
    pub(crate) workspaces_reaped_to: AtomicI64,
    /// What the tasks of this process tell each other about runs of agents.
    pub(crate) runs: RunSignals,
    pub(crate) sink: Arc<dyn ChangeSink>,
    /// Changes of objects that are reported soon.
    pub(crate) reports: ChangeReports,
    /// Which events are delivered to webhooks.
    pub(crate) outbox: Arc<Outbox>,
    /// The names of the built-in tools of this program, when they are set.
    pub(crate) built_in_names: RwLock<Option<HashSet<ToolName>>>,
    /// Changes whenever the tokens may have changed.
    pub(crate) tokens: watch::Sender<u64>,
    /// Changes whenever approvals may have changed.
    pub(crate) approvals: watch::Sender<u64>,
    /// Changes whenever the policy rules may have changed.
    pub(crate) policies: watch::Sender<u64>,
}

/// The index as this process has loaded it. The lock serialises all changes.
#[derive(Default)]
pub(crate) struct State {
    /// All definition files, by path.
    pub(crate) files: HashMap<String, IndexedFile>,
    /// All bundles that may have a folder.
    pub(crate) bundles: HashMap<(TenantId, BundleSlug), IndexedBundle>,
    /// The last announced generation of the catalog.
    pub(crate) generation: i64,
}

/// A definition file when it was last read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct IndexedFile {
    pub(crate) stamp: FileStamp,
    /// Its tool; `None` if the file is invalid.
    pub(crate) tool: Option<ToolId>,
}

/// A bundle when its folder was last read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct IndexedBundle {
    pub(crate) id: BundleId,
    /// The stamp of its `bundle.yaml`.
    pub(crate) stamp: Option<FileStamp>,
}

impl Store {
    /// Opens the store: migrates the database, syncs the index with the files, and announces the whole catalog.
    pub async fn open(
        settings: StoreSettings,
        clock: Arc<dyn Clock>,
        sink: Arc<dyn ChangeSink>,
    ) -> Result<Arc<Store>, StoreError> {
        let vault = Vault::new(&settings)?;
        let has_room = prepare_disk(&settings).await;
        let (engine, files) = open_engine(&settings).await?;
        migrate::run(&engine).await?;
        let node = time::new_id(&*clock).to_string();
        let usage = Arc::new(LedgerUsage::new(&engine, settings.retention.ledger_limits()));
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
        let inner = Arc::new(Inner {
            node,
            engine,
            files,
            clock,
            state: Mutex::default(),
            keep_days: settings.keep_days,
            retention: settings.retention,
            ledger,
            usage,
            health: LedgerHealth::default(),
            recovery_due: AtomicBool::new(false),
            unsaved: UnsavedCalls::default(),
            vault,
            database_url: settings.database_url,
            leases: Leases::new(settings.lease),
            queue_changed: Notify::new(),
            queue_cursor: Mutex::default(),
            workspaces_reaped_to: AtomicI64::new(0),
            runs: RunSignals::default(),
            sink,
            reports: ChangeReports::default(),
            outbox,
            built_in_names: RwLock::default(),
            tokens: watch::Sender::new(0),
            approvals: watch::Sender::new(0),
            policies: watch::Sender::new(0),
        });
        inner.verify_key().await?;
        // Before calls are recovered: webhooks get the end of those.
        inner.load_webhooks().await?;
        inner.begin_lease().await?;
        if has_room {
            inner.recover().await?;
        } else {
            inner.defer_recovery();
        }
        inner.ensure_default_tenant().await?;
        inner.reload().await?;
        inner.read_files(has_room).await?;
        Ok(Arc::new(Store { inner }))
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
        match &self.inner.ledger {
            LedgerBackend::Database(group_commit) => group_commit.flush().await,
            LedgerBackend::Journal(journal) => {
                journal.close();
                match self.inner.drain_journal().await {
                    Ok(()) => drop(self.inner.with_journal(Journal::remove).await),
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
        if let Err(error) = self.inner.usage.enforce().await {
            tracing::warn!(%error, "cannot store the size of the ledger");
        }
        self.inner.end_lease().await;
        self.inner.engine.close().await;
    }

    /// Runs a change to completion even if the caller stops waiting: a change must not be left half done.
    pub(crate) async fn run<T, F>(&self, work: impl FnOnce(Arc<Inner>) -> F + Send) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        match tokio::spawn(audit::in_current_request(work(Arc::clone(&self.inner)))).await {
            Ok(result) => result,
            Err(error) => Err(StoreError::unavailable("change the store", error)),
        }
    }
}

/// Makes room for the start on a full disk; returns whether calls can be recorded.
async fn prepare_disk(settings: &StoreSettings) -> bool {
    let (None, Some(home)) = (&settings.database_url, &settings.home) else { return true };
    let reserve = Reserve::new(home);
    // A home folder that does not exist yet is created next.
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

impl Inner {
    /// Returns the current time in the precision of the tables.
    pub(crate) fn now(&self) -> Timestamp {
        time::now(&*self.clock)
    }

    /// Brings the index up to date with the files when the store opens.
    async fn read_files(&self, has_room: bool) -> Result<(), StoreError> {
        let Some(files) = &self.files else { return Ok(()) };
        files.clean_history().await?;
        if has_room {
            // Undoes what a crash interrupted, before the files are read.
            drop(self.session().await?);
        }
        match self.sync().await {
            // The catalog is that of the last sync.
            Err(error) if !has_room => {
                tracing::error!(error = &error as &dyn std::error::Error, "changed files are not read");
            }
            result => drop(result?),
        }
        if let Err(error) = self.sync_resource_files(FileScope::Changed).await {
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

    /// Announces changes to the sink.
    pub(crate) fn announce(&self, changes: &[Change]) {
        if !changes.is_empty() {
            self.sink.apply(changes.to_vec());
        }
    }

    /// Loads and announces the whole catalog.
    pub(crate) async fn reload(&self) -> Result<(), StoreError> {
        let mut state = self.state.lock().await;
        let (fresh, everything) = self.load().await.map_err(failed_to("load the catalog"))?;
        let everything = self.mark_missing_built_ins(everything);
        *state = fresh;
        self.sink.replace(everything);
        self.signal_token_change();
        self.signal_policy_change();
        self.load_webhooks().await?;
        self.open_vault().await
    }

    /// Returns the generation in the database.
    pub(crate) async fn generation(&self) -> Result<i64, sqlx::Error> {
        sqlx::query(GENERATION).fetch_one(&self.engine.pool).await?.try_get(0)
    }

    /// Reads the whole catalog as it is at one moment: a tool is never read with an earlier state of its bundle.
    async fn load(&self) -> Result<(State, Vec<Change>), sqlx::Error> {
        let mut tx = self.engine.begin_snapshot().await?;
        let generation = sqlx::query(GENERATION).fetch_one(&mut *tx).await?.try_get(0)?;
        let mut state = State { generation, ..State::default() };
        // One by one: all rows at once would take as much memory as all tools.
        let mut tools = Vec::new();
        let mut found = sqlx::query(rows::TOOL).fetch(&mut *tx);
        let mut texts = HashSet::new();
        while let Some(row) = found.try_next().await? {
            let mut tool = rows::tool(&row)?;
            share_schemas(&mut tool, &mut texts);
            tools.push(Change::Tool(Box::new(tool)));
        }
        drop(found);
        let mut everything = Vec::new();
        let bundles = "SELECT id, tenant, slug, display_name, description, enabled, kind, created_at, \
                       modified_at, soft_deleted_at, stamp FROM bundles";
        for row in sqlx::query(bundles).fetch_all(&mut *tx).await? {
            let bundle = rows::bundle(&row)?;
            if !bundle.kind.is_read_only() {
                let stamp = row.try_get::<Option<String>, _>("stamp")?.map(FileStamp::from_text);
                let key = (bundle.tenant.clone(), bundle.slug.clone());
                state.bundles.insert(key, IndexedBundle { id: bundle.id, stamp });
            }
            everything.push(Change::Bundle(bundle));
        }
        everything.append(&mut tools);
        for row in sqlx::query(rows::UNREADABLE).fetch_all(&mut *tx).await? {
            everything.push(Change::Unreadable(rows::unreadable(&row)?));
        }
        let files = "SELECT path, id, stamp FROM tools WHERE path IS NOT NULL \
                     UNION ALL SELECT path, NULL, stamp FROM unreadable";
        for row in sqlx::query(files).fetch_all(&mut *tx).await? {
            let tool = match row.try_get::<Option<&str>, _>("id")? {
                Some(_) => Some(rows::parse_column(&row, "id")?),
                None => None,
            };
            let stamp = FileStamp::from_text(row.try_get::<Option<String>, _>("stamp")?.unwrap_or_default());
            state.files.insert(row.try_get("path")?, IndexedFile { stamp, tool });
        }
        Ok((state, everything))
    }
}

/// Lets equal schemas of tools share their text.
fn share_schemas(tool: &mut Tool, texts: &mut HashSet<Arc<str>>) {
    // The published definition is usually the newest one; then both stay one object.
    let is_newest = |(_, spec): &mut (u32, Arc<ToolSpec>)| Arc::ptr_eq(spec, &tool.spec);
    let published = tool.published.take_if(is_newest).map(|(number, _)| number);
    if let Some(spec) = Arc::get_mut(&mut tool.spec) {
        spec.input_schema.share(texts);
        spec.output_schema.share(texts);
    }
    if let Some(number) = published {
        tool.published = Some((number, Arc::clone(&tool.spec)));
    }
}

#[cfg(test)]
#[path = "store_tests.rs"]
pub(crate) mod tests;
