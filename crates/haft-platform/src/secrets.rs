//! The values of `${NAME}`: stored credentials first, then the configured environment variables that the tenant may read.

use std::collections::HashMap;
use std::sync::Arc;

use haft_core::BoxFuture;
use haft_core::name::TenantId;
use haft_core::secret::{CredentialSelector, RefreshTokens, Secret, SecretError, SecretSource};
use haft_store::Store;

use crate::access::Access;

/// Stored credentials, then the configured environment variables.
pub struct Secrets {
    pub store: Arc<Store>,
    pub environment: HashMap<String, Secret>,
    pub access: Arc<Access>,
}

impl Secrets {
    /// Returns a configured environment variable, if the tenant may read it.
    fn variable(&self, tenant: &TenantId, name: &str) -> Option<Secret> {
        let value = self.environment.get(name)?;
        let tenant = self.access.tenant(tenant)?;
        tenant.may_read_variable(name).then(|| value.clone())
    }
}

impl SecretSource for Secrets {
    fn secret<'a>(
        &'a self,
        tenant: &'a TenantId,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Option<Secret>, SecretError>> {
        Box::pin(async move {
            let stored = self.store.secret(tenant, name).await?;
            Ok(stored.or_else(|| self.variable(tenant, name)))
        })
    }

    fn credential<'a>(
        &'a self,
        tenant: &'a TenantId,
        selector: CredentialSelector<'a>,
    ) -> BoxFuture<'a, Result<Option<Secret>, SecretError>> {
        Box::pin(async move {
            let stored = self.store.credential(tenant, selector).await?;
            Ok(match selector {
                CredentialSelector::Name(name) => stored.or_else(|| self.variable(tenant, name)),
                CredentialSelector::Provider { .. } => stored,
            })
        })
    }

    fn refresh_tokens(&self) -> Option<Arc<dyn RefreshTokens>> {
        Some(Arc::clone(&self.store) as _)
    }
}
