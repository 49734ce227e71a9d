//! The cache of access tokens; one caller at a time refreshes a token.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use haft_core::outcome::CallError;
use haft_core::secret::{Secret, SecretError};
use tokio::sync::Mutex as AsyncMutex;

use super::oauth::Grant;
use crate::egress::Egress;

/// The maximum number of cached grants.
const MAX_GRANTS: usize = 4096;

/// An access token.
#[derive(Clone)]
pub(super) struct Token {
    pub(super) access: Secret,
    pub(super) valid_until: Instant,
    /// The refresh token that came with it, if the server rotates them.
    pub(super) refresh: Option<Secret>,
}

/// Why a token could not be fetched.
pub(super) struct FetchError {
    pub(super) error: CallError,
    /// Whether the server rejected the grant, rather than being unreachable.
    pub(super) rejected: bool,
}

impl From<CallError> for FetchError {
    fn from(error: CallError) -> Self {
        Self { error, rejected: false }
    }
}

/// All tokens of the process.
pub(super) struct TokenCache {
    entries: Mutex<HashMap<[u8; 32], Entry>>,
    max_grants: usize,
}

struct Entry {
    slot: Arc<AsyncMutex<Slot>>,
    used: Instant,
}

/// The token of one grant. The holder of the lock may fetch a new one.
#[derive(Default)]
struct Slot {
    token: Option<Token>,
    refresh: Option<Secret>,
    /// Whether the refresh token could not be stored.
    unsaved: bool,
    /// The last failure; callers that waited for that attempt share it.
    failure: Option<(Instant, CallError)>,
}

impl Slot {
    /// Fetches a token with the newest refresh token, and stores the next one before anybody else may fetch.
    async fn fetch(&mut self, egress: &Egress, grant: &Grant) -> Result<Token, FetchError> {
        let Some((store, id)) = grant.refresh_token_store() else {
            return grant.fetch(egress, self.refresh.as_ref()).await;
        };
        let fault = |error: SecretError| CallError::internal(format!("{error}: {}", error.source));
        let lease = store.begin(&id).await.map_err(fault)?;
        if !self.unsaved {
            self.refresh = lease.token;
        }
        let fetched = grant.fetch(egress, self.refresh.as_ref()).await;
        let newest = match &fetched {
            Ok(token) => token.refresh.as_ref(),
            Err(FetchError { rejected: true, .. }) => None,
            Err(_) => self.refresh.as_ref(),
        };
        let stored = store.end(&id, lease.number, newest).await;
        self.unsaved = stored.is_err();
        if let Err(error) = stored {
            let source = &error.source;
            tracing::error!(%error, %source, "rotated refresh token not stored; only this process has it");
        }
        fetched
    }
}

impl Default for TokenCache {
    fn default() -> Self {
        Self { entries: Mutex::default(), max_grants: MAX_GRANTS }
    }
}

impl TokenCache {
    /// Returns a valid token; fetches one if necessary.
    pub(super) async fn get(&self, egress: &Egress, grant: &Grant) -> Result<Secret, CallError> {
        let started = Instant::now();
        let slot = self.slot(grant.key());
        let mut slot = slot.lock_owned().await;
        if let Some(token) = slot.token.as_ref().filter(|token| token.valid_until > Instant::now()) {
            return Ok(token.access.clone());
        }
        if let Some((_, error)) = slot.failure.as_ref().filter(|(when, _)| *when >= started) {
            return Err(error.clone());
        }
        let (egress, grant) = (egress.clone(), grant.clone());
        // A separate task: a cancelled caller must not lose a refresh token that the server just rotated.
        let fetching = tokio::spawn(async move {
            match slot.fetch(&egress, &grant).await {
                Ok(token) => {
                    slot.failure = None;
                    slot.refresh.clone_from(&token.refresh);
                    slot.token = Some(token.clone());
                    Ok(token.access)
                }
                Err(FetchError { error, rejected }) => {
                    // The configured refresh token is tried next only if the server rejected the rotated one. If the
                    // server is merely unreachable, the rotated one stays valid.
                    if rejected {
                        slot.refresh = None;
                    }
                    slot.token = None;
                    slot.failure = Some((Instant::now(), error.clone()));
                    Err(error)
                }
            }
        });
        fetching
            .await
            .unwrap_or_else(|_| Err(CallError::internal("the task that fetches the access token failed")))
    }

    /// Removes a token that the service rejected, unless it was replaced meanwhile.
    pub(super) async fn forget(&self, grant: &Grant, used: &Secret) {
        let slot = self.slot(grant.key());
        let mut slot = slot.lock().await;
        if slot.token.as_ref().is_some_and(|token| token.access == *used) {
            slot.token = None;
        }
    }

    fn slot(&self, key: [u8; 32]) -> Arc<AsyncMutex<Slot>> {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if entries.len() >= self.max_grants && !entries.contains_key(&key) {
            evict(&mut entries, (self.max_grants / 16).max(1));
        }
        let now = Instant::now();
        let entry = entries.entry(key).or_insert_with(|| Entry { slot: Arc::default(), used: now });
        entry.used = now;
        Arc::clone(&entry.slot)
    }
}

/// Removes unused entries: first those without a valid token, last those with a rotated refresh token, which cannot be
/// fetched again; of each the least recently used.
fn evict(entries: &mut HashMap<[u8; 32], Entry>, count: usize) {
    let now = Instant::now();
    let mut idle: Vec<_> = entries
        .iter()
        .filter(|(_, entry)| Arc::strong_count(&entry.slot) == 1)
        .filter_map(|(key, entry)| {
            let slot = entry.slot.try_lock().ok()?;
            let valid = slot.token.as_ref().is_some_and(|token| token.valid_until > now);
            Some((slot.refresh.is_some(), valid, entry.used, *key))
        })
        .collect();
    idle.sort_unstable();
    for (.., key) in idle.into_iter().take(count) {
        entries.remove(&key);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn tokens_that_can_be_fetched_again_are_evicted_first() {
        let cache = TokenCache { entries: Mutex::default(), max_grants: 4 };
        let later = Instant::now() + Duration::from_mins(1);
        let token = |valid_until| Token { access: Secret::new("a".into()), valid_until, refresh: None };
        let fill = async |key: u8, good: bool, rotated: bool| {
            let slot = cache.slot([key; 32]);
            let mut slot = slot.lock().await;
            slot.token = good.then(|| token(later));
            slot.refresh = rotated.then(|| Secret::new("r".into()));
        };
        fill(1, true, true).await;
        fill(2, true, false).await;
        fill(3, false, true).await;
        fill(4, false, false).await;
        let kept = || {
            let mut keys: Vec<u8> = cache.entries.lock().unwrap().keys().map(|key| key[0]).collect();
            keys.sort_unstable();
            keys
        };
        fill(5, true, true).await;
        assert_eq!(kept(), [1, 2, 3, 5]);
        fill(6, true, true).await;
        assert_eq!(kept(), [1, 3, 5, 6]);
        fill(7, true, true).await;
        assert_eq!(kept(), [1, 5, 6, 7]);
        // Entries in use stay; the oldest of the others is evicted.
        let used = cache.slot([1; 32]);
        fill(8, true, true).await;
        assert_eq!(kept(), [1, 6, 7, 8]);
        drop(used);
    }
}
