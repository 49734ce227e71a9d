//! The configuration of a server with its secrets put in.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use haft_core::implementation::Notation;
use haft_core::mcp::Transport;
use haft_core::name::TenantId;
use haft_core::redact::CredentialLiteral;
use haft_core::secret::{Secret, SecretSource, scrub_text};
use haft_template::{EscapeContext, Scope, Template, Values};
use serde_json::Map;

/// Puts `${NAME}` into texts, and remembers what it put in, so that no error shows it.
pub(super) struct Filler<'a> {
    tenant: &'a TenantId,
    source: &'a Arc<dyn SecretSource>,
    used: Vec<Secret>,
    /// What only looks like a credential.
    guessed: Vec<Secret>,
}

impl<'a> Filler<'a> {
    pub(super) fn new(tenant: &'a TenantId, source: &'a Arc<dyn SecretSource>) -> Self {
        Self { tenant, source, used: Vec::new(), guessed: Vec::new() }
    }

    /// Puts the secrets into a text that goes to a place; an error names the field and what is missing.
    pub(super) async fn fill(
        &mut self,
        field: &str,
        text: &str,
        place: EscapeContext<'_>,
    ) -> Result<String, String> {
        let wrong = |why: String| format!("`{field}`: {why}");
        // `{{…}}` has no meaning here, so the notation in which `${…}` is a secret alone serves.
        let template = Template::parse(Notation::Braces, text, &Scope::from_schema(&serde_json::json!({})))
            .map_err(|error| wrong(error.to_string()))?;
        let mut secrets = BTreeMap::new();
        for name in template.secrets() {
            let found = self.source.secret(self.tenant, name).await;
            let secret = found.map_err(|error| wrong(format!("{error}: {}", error.source)))?;
            let secret = secret.ok_or_else(|| {
                wrong(format!("the secret `{name}` does not exist; store it with `haft secret set {name}`"))
            })?;
            self.used.extend(secret.escaped_forms());
            self.used.push(secret.clone());
            secrets.insert(name, secret);
        }
        let empty = Map::new();
        let values = Values { args: &empty, steps: &empty, secrets: &secrets, version: "" };
        let rendered = template.render(place, &values).map_err(|error| wrong(error.to_string()))?;
        Ok(rendered.text)
    }

    /// Keeps what stands in the configuration itself and looks like a credential out of texts, too.
    pub(super) fn hide_literals(&mut self, transport: &Transport) {
        for CredentialLiteral { secret, certain } in haft_core::redact::server(transport).literals {
            let kept = if certain { &mut self.used } else { &mut self.guessed };
            kept.extend(secret.escaped_forms());
            kept.push(secret);
        }
    }

    /// Returns what takes every secret that was used out of texts.
    pub(super) fn scrubber(self) -> Scrubber {
        Scrubber { fixed: self.used.into(), guessed: self.guessed.into(), moving: Arc::default() }
    }
}

/// The most tokens that are remembered: those of answers that may still be on their way.
const MAX_MOVING: usize = 8;

/// Takes the secrets of a server out of texts that people and models read.
#[derive(Clone)]
pub(super) struct Scrubber {
    fixed: Arc<[Secret]>,
    /// What may be an ordinary word: taken out of what people read of a server, not of what its tools return.
    guessed: Arc<[Secret]>,
    /// Tokens, which change while a server is connected to.
    moving: Arc<Mutex<Vec<Secret>>>,
}

impl Scrubber {
    pub(super) fn clean(&self, mut text: String) -> String {
        let mut secrets = self.secrets();
        secrets.extend(self.guessed.iter().cloned());
        scrub_text(&mut text, &secrets);
        text
    }

    /// Remembers a token that is about to be used.
    pub(super) fn add(&self, token: &Secret) {
        let mut moving = self.moving.lock().unwrap_or_else(PoisonError::into_inner);
        if moving.contains(token) {
            return;
        }
        if moving.len() >= MAX_MOVING {
            moving.remove(0);
        }
        moving.push(token.clone());
    }

    /// Returns what no outcome may show.
    pub(super) fn secrets(&self) -> Vec<Secret> {
        let moving = self.moving.lock().unwrap_or_else(PoisonError::into_inner);
        self.fixed.iter().chain(moving.iter()).cloned().collect()
    }
}
