//! Where `${NAME}` finds its value in a program: what the program gave, its own sources, and the named part of the
//! environment.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use haft_core::BoxFuture;
use haft_core::name::TenantId;
use haft_core::secret::{RefreshTokens, Secret, SecretError, SecretSource};

/// Looks in this order; the first that knows a name decides.
#[derive(Default)]
pub(crate) struct Secrets {
    pub(crate) given: HashMap<String, Secret>,
    pub(crate) sources: Vec<Arc<dyn SecretSource>>,
    /// The names that may be read from the environment of the process; nothing else of it is.
    pub(crate) environment: HashSet<String>,
}

impl SecretSource for Secrets {
    fn secret<'a>(
        &'a self,
        tenant: &'a TenantId,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Option<Secret>, SecretError>> {
        Box::pin(async move {
            if let Some(secret) = self.given.get(name) {
                return Ok(Some(secret.clone()));
            }
            for source in &self.sources {
                if let Some(secret) = source.secret(tenant, name).await? {
                    return Ok(Some(secret));
                }
            }
            if self.environment.contains(name) { environment(name) } else { Ok(None) }
        })
    }

    fn refresh_tokens(&self) -> Option<Arc<dyn RefreshTokens>> {
        self.sources.iter().find_map(|source| source.refresh_tokens())
    }
}

/// Read at each call, so that a changed value counts.
#[expect(
    clippy::disallowed_methods,
    reason = "the documented source of `${NAME}`, for names that the program lists"
)]
fn environment(name: &str) -> Result<Option<Secret>, SecretError> {
    match std::env::var(name) {
        Ok(value) => Ok(Some(Secret::new(value))),
        Err(std::env::VarError::NotPresent) => Ok(None),
        Err(error) => Err(SecretError { name: name.to_owned(), source: Box::new(error) }),
    }
}
