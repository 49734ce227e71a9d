//! Resolves `${NAME}`: values set by the program, its secret sources, and allowed environment variables.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use haft_core::BoxFuture;
use haft_core::name::TenantId;
use haft_core::secret::{RefreshTokens, Secret, SecretError, SecretSource};

/// The sources of secrets in order of precedence.
#[derive(Default)]
pub(crate) struct Secrets {
    pub(crate) values: HashMap<String, Secret>,
    pub(crate) sources: Vec<Arc<dyn SecretSource>>,
    /// The environment variables that may be read.
    pub(crate) environment: HashSet<String>,
}

impl SecretSource for Secrets {
    fn secret<'a>(
        &'a self,
        tenant: &'a TenantId,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Option<Secret>, SecretError>> {
        Box::pin(async move {
            if let Some(secret) = self.values.get(name) {
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

/// Reads an environment variable. It is read at each call, so changes take effect.
#[expect(
    clippy::disallowed_methods,
    reason = "the documented source of `${NAME}` for names that the program allows"
)]
fn environment(name: &str) -> Result<Option<Secret>, SecretError> {
    match std::env::var(name) {
        Ok(value) => Ok(Some(Secret::new(value))),
        Err(std::env::VarError::NotPresent) => Ok(None),
        Err(error) => Err(SecretError { name: name.to_owned(), source: Box::new(error) }),
    }
}
