//! The pipelines for executors, which exist before the store does.

use std::sync::{Arc, OnceLock, Weak};

use haft_core::BoxFuture;
use haft_core::executor::CallContext;
use haft_core::implementation::Kind;
use haft_core::name::TenantId;
use haft_core::outcome::{CallError, ErrorCode};
use haft_core::retrieval::{Retrieval, RetrievalQuery, Retrieved};

use super::host::RetrievalHost;

/// The host, once the installation is open. Weak, because the host refers to the store, which refers to the registry,
/// which owns the executors.
#[derive(Default)]
pub struct RetrievalHandle(OnceLock<Weak<RetrievalHost>>);

impl RetrievalHandle {
    /// Sets the host, once.
    pub fn connect(&self, host: &Arc<RetrievalHost>) {
        let _ = self.0.set(Arc::downgrade(host));
    }

    fn host(&self) -> Option<Arc<RetrievalHost>> {
        self.0.get().and_then(Weak::upgrade)
    }
}

impl Retrieval for RetrievalHandle {
    fn query<'a>(
        &'a self,
        call: &'a CallContext,
        pipeline: &'a str,
        query: RetrievalQuery,
    ) -> BoxFuture<'a, Result<Retrieved, CallError>> {
        Box::pin(async move {
            let host = self.host();
            let host = host
                .ok_or_else(|| CallError::new(ErrorCode::Cancelled, "the server is starting or stopping"))?;
            host.query_within(call, Kind::RagRetrieval.as_str(), pipeline, query).await
        })
    }

    fn exists(&self, tenant: &TenantId, pipeline: &str) -> bool {
        // Before the store is open nothing is known to be missing.
        self.host().is_none_or(|host| host.has_pipeline(tenant, pipeline))
    }
}
