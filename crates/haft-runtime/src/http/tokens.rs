//! Access tokens, kept while they are good, refreshed by one caller at a time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use haft_core::outcome::CallError;
use haft_core::secret::Secret;
use tokio::sync::Mutex as AsyncMutex;

use super::oauth::Grant;
use crate::egress::Egress;

/// How many grants are remembered.
const MOST_SLOTS: usize = 4096;

/// An access token.
#[derive(Clone)]
pub(super) struct Token {
    pub(super) access: Secret,
    pub(super) good_until: Instant,
    /// The refresh token that goes with it, where the server rotates them.
    pub(super) refresh: Option<Secret>,
}

/// All tokens of the process.
#[derive(Default)]
pub(super) struct TokenCache {
    slots: Mutex<HashMap<[u8; 32], Arc<AsyncMutex<Slot>>>>,
}

/// The token of one grant. Who holds the lock may fetch.
#[derive(Default)]
struct Slot {
    token: Option<Token>,
    refresh: Option<Secret>,
    /// The last failure: those who waited for that attempt share it instead of repeating it.
    failure: Option<(Instant, CallError)>,
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
            let refresh = slot.refresh.clone();
            match grant.fetch(&egress, refresh.as_ref()).await {
                Ok(token) => {
                    slot.failure = None;
                    slot.refresh.clone_from(&token.refresh);
                    slot.token = Some(token.clone());
                    Ok(token.access)
                }
                Err(error) => {
                    // The configured refresh token may have been replaced meanwhile: start from it again.
                    slot.refresh = None;
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
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        if slots.len() >= MOST_SLOTS && !slots.contains_key(&key) {
            slots.retain(|_, slot| Arc::strong_count(slot) > 1);
        }
        Arc::clone(slots.entry(key).or_default())
    }
}
