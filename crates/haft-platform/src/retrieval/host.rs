//! What a node does with pipelines.

use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use haft_agent::model::ModelEgress;
use haft_core::catalog::StoreError;
use haft_core::implementation::Implementation;
use haft_core::name::TenantId;
use haft_core::secret::SecretSource;
use haft_core::tool::Tool;
use haft_executors::egress::Egress;
use haft_store::Store;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::indexes::Indexes;
use crate::known_names::KnownNames;
use crate::settings::RetrievalSettings;

/// How many documents a node reads at once.
const MAX_INGESTING: usize = 2;
/// How long documents that are being read may take to stop.
const STOP_TIMEOUT: Duration = Duration::from_secs(3);

/// What pipelines need.
pub struct HostParts {
    pub store: Arc<Store>,
    pub secrets: Arc<dyn SecretSource>,
    /// The guard of documents that are fetched.
    pub egress: Egress,
    /// The guard of embedding models.
    pub models: ModelEgress,
    pub settings: RetrievalSettings,
}

/// The pipelines of a node.
pub struct RetrievalHost {
    pub(super) parts: HostParts,
    pub(super) indexes: Indexes,
    /// The pipeline of calls, once the installation is open. Weak, because it owns the tools that query.
    pub(super) calls: OnceLock<Weak<haft_runtime::pipeline::Pipeline>>,
    names: KnownNames,
    /// Limits how many documents are read at once.
    pub(super) ingesting: Arc<Semaphore>,
    pub(super) tasks: TaskTracker,
    pub(super) stop: CancellationToken,
}

impl RetrievalHost {
    /// Opens the pipelines.
    pub async fn open(parts: HostParts) -> Result<Arc<Self>, StoreError> {
        let host = Arc::new(Self {
            indexes: Indexes::new(parts.settings.max_index_bytes),
            parts,
            calls: OnceLock::new(),
            names: KnownNames::default(),
            ingesting: Arc::new(Semaphore::new(MAX_INGESTING)),
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
        });
        host.refresh_names().await?;
        Ok(host)
    }

    /// Sets the pipeline of calls that queries pass, once.
    pub fn connect(&self, calls: &Arc<haft_runtime::pipeline::Pipeline>) {
        let _ = self.calls.set(Arc::downgrade(calls));
    }

    /// Returns whether a tenant has a pipeline, as far as this node knows.
    pub fn has_pipeline(&self, tenant: &TenantId, reference: &str) -> bool {
        self.names.find(tenant, reference).is_some()
    }

    /// Returns why a tool cannot be published, if it queries a pipeline that is a draft.
    pub async fn draft_pipeline_of(&self, tool: &Tool) -> Option<String> {
        let Implementation::RagRetrieval(rag) = &tool.spec.implementation else { return None };
        // A global tool uses the pipeline that each tenant has under this name.
        let found = self
            .parts
            .store
            .documents()
            .queried_pipeline(&tool.tenant, &rag.pipeline_id)
            .await
            .ok()
            .flatten()?;
        found.published.is_none().then(|| {
            let slug = &found.definition.slug;
            format!("pipeline `{slug}` is a draft; publish it first with `haft pipeline publish {slug}`")
        })
    }

    /// Reads the names of pipelines again if they have changed.
    pub async fn refresh_names(&self) -> Result<(), StoreError> {
        if let Some(found) = self.parts.store.pipelines().names(self.names.counter()).await? {
            let names = found.names.into_iter().flat_map(|pipeline| {
                [(pipeline.tenant.clone(), pipeline.slug, 0), (pipeline.tenant, pipeline.id, 0)]
            });
            self.names.replace(found.counter, names);
        }
        Ok(())
    }

    /// Stops reading documents: what is not complete is read again after the next start.
    pub async fn stop(&self) {
        self.stop.cancel();
        self.tasks.close();
        let _ = tokio::time::timeout(STOP_TIMEOUT, self.tasks.wait()).await;
    }
}
