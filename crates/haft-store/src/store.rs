//! The store itself: what it holds, how it opens and closes.

use std::collections::{HashMap, HashSet};
use std::future::Future;
use std::sync::{Arc, RwLock};

use haft_core::catalog::{Change, ChangeSink, StoreError};
use haft_core::id::{BundleId, ToolId};
use haft_core::name::{BundleSlug, TenantId, ToolName};
use haft_core::secret::Secret;
use haft_core::{Clock, Timestamp};
use sqlx::Row as _;
use tokio::sync::{Mutex, watch};

use crate::engine::{Engine, fault};
use crate::files::Files;
use crate::files::stamp::Stamp;
use crate::ledger::health::Health;
use crate::ledger::journal::Journal;
use crate::ledger::{Durability, Group, Ledgers};
use crate::search::SearchIndex;
use crate::settings::{Retention, StoreSettings};
use crate::vault::Vault;
use crate::{audit, migrate, rows, time};

/// The name of the SQLite file in the home folder.
const DATABASE: &str = "haft.db";

/// Everything haft keeps.
pub struct Store {
    pub(crate) inner: Arc<Inner>,
}

/// What tasks of the store share.
pub(crate) struct Inner {
    pub(crate) engine: Engine,
    pub(crate) files: Option<Files>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) search: SearchIndex,
    pub(crate) state: Mutex<State>,
    /// Names this process among those that share the database.
    pub(crate) node: String,
    pub(crate) keep_days: u32,
    pub(crate) retention: Retention,
    pub(crate) ledger: Ledgers,
    pub(crate) health: Health,
    pub(crate) vault: Vault,
    pub(crate) database_url: Option<Secret>,
    /// With PostgreSQL, says to the other nodes that this one lives.
    alive: Mutex<Option<sqlx::pool::PoolConnection<sqlx::Any>>>,
    sink: Arc<dyn ChangeSink>,
    /// The built-in tools of this program, once it has named them.
    pub(crate) compiled_in: RwLock<Option<HashSet<ToolName>>>,
    /// Moves whenever the tokens may have changed.
    pub(crate) tokens: watch::Sender<u64>,
}

/// What the holder of the turn to write may look at.
#[derive(Default)]
pub(crate) struct State {
    /// Every definition file that was read, by path.
    pub(crate) files: HashMap<String, KnownFile>,
    /// Every bundle that is not built in.
    pub(crate) bundles: HashMap<(TenantId, BundleSlug), KnownBundle>,
    /// The generation of the catalog that was last announced.
    pub(crate) generation: i64,
}

/// A definition file as it was last read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KnownFile {
    pub(crate) stamp: Stamp,
    /// Its tool; `None` where the file cannot be read.
    pub(crate) tool: Option<ToolId>,
}

/// A bundle as its folder was last read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KnownBundle {
    pub(crate) id: BundleId,
    /// The stamp of its `bundle.yaml`.
    pub(crate) stamp: Option<Stamp>,
}

impl Store {
    /// Opens the store: migrates, repairs the index from the files, and announces everything.
    pub async fn open(
        settings: StoreSettings,
        clock: Arc<dyn Clock>,
        sink: Arc<dyn ChangeSink>,
    ) -> Result<Arc<Store>, StoreError> {
        let vault = Vault::new(&settings)?;
        let (engine, files) = open_engine(&settings).await?;
        migrate::run(&engine).await?;
        let node = time::new_id(&*clock).to_string();
        let alive = engine.hold(&node).await.map_err(fault("take the lock of this node"))?;
        let ledger = match &files {
            None => Ledgers::Group(Group::new()),
            Some(files) => {
                let name = node.clone();
                let durability = if settings.sync_to_disk { Durability::Disk } else { Durability::System };
                let doing = "start the call journal".to_owned();
                let journal = files.run(doing, move |home| Journal::open(home, &name, durability)).await?;
                Ledgers::Journal(Box::new(journal))
            }
        };
        let inner = Arc::new(Inner {
            node,
            engine,
            files,
            clock,
            search: SearchIndex::default(),
            state: Mutex::default(),
            keep_days: settings.keep_days,
            retention: settings.retention,
            ledger,
            health: Health::default(),
            vault,
            database_url: settings.database_url,
            alive: Mutex::new(alive),
            sink,
            compiled_in: RwLock::default(),
            tokens: watch::Sender::new(0),
        });
        inner.recover().await?;
        inner.reload().await?;
        if let Some(files) = &inner.files {
            files.clean_history().await?;
            inner.sync().await?;
        }
        Ok(Arc::new(Store { inner }))
    }

    /// Returns the index that ranks tools by a query; it follows every change.
    pub fn search(&self) -> &SearchIndex {
        &self.inner.search
    }

    /// Moves the last calls to the database and closes it. Stop the tasks of [`Store::watch`] first.
    pub async fn close(&self) {
        match &self.inner.ledger {
            Ledgers::Group(group) => group.flush(&self.inner.engine, &self.inner.node).await,
            Ledgers::Journal(journal) => {
                journal.close();
                match self.inner.fold().await {
                    Ok(()) => drop(self.inner.journal(Journal::remove).await),
                    // They stay in the journal; the next start finds them.
                    Err(error) => {
                        tracing::error!(
                            error = &error as &dyn std::error::Error,
                            "calls stay in the journal"
                        );
                    }
                }
            }
        }
        drop(self.inner.alive.lock().await.take());
        self.inner.engine.close().await;
    }

    /// Runs a change to its end even if the caller stops waiting: half a change must not exist.
    pub(crate) async fn run<T, F>(&self, work: impl FnOnce(Arc<Inner>) -> F + Send) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        match tokio::spawn(audit::carried(work(Arc::clone(&self.inner)))).await {
            Ok(result) => result,
            Err(error) => Err(StoreError::unavailable("change the store", error)),
        }
    }
}

async fn open_engine(settings: &StoreSettings) -> Result<(Engine, Option<Files>), StoreError> {
    match (&settings.database_url, &settings.home) {
        (Some(url), _) => Ok((Engine::postgres(url).await?, None)),
        (None, Some(home)) => {
            let files = Files::open(home)?;
            Ok((Engine::sqlite(&home.join(DATABASE)).await?, Some(files)))
        }
        (None, None) => {
            Err(StoreError::unavailable("open the store", "neither `home` nor `database_url` is set"))
        }
    }
}

impl Inner {
    /// Returns the present moment as the tables can keep it.
    pub(crate) fn now(&self) -> Timestamp {
        time::now(&*self.clock)
    }

    /// Tells the registry and the search index.
    pub(crate) fn announce(&self, changes: &[Change]) {
        if !changes.is_empty() {
            self.search.apply(changes);
            self.sink.apply(changes.to_vec());
        }
    }

    /// Reads the whole catalog and announces it.
    pub(crate) async fn reload(&self) -> Result<(), StoreError> {
        let mut state = self.state.lock().await;
        let (fresh, everything) = self.load().await.map_err(fault("load the catalog"))?;
        let everything = self.mark(everything);
        *state = fresh;
        self.search.replace(&everything);
        self.sink.replace(everything);
        self.tokens_moved();
        self.open_vault().await
    }

    /// Returns the generation that the database has now.
    pub(crate) async fn generation(&self) -> Result<i64, sqlx::Error> {
        sqlx::query("SELECT value FROM generation WHERE one = 1")
            .fetch_one(&self.engine.pool)
            .await?
            .try_get(0)
    }

    async fn load(&self) -> Result<(State, Vec<Change>), sqlx::Error> {
        // Read first: a change that comes in between is announced twice rather than never.
        let mut state = State { generation: self.generation().await?, ..State::default() };
        let mut everything = Vec::new();
        let pool = &self.engine.pool;
        let bundles = "SELECT id, tenant, slug, display_name, description, enabled, built_in, created_at, \
                       modified_at, soft_deleted_at, stamp FROM bundles";
        for row in sqlx::query(bundles).fetch_all(pool).await? {
            let bundle = rows::bundle(&row)?;
            if !bundle.built_in {
                let stamp = row.try_get::<Option<String>, _>("stamp")?.map(Stamp);
                let key = (bundle.tenant.clone(), bundle.slug.clone());
                state.bundles.insert(key, KnownBundle { id: bundle.id, stamp });
            }
            everything.push(Change::Bundle(bundle));
        }
        for row in sqlx::query(rows::TOOL).fetch_all(pool).await? {
            everything.push(Change::Tool(Box::new(rows::tool(&row)?)));
        }
        for row in sqlx::query(rows::UNREADABLE).fetch_all(pool).await? {
            everything.push(Change::Unreadable(rows::unreadable(&row)?));
        }
        let known = "SELECT path, id, stamp FROM tools WHERE path IS NOT NULL \
                     UNION ALL SELECT path, NULL, stamp FROM unreadable";
        for row in sqlx::query(known).fetch_all(pool).await? {
            let tool = match row.try_get::<Option<&str>, _>("id")? {
                Some(_) => Some(rows::parsed(&row, "id")?),
                None => None,
            };
            let stamp = Stamp(row.try_get::<Option<String>, _>("stamp")?.unwrap_or_default());
            state.files.insert(row.try_get("path")?, KnownFile { stamp, tool });
        }
        Ok((state, everything))
    }
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
