//! The values of `${…}`: a name is a stored credential or a configured environment variable that the tenant may read; a
//! name with a scheme, such as `vault:`, is a secret outside of haft. A stored value that is such a reference stands for
//! what it refers to.

use std::collections::HashMap;
use std::sync::Arc;

use haft_core::BoxFuture;
use haft_core::account::{Accounts, provider_of};
use haft_core::name::TenantId;
use haft_core::problem::excerpt;
use haft_core::secret::{
    CredentialSelector, ExternalReference, ExternalSecretError, RefreshTokens, Secret, SecretError,
    SecretSource, SourceKind, missing_secret,
};
use haft_executors::secret_sources::SecretSources;
use haft_store::Store;
use serde_json::Value;

use crate::access::Access;
use crate::account_source::AccountSource;

/// Stored credentials, then the configured environment variables, and the sources outside of haft.
pub struct Secrets {
    pub store: Arc<Store>,
    pub environment: HashMap<String, Secret>,
    pub access: Arc<Access>,
    pub sources: SecretSources,
    pub(crate) accounts: Arc<AccountSource>,
}

/// What a caller needs of a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SecretForm {
    /// One text.
    Text,
    /// A text, or several by name as a JSON object.
    Credential,
}

impl Secrets {
    /// Returns a configured environment variable, if the tenant may read it.
    fn variable(&self, tenant: &TenantId, name: &str) -> Option<Secret> {
        self.external_variable(tenant, name).ok()
    }

    /// Returns an environment variable. The error does not tell whether it exists: a tenant does not learn the variables
    /// of others.
    fn external_variable(&self, tenant: &TenantId, name: &str) -> Result<Secret, ExternalSecretError> {
        let unknown =
            || ExternalSecretError::UnknownVariable { name: name.to_owned(), tenant: tenant.to_string() };
        let may_read = self.access.tenant(tenant).is_some_and(|tenant| tenant.may_read_variable(name));
        let value = self.environment.get(name).filter(|_| may_read);
        value.cloned().ok_or_else(unknown)
    }

    /// Returns the accounts of people.
    pub(crate) fn account_source(&self) -> &AccountSource {
        &self.accounts
    }

    /// Returns why a secret cannot be read, as far as that is known without asking a source; `None` if it can.
    pub async fn missing(&self, tenant: &TenantId, name: &str) -> Result<Option<String>, SecretError> {
        if let Some(provider) = provider_of(name) {
            return self.missing_provider(tenant, provider).await;
        }
        if ExternalReference::parse(name).is_some() {
            let checked = self.check(tenant, name);
            return Ok(checked.err().map(|error| format!("secret `{}`: {error}", excerpt(name, 100))));
        }
        let reference = match self.store.vault().secret(tenant, name).await? {
            Some(stored) => stored_reference(stored.expose()).map(str::to_owned),
            None => match self.field_reference(tenant, name).await? {
                None => return Ok(self.variable(tenant, name).is_none().then(|| missing_secret(name))),
                found => found,
            },
        };
        let Some(reference) = reference else { return Ok(None) };
        let checked = self.check(tenant, &reference);
        let refers = |error: ExternalSecretError| {
            format!("secret `{name}` refers to `{}`: {error}", excerpt(&reference, 100))
        };
        Ok(checked.err().map(refers))
    }

    /// Returns why no caller can use an account at a provider; `None` if the provider is defined.
    async fn missing_provider(&self, tenant: &TenantId, name: &str) -> Result<Option<String>, SecretError> {
        let found = self.store.accounts().provider(tenant, name).await;
        let found = found.map_err(|error| SecretError { name: name.to_owned(), source: Box::new(error) })?;
        let missing = || {
            format!("account provider `{name}` not found; define it with `PUT /api/account-providers/{name}`")
        };
        Ok(found.is_none().then(missing))
    }

    /// Returns the reference of `NAME.field` if `NAME` is stored and refers to a whole secret in Vault.
    async fn field_reference(&self, tenant: &TenantId, name: &str) -> Result<Option<String>, SecretError> {
        let Some((base, field)) = name.rsplit_once('.') else { return Ok(None) };
        let stored = self.store.vault().credential(tenant, CredentialSelector::Name(base)).await?;
        Ok(stored.and_then(|stored| with_field(stored.expose(), field)))
    }

    /// Returns what a name means that is not stored: a field of a stored reference, or an environment variable.
    async fn derived(&self, tenant: &TenantId, name: &str) -> Result<Option<Secret>, SecretError> {
        match self.field_reference(tenant, name).await? {
            Some(reference) => self.read_external(tenant, &reference, SecretForm::Text).await,
            None => Ok(self.variable(tenant, name)),
        }
    }

    /// Checks that the source of a reference is configured, and that the tenant may read from it.
    fn check(&self, tenant: &TenantId, text: &str) -> Result<(), ExternalSecretError> {
        let Some(reference) = ExternalReference::parse(text) else { return Ok(()) };
        let reference = reference?;
        match reference.kind {
            SourceKind::Environment => self.external_variable(tenant, reference.path).map(drop),
            SourceKind::Vault | SourceKind::File | SourceKind::Command => {
                self.sources.check(tenant, &reference)
            }
            SourceKind::Account => Err(ExternalSecretError::NotConfigured(SourceKind::Account)),
        }
    }

    /// Reads a secret outside of haft.
    async fn external(
        &self,
        tenant: &TenantId,
        reference: &ExternalReference<'_>,
        form: SecretForm,
    ) -> Result<Secret, ExternalSecretError> {
        match (reference.kind, form) {
            (SourceKind::Environment, _) => self.external_variable(tenant, reference.path),
            // The account of nobody: only calls have a person.
            (SourceKind::Account, _) => Err(ExternalSecretError::NotConfigured(SourceKind::Account)),
            (SourceKind::Vault | SourceKind::File | SourceKind::Command, SecretForm::Text) => {
                self.sources.secret(tenant, reference).await
            }
            (SourceKind::Vault | SourceKind::File | SourceKind::Command, SecretForm::Credential) => {
                self.sources.credential(tenant, reference).await
            }
        }
    }

    /// Reads a secret outside of haft; `None` if the text is the name of a stored one.
    async fn read_external(
        &self,
        tenant: &TenantId,
        text: &str,
        form: SecretForm,
    ) -> Result<Option<Secret>, SecretError> {
        let read = match ExternalReference::parse(text) {
            None => return Ok(None),
            Some(Err(error)) => Err(ExternalSecretError::Invalid(error)),
            Some(Ok(reference)) => self.external(tenant, &reference, form).await,
        };
        let failed =
            |error: ExternalSecretError| SecretError { name: excerpt(text, 100), source: Box::new(error) };
        read.map(Some).map_err(failed)
    }

    /// Returns a stored value, or what it refers to.
    async fn resolved(
        &self,
        tenant: &TenantId,
        stored: Secret,
        form: SecretForm,
    ) -> Result<Secret, SecretError> {
        if !stored.expose().contains("${") {
            return Ok(stored);
        }
        if let Some(reference) = stored_reference(stored.expose()) {
            return Ok(self.read_external(tenant, reference, form).await?.unwrap_or(stored));
        }
        if form == SecretForm::Text {
            return Ok(stored);
        }
        let Ok(Value::Object(mut fields)) = serde_json::from_str::<Value>(stored.expose()) else {
            return Ok(stored);
        };
        let mut has_references = false;
        for value in fields.values_mut() {
            let reference = value.as_str().and_then(stored_reference).map(str::to_owned);
            let Some(reference) = reference else { continue };
            if let Some(secret) = self.read_external(tenant, &reference, SecretForm::Text).await? {
                *value = Value::String(secret.expose().to_owned());
                has_references = true;
            }
        }
        // Other texts stay as they were written.
        Ok(if has_references { Secret::new(Value::Object(fields).to_string()) } else { stored })
    }
}

/// Returns the reference to a secret outside of haft that a stored value consists of.
fn stored_reference(value: &str) -> Option<&str> {
    let inner = value.trim().strip_prefix("${")?.strip_suffix('}')?.trim();
    ExternalReference::parse(inner).map(|_| inner)
}

/// Returns the reference to a field, if a stored value refers to a secret in Vault without naming a key.
fn with_field(stored: &str, field: &str) -> Option<String> {
    let inner = stored_reference(stored)?;
    let reference = ExternalReference::parse(inner)?.ok()?;
    let is_whole = reference.kind == SourceKind::Vault && reference.key.is_none();
    (is_whole && !field.is_empty()).then(|| format!("{inner}#{field}"))
}

impl SecretSource for Secrets {
    fn secret<'a>(
        &'a self,
        tenant: &'a TenantId,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Option<Secret>, SecretError>> {
        Box::pin(async move {
            if let Some(secret) = self.read_external(tenant, name, SecretForm::Text).await? {
                return Ok(Some(secret));
            }
            match self.store.vault().secret(tenant, name).await? {
                Some(stored) => self.resolved(tenant, stored, SecretForm::Text).await.map(Some),
                None => self.derived(tenant, name).await,
            }
        })
    }

    fn credential<'a>(
        &'a self,
        tenant: &'a TenantId,
        selector: CredentialSelector<'a>,
    ) -> BoxFuture<'a, Result<Option<Secret>, SecretError>> {
        Box::pin(async move {
            let name = match selector {
                CredentialSelector::Name(name) => Some(name),
                CredentialSelector::Provider { .. } => None,
            };
            if let Some(name) = name
                && let Some(secret) = self.read_external(tenant, name, SecretForm::Credential).await?
            {
                return Ok(Some(secret));
            }
            match (self.store.vault().credential(tenant, selector).await?, name) {
                (Some(stored), _) => self.resolved(tenant, stored, SecretForm::Credential).await.map(Some),
                (None, Some(name)) => self.derived(tenant, name).await,
                (None, None) => Ok(None),
            }
        })
    }

    fn refresh_tokens(&self) -> Option<Arc<dyn RefreshTokens>> {
        Some(Arc::new(self.store.vault().clone()))
    }

    fn accounts(&self) -> Option<Arc<dyn Accounts>> {
        Some(Arc::clone(&self.accounts) as _)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_path_of_vault_has_fields() {
        for (value, expected) in [
            ("${vault:apps/db}", Some("vault:apps/db#user")),
            (" ${ vault:apps/db.v2 } ", Some("vault:apps/db.v2#user")),
            ("${vault:apps/db#key}", None),
            ("${vault:a//b}", None),
            ("${cmd:db}", None),
            ("text", None),
        ] {
            assert_eq!(with_field(value, "user").as_deref(), expected, "{value}");
        }
        assert_eq!(with_field("${vault:apps/db}", ""), None);
    }

    #[test]
    fn only_a_whole_value_is_a_reference() {
        for (value, expected) in [
            ("${vault:apps/x#key}", Some("vault:apps/x#key")),
            (" ${ file:a }\n", Some("file:a")),
            ("${vault:a//b}", Some("vault:a//b")),
            ("x${vault:a}", None),
            ("${OTHER}", None),
            ("vault:a", None),
            ("", None),
        ] {
            assert_eq!(stored_reference(value), expected, "{value}");
        }
    }
}
