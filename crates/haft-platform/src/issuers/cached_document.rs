//! A document of an issuer in memory. An old one is used while a newer one is fetched, and as long as the issuer is down.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use haft_core::Timestamp;

use super::error::IssuerError;

/// After a failure, the issuer is not asked again for this long.
const RETRY_DELAY: Duration = Duration::from_secs(5);
/// How often a token with an unknown key makes haft fetch the keys again.
const FORCED_DELAY: Duration = Duration::from_secs(30);

/// A document, and what happened when it was fetched.
pub(super) struct CachedDocument<T> {
    state: Mutex<State<T>>,
    /// Held while the document is fetched, so that it is fetched once.
    fetching: tokio::sync::Mutex<()>,
}

struct State<T> {
    value: Option<Arc<T>>,
    fetched_at: Option<Timestamp>,
    attempted_at: Option<Timestamp>,
    forced_at: Option<Timestamp>,
    error: Option<IssuerError>,
}

/// What is known of a document.
pub(super) enum Known<T> {
    Fresh(Arc<T>),
    /// It should be fetched again.
    Stale(Arc<T>),
    /// It was fetched too long ago, or never.
    Missing,
}

impl<T> Default for CachedDocument<T> {
    fn default() -> Self {
        let state = State { value: None, fetched_at: None, attempted_at: None, forced_at: None, error: None };
        Self { state: Mutex::new(state), fetching: tokio::sync::Mutex::default() }
    }
}

impl<T> CachedDocument<T> {
    fn with_state<R>(&self, use_state: impl FnOnce(&mut State<T>) -> R) -> R {
        use_state(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the document if there is one.
    pub(super) fn known(&self, now: Timestamp, lifetime: Duration) -> Known<T> {
        self.with_state(|state| match (&state.value, state.fetched_at) {
            (Some(value), Some(at)) if now < at + lifetime => Known::Fresh(Arc::clone(value)),
            (Some(value), _) => Known::Stale(Arc::clone(value)),
            (None, _) => Known::Missing,
        })
    }

    /// Returns whether enough time has passed since the last attempt.
    pub(super) fn may_fetch(&self, now: Timestamp) -> bool {
        self.with_state(|state| state.attempted_at.is_none_or(|at| at + RETRY_DELAY <= now))
    }

    /// Returns whether a token with an unknown key may cause a fetch now; the next one may not for a while.
    pub(super) fn try_force(&self, now: Timestamp) -> bool {
        self.with_state(|state| {
            let may = state.forced_at.is_none_or(|at| at + FORCED_DELAY <= now);
            if may {
                state.forced_at = Some(now);
                state.attempted_at = None;
            }
            may
        })
    }

    /// Returns the last error, if the last attempt failed.
    pub(super) fn error(&self) -> Option<IssuerError> {
        self.with_state(|state| state.error.clone())
    }

    /// Fetches the document, unless another request has just done so.
    pub(super) async fn refresh(
        &self,
        now: Timestamp,
        fetch: impl Future<Output = Result<T, IssuerError>>,
    ) -> Result<Arc<T>, IssuerError> {
        let _turn = self.fetching.lock().await;
        if !self.may_fetch(now) {
            return self.with_state(|state| match (&state.error, &state.value) {
                (_, Some(value)) => Ok(Arc::clone(value)),
                (Some(error), None) => Err(error.clone()),
                (None, None) => {
                    Err(IssuerError::Unreachable("the previous request was interrupted".to_owned()))
                }
            });
        }
        self.with_state(|state| state.attempted_at = Some(now));
        let fetched = fetch.await;
        self.with_state(|state| match fetched {
            Ok(value) => {
                let value = Arc::new(value);
                (state.value, state.fetched_at, state.error) = (Some(Arc::clone(&value)), Some(now), None);
                Ok(value)
            }
            Err(error) => {
                tracing::warn!(%error, "failed to fetch a document of an issuer");
                state.error = Some(error.clone());
                // What was valid a moment ago is used as long as the issuer is down.
                state.value.as_ref().map(Arc::clone).ok_or(error)
            }
        })
    }
}
