//! The catalog: the state that its operations share, and loading the whole catalog.

use std::collections::{HashMap, HashSet};
use std::future::Future;
use std::sync::{Arc, RwLock};

use futures_util::TryStreamExt as _;
use haft_core::catalog::{Change, StoreError};
use haft_core::id::{BundleId, ToolId};
use haft_core::name::{BundleSlug, TenantId, ToolName};
use haft_core::spec::ToolSpec;
use haft_core::tool::Tool;
use haft_definition::folder::FileStamp;
use sqlx::Row as _;
use tokio::sync::{Mutex, MutexGuard};

use crate::database::{Database, Generation, read_generation};
use crate::engine::failed_to;
use crate::policies::Policies;
use crate::rows;

/// Bundles, tools, toolsets and MCP servers, and the definition files that they are read from.
#[derive(Clone)]
pub struct Catalog {
    pub(crate) state: Arc<CatalogState>,
}

/// The state that the operations of the catalog share.
pub(crate) struct CatalogState {
    pub(crate) db: Arc<Database>,
    pub(super) policies: Policies,
    pub(crate) index: Mutex<FileIndex>,
    /// The names of the built-in tools of this program, once they are set.
    pub(super) built_in_names: RwLock<Option<HashSet<ToolName>>>,
}

/// The index of the definition files as this process has loaded it. The lock serialises all changes.
#[derive(Default)]
pub(crate) struct FileIndex {
    /// All definition files, by path.
    pub(crate) files: HashMap<String, IndexedFile>,
    /// All bundles that may have a folder.
    pub(crate) bundles: HashMap<(TenantId, BundleSlug), IndexedBundle>,
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

impl Catalog {
    pub(crate) fn new(db: &Arc<Database>, policies: &Policies) -> Self {
        let state = CatalogState {
            db: Arc::clone(db),
            policies: policies.clone(),
            index: Mutex::default(),
            built_in_names: RwLock::default(),
        };
        Self { state: Arc::new(state) }
    }

    /// Runs a change to completion even if the caller stops waiting.
    pub(super) fn run<T, F>(
        &self,
        work: impl FnOnce(Arc<CatalogState>) -> F + Send,
    ) -> impl Future<Output = Result<T, StoreError>> + Send
    where
        T: Send + 'static,
        F: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        // Boxed, to keep the futures of callers small.
        self.state.db.complete(Box::pin(work(Arc::clone(&self.state))))
    }
}

impl CatalogState {
    /// Announces changes to the sink.
    pub(crate) fn announce(&self, changes: &[Change]) {
        if !changes.is_empty() {
            self.db.sink.apply(changes.to_vec());
        }
    }

    /// Loads and announces the whole catalog. The next change begins when the returned lock is dropped.
    pub(crate) async fn reload(&self) -> Result<MutexGuard<'_, Generation>, StoreError> {
        let mut known = self.db.generation.lock().await;
        let mut index = self.index.lock().await;
        let (generation, fresh, everything) = self.load().await.map_err(failed_to("load the catalog"))?;
        let everything = self.mark_missing_built_ins(everything);
        *known = generation;
        *index = fresh;
        self.db.sink.replace(everything);
        Ok(known)
    }

    /// Reads a consistent snapshot of the whole catalog: a tool is never read with an earlier state of its bundle.
    pub(crate) async fn load(&self) -> Result<(Generation, FileIndex, Vec<Change>), sqlx::Error> {
        let mut tx = self.db.engine.begin_snapshot().await?;
        let generation = Generation(read_generation(&mut *tx).await?);
        let mut index = FileIndex::default();
        // Streamed: all rows at once would take as much memory as all tools.
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
                index.bundles.insert(key, IndexedBundle { id: bundle.id, stamp });
            }
            everything.push(Change::Bundle(bundle));
        }
        everything.append(&mut tools);
        for row in sqlx::query(rows::UNREADABLE).fetch_all(&mut *tx).await? {
            everything.push(Change::Unreadable(rows::unreadable(&row)?));
        }
        let files = "SELECT path, id, stamp FROM tools WHERE path IS NOT NULL AND gone_at IS NULL \
                     UNION ALL SELECT path, NULL, stamp FROM unreadable";
        for row in sqlx::query(files).fetch_all(&mut *tx).await? {
            let tool = match row.try_get::<Option<&str>, _>("id")? {
                Some(_) => Some(rows::parse_column(&row, "id")?),
                None => None,
            };
            let stamp = FileStamp::from_text(row.try_get::<Option<String>, _>("stamp")?.unwrap_or_default());
            index.files.insert(row.try_get("path")?, IndexedFile { stamp, tool });
        }
        Ok((generation, index, everything))
    }
}

/// Makes equal schemas of tools share their text.
fn share_schemas(tool: &mut Tool, texts: &mut HashSet<Arc<str>>) {
    // The published definition is usually the newest one; then both share one allocation.
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
