//! Renders the configuration of a server: substitutes secrets, and keeps them out of texts.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use haft_core::account::{self, AccountUser};
use haft_core::implementation::Notation;
use haft_core::mcp::Transport;
use haft_core::redact::CredentialLiteral;
use haft_core::secret::{Secret, SecretSource, scrub_text};
use haft_template::{EscapeContext, Scope, Template, Values};
use serde_json::Map;

/// Substitutes `${NAME}` in texts and remembers the values, so that no error shows them.
pub(super) struct ConfigRenderer<'a> {
    user: AccountUser,
    source: &'a Arc<dyn SecretSource>,
    used: Vec<Secret>,
    /// Literals that may be credentials.
    guessed: Vec<Secret>,
}

impl<'a> ConfigRenderer<'a> {
    /// Renders for a person, whose accounts are then used, or for all callers.
    pub(super) fn new(user: AccountUser, source: &'a Arc<dyn SecretSource>) -> Self {
        Self { user, source, used: Vec::new(), guessed: Vec::new() }
    }

    /// Substitutes the secrets of a text; an error names the field and the missing secret.
    pub(super) async fn render(
        &mut self,
        field: &str,
        text: &str,
        escape: EscapeContext<'_>,
    ) -> Result<String, String> {
        let invalid = |message: String| format!("`{field}`: {message}");
        // In the `Braces` notation `${…}` is always a secret.
        let template = Template::parse(Notation::Braces, text, &Scope::from_schema(&serde_json::json!({})))
            .map_err(|error| invalid(error.to_string()))?;
        let mut secrets = BTreeMap::new();
        for name in template.secrets() {
            let secret = match account::provider_of(name) {
                Some(provider) => self.account(provider).await.map_err(invalid)?,
                None => self.secret(name).await.map_err(invalid)?,
            };
            self.used.extend(secret.lines());
            self.used.push(secret.clone());
            secrets.insert(name, secret);
        }
        let empty = Map::new();
        let values = Values { args: &empty, steps: &empty, secrets: &secrets, version: "" };
        let rendered = template.render(escape, &values).map_err(|error| invalid(error.to_string()))?;
        Ok(rendered.text)
    }

    async fn secret(&self, name: &str) -> Result<Secret, String> {
        let found = self.source.secret(&self.user.tenant, name).await;
        let secret = found.map_err(|error| format!("{error}: {}", error.source))?;
        secret.ok_or_else(|| format!("secret `{name}` not found; store it with `haft secret set {name}`"))
    }

    async fn account(&self, provider: &str) -> Result<Secret, String> {
        let accounts = self.source.accounts().ok_or("this program has no accounts of people")?;
        accounts.value(&self.user, provider).await.map_err(|error| error.message)
    }

    /// Also hides literals of the configuration that look like credentials.
    pub(super) fn hide_literals(&mut self, transport: &Transport) {
        for CredentialLiteral { secret, certain } in haft_core::redact::redact_transport(transport).literals {
            let hidden = if certain { &mut self.used } else { &mut self.guessed };
            hidden.extend(secret.lines());
            hidden.push(secret);
        }
    }

    /// Returns the scrubber for the secrets used so far.
    pub(super) fn scrubber(self) -> Scrubber {
        Scrubber { fixed: self.used.into(), guessed: self.guessed.into(), tokens: Arc::default() }
    }
}

/// How many access tokens are remembered, for responses that are still on their way.
const MAX_TOKENS: usize = 8;

/// Removes the secrets of a server from texts.
#[derive(Clone)]
pub(super) struct Scrubber {
    fixed: Arc<[Secret]>,
    /// May be ordinary words: removed from messages about the server, not from the results of its tools.
    guessed: Arc<[Secret]>,
    /// Access tokens, which change during a connection.
    tokens: Arc<Mutex<Vec<Secret>>>,
}

impl Scrubber {
    pub(super) fn clean(&self, mut text: String) -> String {
        let mut secrets = self.secrets();
        secrets.extend(self.guessed.iter().cloned());
        scrub_text(&mut text, &secrets);
        text
    }

    /// Adds an access token that is about to be used.
    pub(super) fn add(&self, token: &Secret) {
        let mut tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        if tokens.contains(token) {
            return;
        }
        if tokens.len() >= MAX_TOKENS {
            tokens.remove(0);
        }
        tokens.push(token.clone());
    }

    /// Returns the secrets that no outcome may contain.
    pub(super) fn secrets(&self) -> Vec<Secret> {
        let tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        self.fixed.iter().chain(tokens.iter()).cloned().collect()
    }
}
