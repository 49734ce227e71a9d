//! The stored artifacts as this node knows them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;

use haft_core::BoxFuture;
use haft_core::artifact::{ArtifactVersion, CodeArtifacts, VersionSelector};
use haft_core::catalog::StoreError;
use haft_core::id::ArtifactId;
use haft_core::name::TenantId;
use haft_core::outcome::{CallError, ErrorCode};
use haft_store::{RevisionSelector, Store};

use crate::in_service::require_in_service;
use crate::known_names::KnownNames;

/// How often a node looks for names that other nodes stored.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// The known version of an artifact that is disabled or whose file is invalid.
const OUT_OF_SERVICE: u32 = 0;

/// The artifacts.
pub struct ArtifactHost {
    store: Arc<Store>,
    names: KnownNames,
}

impl ArtifactHost {
    /// Opens the artifacts.
    pub async fn open(store: Arc<Store>) -> Result<Arc<Self>, StoreError> {
        let host = Self { store, names: KnownNames::default() };
        host.refresh_names().await?;
        Ok(Arc::new(host))
    }

    /// Reads the names of artifacts again if they have changed.
    pub async fn refresh_names(&self) -> Result<(), StoreError> {
        if let Some(found) = self.store.artifacts().names(self.names.counter()).await? {
            let names = found.names.into_iter().flat_map(|artifact| {
                let version = if artifact.is_in_service { artifact.revision } else { OUT_OF_SERVICE };
                [(artifact.tenant.clone(), artifact.slug, version), (artifact.tenant, artifact.id, version)]
            });
            self.names.replace(found.counter, names);
        }
        Ok(())
    }

    /// Looks for names that other nodes stored, until dropped.
    pub async fn follow(&self) {
        loop {
            if let Err(error) = self.refresh_names().await {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "cannot read the names of artifacts"
                );
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// Reads a version of an artifact that is in service.
    async fn stored_version(
        &self,
        tenant: &TenantId,
        reference: &str,
        version: VersionSelector,
    ) -> Result<Option<(ArtifactId, ArtifactVersion)>, CallError> {
        let unavailable = |error: StoreError| {
            CallError::new(ErrorCode::StoreUnavailable, error.with_cause())
                .for_model("the tool is unavailable")
        };
        let artifacts = self.store.artifacts();
        if self.names.find(tenant, reference) == Some(OUT_OF_SERVICE)
            && let Some(artifact) = artifacts.find(tenant, reference).await.map_err(unavailable)?
        {
            require_in_service(&artifact)?;
        }
        let selector = match version {
            VersionSelector::Newest => RevisionSelector::Newest,
            VersionSelector::Published => RevisionSelector::Published,
            VersionSelector::Pinned(number) => RevisionSelector::Number(number),
        };
        let found = artifacts.revision_of(tenant, reference, selector).await.map_err(unavailable)?;
        if let (None, VersionSelector::Published) = (&found, version)
            && let Some(artifact) = artifacts.find(tenant, reference).await.map_err(unavailable)?
        {
            let slug = &artifact.definition.slug;
            let message = format!(
                "artifact `{slug}` has no published version; publish it with `haft artifact publish {slug}`, or use debug \
                 mode"
            );
            return Err(CallError::new(ErrorCode::NotPublished, message));
        }
        Ok(found.map(|(id, revision)| (id, revision.into())))
    }

    fn exists(&self, tenant: &TenantId, reference: &str, version: VersionSelector) -> bool {
        self.names.find(tenant, reference).is_some_and(|newest| match version {
            VersionSelector::Newest | VersionSelector::Published => true,
            VersionSelector::Pinned(number) => newest == OUT_OF_SERVICE || number <= newest,
        })
    }
}

/// How many pinned versions are kept in memory.
const MAX_VERSIONS: usize = 64;

type CachedVersion = ((TenantId, String, u32), (ArtifactId, ArtifactVersion));

/// The artifacts for executors, which exist before the store does.
#[derive(Default)]
pub struct ArtifactHandle {
    /// Weak, because the store refers to the registry, which owns the executors.
    host: OnceLock<Weak<ArtifactHost>>,
    /// Pinned versions that were used last. A version never changes, so it need not be read for every call.
    versions: Mutex<VecDeque<CachedVersion>>,
}

impl ArtifactHandle {
    /// Sets the host, once.
    pub fn connect(&self, host: &Arc<ArtifactHost>) {
        let _ = self.host.set(Arc::downgrade(host));
    }

    fn host(&self) -> Option<Arc<ArtifactHost>> {
        self.host.get().and_then(Weak::upgrade)
    }

    fn cached(
        &self,
        tenant: &TenantId,
        reference: &str,
        number: u32,
    ) -> Option<(ArtifactId, ArtifactVersion)> {
        // One that was deleted or disabled may not run any more.
        let known = self.host()?.names.find(tenant, reference)?;
        if number > known {
            return None;
        }
        let versions = self.versions.lock().unwrap_or_else(PoisonError::into_inner);
        let is_same = |((of, name, version), _): &&CachedVersion| {
            of == tenant && name == reference && *version == number
        };
        versions.iter().find(is_same).map(|(_, version)| version.clone())
    }

    fn keep(&self, key: (TenantId, String, u32), version: (ArtifactId, ArtifactVersion)) {
        let mut versions = self.versions.lock().unwrap_or_else(PoisonError::into_inner);
        versions.push_back((key, version));
        if versions.len() > MAX_VERSIONS {
            versions.pop_front();
        }
    }
}

impl CodeArtifacts for ArtifactHandle {
    fn version<'a>(
        &'a self,
        tenant: &'a TenantId,
        reference: &'a str,
        version: VersionSelector,
    ) -> BoxFuture<'a, Result<Option<(ArtifactId, ArtifactVersion)>, CallError>> {
        Box::pin(async move {
            let stopping = || CallError::new(ErrorCode::Cancelled, "the server is starting or stopping");
            let host = self.host().ok_or_else(stopping)?;
            let number = match version {
                VersionSelector::Newest | VersionSelector::Published => None,
                VersionSelector::Pinned(number) => Some(number),
            };
            // A slug can be given to another artifact, an id cannot.
            let pinned = number.filter(|_| reference.parse::<ArtifactId>().is_ok());
            if let Some(found) = pinned.and_then(|number| self.cached(tenant, reference, number)) {
                return Ok(Some(found));
            }
            let found = host.stored_version(tenant, reference, version).await?;
            if let (Some(number), Some(found)) = (pinned, &found) {
                self.keep((tenant.clone(), reference.to_owned(), number), found.clone());
            }
            Ok(found)
        })
    }

    fn exists(&self, tenant: &TenantId, reference: &str, version: VersionSelector) -> bool {
        // Before the store is open nothing is known to be missing.
        self.host().is_none_or(|host| host.exists(tenant, reference, version))
    }
}
