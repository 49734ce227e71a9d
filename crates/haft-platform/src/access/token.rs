//! A token in memory, and when it was last used.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use haft_core::Timestamp;
use haft_core::actor::login_key;
use haft_core::principal::Principal;

/// Uses within this time are noted once, so that busy tokens do not contend.
const USE_RESOLUTION_MICROS: i64 = 1_000_000;

/// A value of a token that gives access, or the login of a person without one.
#[derive(Debug)]
pub struct Token {
    pub principal: Arc<Principal>,
    /// The hash of the value, or the [`login_key`] of a person.
    pub hash: String,
    pub expires_at: Option<Timestamp>,
    /// The last use of the token, and of its person or service account.
    pub(super) last_uses: Vec<Arc<LastUse>>,
}

/// When a token, a person or a service account was last used, in microseconds.
#[derive(Debug, Default)]
pub(super) struct LastUse {
    pub(super) at: AtomicI64,
    saved: AtomicI64,
}

impl Token {
    /// Returns what it gives with a value that ends earlier.
    #[must_use]
    pub fn until(&self, end: Timestamp) -> Self {
        Self {
            principal: Arc::clone(&self.principal),
            hash: self.hash.clone(),
            expires_at: self.expires_at.into_iter().chain([end]).min(),
            last_uses: self.last_uses.clone(),
        }
    }

    /// Returns whether it is the login of a person, not a value that somebody keeps.
    pub fn is_login(&self) -> bool {
        let own = self.principal.actor.as_ref();
        own.is_some_and(|own| self.hash == login_key(own.id, &self.principal.tenant))
    }

    pub(super) fn is_valid(&self, now: Timestamp) -> bool {
        self.expires_at.is_none_or(|end| now < end)
    }
}

impl LastUse {
    pub(super) fn note(&self, now: Timestamp) {
        let now = now.as_microsecond();
        if now - self.at.load(Ordering::Relaxed) >= USE_RESOLUTION_MICROS {
            self.at.store(now, Ordering::Relaxed);
        }
    }

    /// Returns the use if it is not saved yet, and marks it as saved.
    pub(super) fn take(&self) -> Option<Timestamp> {
        let at = self.at.load(Ordering::Relaxed);
        let is_new = self.saved.swap(at, Ordering::Relaxed) < at;
        is_new.then(|| Timestamp::from_microsecond(at).ok()).flatten()
    }
}
