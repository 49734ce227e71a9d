//! The values of `${NAME}`: stored credentials first, then the configured environment variables.

use std::collections::HashMap;
use std::sync::Arc;

use haft_core::BoxFuture;
use haft_core::name::TenantId;
use haft_core::secret::{RefreshTokens, Secret, SecretError, SecretSource};
use haft_store::Store;

/// Stored credentials, then the configured environment variables.
pub(crate) struct Secrets {
    pub(crate) store: Arc<Store>,
    pub(crate) environment: HashMap<String, Secret>,
}

impl SecretSource for Secrets {
    fn secret<'a>(
        &'a self,
        tenant: &'a TenantId,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Option<Secret>, SecretError>> {
        Box::pin(async move {
            let stored = self.store.secret(tenant, name).await?;
            Ok(stored.or_else(|| self.environment.get(name).cloned()))
        })
    }

    fn refresh_tokens(&self) -> Option<Arc<dyn RefreshTokens>> {
        Some(Arc::clone(&self.store) as _)
    }
}
