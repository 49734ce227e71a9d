//! Access tokens, kept while they are good, refreshed by one caller at a time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use haft_core::outcome::CallError;
use haft_core::secret::{Secret, SecretError};
use tokio::sync::Mutex as AsyncMutex;

use super::oauth::Grant;
use crate::egress::Egress;

/// How many grants are remembered.
const MAX_SLOTS: usize = 4096;

/// An access token.
#[derive(Clone)]
pub(super) struct Token {
    pub(super) access: Secret,
    pub(super) good_until: Instant,
    /// The refresh token that goes with it, where the server rotates them.
    pub(super) refresh: Option<Secret>,
}

/// Says why there is no token.
pub(super) struct FetchError {
    pub(super) error: CallError,
    /// Whether the server turned the grant down, rather than could not be asked.
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
    most: usize,
}

struct Entry {
    slot: Arc<AsyncMutex<Slot>>,
    used: Instant,
}

/// The token of one grant. Who holds the lock may fetch.
#[derive(Default)]
struct Slot {
    token: Option<Token>,
    refresh: Option<Secret>,
    /// Whether that one could not be kept beyond the process.
    unsaved: bool,
    /// The last failure: those who waited for that attempt share it instead of repeating it.
    failure: Option<(Instant, CallError)>,
}

impl Slot {
    /// Asks for a token with the newest refresh token, and keeps the next one before anybody else may ask.
    async fn fetch(&mut self, egress: &Egress, grant: &Grant) -> Result<Token, FetchError> {
        let Some((keeper, id)) = grant.keeper() else {
            return grant.fetch(egress, self.refresh.as_ref()).await;
        };
        let fault = |error: SecretError| CallError::internal(format!("{error}: {}", error.source));
        let turn = keeper.begin(&id).await.map_err(fault)?;
        if !self.unsaved {
            self.refresh = turn.token;
        }
        let fetched = grant.fetch(egress, self.refresh.as_ref()).await;
        let newest = match &fetched {
            Ok(token) => token.refresh.as_ref(),
            Err(FetchError { rejected: true, .. }) => None,
            Err(_) => self.refresh.as_ref(),
        };
        let kept = keeper.end(&id, turn.number, newest).await;
        self.unsaved = kept.is_err();
        if let Err(error) = kept {
            let why = &error.source;
            tracing::error!(%error, %why, "a rotated refresh token is known to this process only");
        }
        fetched
    }
}

impl Default for TokenCache {
    fn default() -> Self {
        Self { entries: Mutex::default(), most: MAX_SLOTS }
    }
}

impl TokenCache {
    /// Returns a good token; fetches one where there is none.
    pub(super) async fn get(&self, egress: &Egress, grant: &Grant) -> Result<Secret, CallError> {
        let asked = Instant::now();
        let slot = self.slot(grant.key());
        let mut slot = slot.lock_owned().await;
        if let Some(token) = slot.token.as_ref().filter(|token| token.good_until > Instant::now()) {
            return Ok(token.access.clone());
        }
        if let Some((_, error)) = slot.failure.as_ref().filter(|(when, _)| *when >= asked) {
            return Err(error.clone());
        }
        let (egress, grant) = (egress.clone(), grant.clone());
        // A task of its own: a caller that gives up must not lose a refresh token that the server just rotated.
        let fetching = tokio::spawn(async move {
            match slot.fetch(&egress, &grant).await {
                Ok(token) => {
                    slot.failure = None;
                    slot.refresh.clone_from(&token.refresh);
                    slot.token = Some(token.clone());
                    Ok(token.access)
                }
                Err(FetchError { error, rejected }) => {
                    // Only where the server does not take a rotated refresh token any more, the configured one is
                    // tried next; while the server is merely out of reach, the rotated one is all there is.
                    if rejected {
                        slot.refresh = None;
                    }
                    slot.token = None;
                    slot.failure = Some((Instant::now(), error.clone()));
                    Err(error)
                }
            }
        });
        fetching.await.unwrap_or_else(|_| Err(CallError::internal("the task that fetched a token failed")))
    }

    /// Gives up a token that the service did not take, unless it was replaced meanwhile.
    pub(super) async fn forget(&self, grant: &Grant, used: &Secret) {
        let slot = self.slot(grant.key());
        let mut slot = slot.lock().await;
        if slot.token.as_ref().is_some_and(|token| token.access == *used) {
            slot.token = None;
        }
    }

    fn slot(&self, key: [u8; 32]) -> Arc<AsyncMutex<Slot>> {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if entries.len() >= self.most && !entries.contains_key(&key) {
            evict(&mut entries, (self.most / 16).max(1));
        }
        let now = Instant::now();
        let entry = entries.entry(key).or_insert_with(|| Entry { slot: Arc::default(), used: now });
        entry.used = now;
        Arc::clone(&entry.slot)
    }
}

/// Drops some that nobody uses now: first those without a good token, last those with a rotated refresh token,
/// which cannot be had again; of each the ones that were not used for longest.
fn evict(entries: &mut HashMap<[u8; 32], Entry>, count: usize) {
    let now = Instant::now();
    let mut idle: Vec<_> = entries
        .iter()
        .filter(|(_, entry)| Arc::strong_count(&entry.slot) == 1)
        .filter_map(|(key, entry)| {
            let slot = entry.slot.try_lock().ok()?;
            let good = slot.token.as_ref().is_some_and(|token| token.good_until > now);
            Some((slot.refresh.is_some(), good, entry.used, *key))
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
    async fn what_can_be_had_again_goes_first() {
        let cache = TokenCache { entries: Mutex::default(), most: 4 };
        let later = Instant::now() + Duration::from_mins(1);
        let token = |good_until| Token { access: Secret::new("a".into()), good_until, refresh: None };
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
        // What is in use stays, the oldest of the others goes.
        let used = cache.slot([1; 32]);
        fill(8, true, true).await;
        assert_eq!(kept(), [1, 6, 7, 8]);
        drop(used);
    }
}
