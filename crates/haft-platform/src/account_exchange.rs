//! Tokens of people for other services, which the issuer of their login exchanges for the token of that login (RFC 8693).
//! What a client of haft sends is never used for it: the login is the person's own, in a browser.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use haft_core::account::{AccountRecord, TokenExchangeProvider};
use haft_core::secret::{Secret, SecretSource};
use haft_core::{Clock, hash};
use haft_oauth::exchange::{Request, Target};
use haft_store::Store;

use crate::issuers::{IssuerError, Issuers};
use crate::stored_login::{LoginTokenError, client_secret, login_token};

/// The most tokens that are kept.
const MAX_TOKENS: usize = 10_000;

/// Exchanges tokens, and keeps them until they expire.
pub(crate) struct Exchanges {
    pub(crate) issuers: Arc<Issuers>,
    pub(crate) clock: Arc<dyn Clock>,
    tokens: Mutex<HashMap<String, (Secret, i64)>>,
}

impl Exchanges {
    pub(crate) fn new(issuers: &Arc<Issuers>, clock: &Arc<dyn Clock>) -> Self {
        Self { issuers: Arc::clone(issuers), clock: Arc::clone(clock), tokens: Mutex::default() }
    }

    /// Returns a token of the person of an account; `None` if the person has to log in again.
    pub(crate) async fn token(
        &self,
        (store, secrets): (&Store, &dyn SecretSource),
        account: &AccountRecord,
        exchange: &TokenExchangeProvider,
    ) -> Result<Option<Secret>, LoginTokenError> {
        let unknown = || LoginTokenError::UnknownIssuer(exchange.issuer.clone());
        let issuer = self.issuers.find(&exchange.issuer).ok_or_else(unknown)?;
        let target = target(exchange);
        // The configuration may have changed since the provider was defined.
        if !issuer.settings.token_exchange.iter().any(|allowed| allowed == target_text(target)) {
            return Err(IssuerError::Invalid(not_allowed(exchange)).into());
        }
        let now = self.clock.now();
        // Checked before the cached tokens: without a login, a person gets none of them.
        let login = login_token(store, secrets, (issuer, account.id.actor), now).await?;
        let Some((subject, version)) = login else { return Ok(None) };
        let scopes = exchange.scopes.join(" ");
        let parts = [
            account.id.actor.to_string(),
            issuer.settings.issuer.clone(),
            format!("{target:?}"),
            scopes,
            version,
        ];
        let key = hash::of_bytes(parts.join("\n").as_bytes());
        if let Some(token) = self.kept(&key, now.as_second()) {
            return Ok(Some(token));
        }
        let client_secret = client_secret(secrets, issuer).await?;
        let request = Request::Exchange { subject: &subject, target, scopes: &exchange.scopes };
        match issuer.request(&request, client_secret.as_ref(), now).await {
            Ok(tokens) => {
                if let Some(end) = tokens.renew_at {
                    self.keep(key, (tokens.access.clone(), end), now.as_second());
                }
                Ok(Some(tokens.access))
            }
            // The login has ended there.
            Err(IssuerError::Rejected { error, .. })
                if matches!(&*error, "invalid_grant" | "invalid_token") =>
            {
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    fn kept(&self, key: &str, now: i64) -> Option<Secret> {
        let tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        tokens.get(key).filter(|(_, end)| now < *end).map(|(token, _)| token.clone())
    }

    fn keep(&self, key: String, token: (Secret, i64), now: i64) {
        let mut tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        if tokens.len() >= MAX_TOKENS {
            tokens.retain(|_, (_, end)| now < *end);
        }
        if tokens.len() < MAX_TOKENS {
            tokens.insert(key, token);
        }
    }
}

/// Returns who the tokens of a provider are for.
fn target(exchange: &TokenExchangeProvider) -> Target<'_> {
    match (&exchange.audience, &exchange.resource) {
        (_, Some(resource)) => Target::Resource(resource),
        (audience, None) => Target::Audience(audience.as_deref().unwrap_or_default()),
    }
}

fn target_text(target: Target<'_>) -> &str {
    match target {
        Target::Audience(text) | Target::Resource(text) => text,
    }
}

/// Returns why the configuration does not let a provider exchange tokens; `None` if it does.
pub(crate) fn problem(issuers: &Issuers, exchange: &TokenExchangeProvider) -> Option<String> {
    let allowed = issuers.find(&exchange.issuer).map(|issuer| &issuer.settings.token_exchange);
    let is_allowed = allowed.is_some_and(|all| all.iter().any(|one| one == target_text(target(exchange))));
    (!is_allowed).then(|| not_allowed(exchange))
}

fn not_allowed(exchange: &TokenExchangeProvider) -> String {
    let (issuer, target) = (&exchange.issuer, target_text(target(exchange)));
    format!(
        "the issuer `{issuer}` does not exchange tokens for `{target}`; a platform admin adds it to `token_exchange` of \
         the issuer in the configuration"
    )
}
