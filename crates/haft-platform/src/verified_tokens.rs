//! Bearer tokens of issuers that were verified recently, so that most requests cost neither a signature check nor a query.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use haft_core::Timestamp;

/// How long a verification holds at most.
const LIFETIME: Duration = Duration::from_mins(5);
/// How long a valid token that gives no access is remembered.
const NO_ACCESS_LIFETIME: Duration = Duration::from_secs(10);
/// The most tokens.
const MAX_TOKENS: usize = 10_000;

/// The tokens, by the hash of their value.
#[derive(Debug, Default)]
pub(crate) struct VerifiedTokens(Mutex<HashMap<String, VerifiedToken>>);

/// What a valid token gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct VerifiedToken {
    /// The key of the login of its person; `None` if it gives no access.
    pub(crate) login_key: Option<String>,
    /// When it expires.
    pub(crate) end: Timestamp,
    /// Until when this holds.
    until: Timestamp,
}

impl VerifiedTokens {
    /// Finds a token that was verified recently.
    pub(crate) fn get(&self, hash: &str, now: Timestamp) -> Option<VerifiedToken> {
        let tokens = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        tokens.get(hash).filter(|token| now < token.until).cloned()
    }

    /// Keeps the result of a verification.
    pub(crate) fn insert(&self, hash: String, login_key: Option<String>, end: Timestamp, now: Timestamp) {
        let lifetime = if login_key.is_some() { LIFETIME } else { NO_ACCESS_LIFETIME };
        let until = now.checked_add(lifetime).map_or(end, |until| until.min(end));
        let mut tokens = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if tokens.len() >= MAX_TOKENS {
            tokens.retain(|_, token| now < token.until);
        }
        // So many valid tokens within minutes are rare: verifying them again costs less than an order of use.
        if tokens.len() >= MAX_TOKENS {
            tokens.clear();
        }
        tokens.insert(hash, VerifiedToken { login_key, end, until });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verification_holds_for_minutes_and_not_beyond_the_token() {
        let tokens = VerifiedTokens::default();
        let now: Timestamp = "2026-08-01T10:00:00Z".parse().unwrap();
        let (soon, late) = (now + Duration::from_mins(1), now + Duration::from_hours(1));
        tokens.insert("short".to_owned(), Some("ann".to_owned()), soon, now);
        tokens.insert("long".to_owned(), Some("ann".to_owned()), late, now);
        tokens.insert("nobody".to_owned(), None, late, now);
        let holds = |hash: &str, after: u64| tokens.get(hash, now + Duration::from_secs(after)).is_some();
        assert!(holds("short", 59) && !holds("short", 60));
        assert!(holds("long", 299) && !holds("long", 300));
        assert!(holds("nobody", 9) && !holds("nobody", 10));
        assert!(!holds("other", 0));
    }

    #[test]
    fn the_number_is_bounded() {
        let tokens = VerifiedTokens::default();
        let now: Timestamp = "2026-08-01T10:00:00Z".parse().unwrap();
        for number in 0..=MAX_TOKENS {
            tokens.insert(number.to_string(), None, now + LIFETIME, now);
        }
        assert_eq!(tokens.0.lock().unwrap().len(), 1);
    }
}
