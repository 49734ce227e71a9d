//! Secrets: values that must not appear in output, logs or records.

use std::fmt;
use std::sync::Arc;

use zeroize::Zeroizing;

use crate::BoxFuture;
use crate::encode::{percent_encode, xml_escape};
use crate::name::TenantId;

/// The text that is shown in place of a secret; written back, it means "unchanged".
pub const MASK: &str = "***";

/// The minimum length of a line of a multi-line secret that is redacted on its own.
const MIN_LINE_LENGTH: usize = 8;

/// A secret text. `Debug` and `Display` show [`MASK`], and it is not serialisable.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Wraps a text.
    pub fn new(text: String) -> Self {
        Self(Zeroizing::new(text))
    }

    /// Returns the plain text. Call it only where the secret is used.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Returns the forms that the text takes in a URL, in JSON and in XML, because a response may echo any of them, and
    /// each line of a multi-line text.
    pub fn escaped_forms(&self) -> impl Iterator<Item = Secret> + '_ {
        let text = self.expose();
        let quoted = serde_json::Value::String(text.to_owned()).to_string();
        let json =
            quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(text).to_owned();
        // Some servers escape only the characters that must be escaped.
        let xml = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        let lines = text.lines().map(str::trim).filter(|line| line.len() >= MIN_LINE_LENGTH);
        [percent_encode(text), json, xml, xml_escape(text)]
            .into_iter()
            .chain(lines.map(str::to_owned))
            .filter(move |form| form != text)
            .map(Secret::new)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

/// An error of the secret store; a missing secret is not an error.
#[derive(Debug, thiserror::Error)]
#[error("failed to read the secret `{name}`")]
pub struct SecretError {
    /// The name of the secret.
    pub name: String,
    /// The cause.
    #[source]
    pub source: Box<dyn std::error::Error + Send + Sync>,
}

/// The source of the values of `${NAME}`.
pub trait SecretSource: Send + Sync {
    /// Returns the secret with this name, or `None` if it does not exist.
    fn secret<'a>(
        &'a self,
        tenant: &'a TenantId,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Option<Secret>, SecretError>>;

    /// Returns the store of refresh tokens; without one they are kept in memory.
    fn refresh_tokens(&self) -> Option<Arc<dyn RefreshTokens>> {
        None
    }
}

/// Identifies an OAuth grant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantId {
    /// The tenant.
    pub tenant: TenantId,
    /// A digest of the OAuth settings and credentials.
    pub key: String,
    /// The credential that holds the initial refresh token; empty if there is not exactly one.
    pub credential: String,
}

/// The lock of one process on the refresh token of a grant.
#[derive(Debug, Clone)]
pub struct RefreshLock {
    /// The stored token; if `None`, the configured token is the newest.
    pub token: Option<Secret>,
    /// The number of this lock.
    pub number: i64,
}

/// Stores rotated refresh tokens across restarts. A used token may be invalid, so each use requires the lock.
pub trait RefreshTokens: Send + Sync {
    /// Returns the stored token without acquiring the lock.
    fn read<'a>(&'a self, grant: &'a GrantId) -> BoxFuture<'a, Result<Option<Secret>, SecretError>>;
    /// Acquires the lock.
    fn begin<'a>(&'a self, grant: &'a GrantId) -> BoxFuture<'a, Result<RefreshLock, SecretError>>;
    /// Stores the newest token, or deletes it if `None`, and releases the lock.
    fn end<'a>(
        &'a self,
        grant: &'a GrantId,
        lock: i64,
        token: Option<&'a Secret>,
    ) -> BoxFuture<'a, Result<(), SecretError>>;
}

/// Replaces the given secrets in all strings and keys of a value.
///
/// A server may echo what it received, which must not reach a model or a record.
pub fn scrub(value: &mut serde_json::Value, secrets: &[Secret]) {
    use serde_json::Value;
    match value {
        Value::String(text) => scrub_text(text, secrets),
        Value::Array(items) => items.iter_mut().for_each(|item| scrub(item, secrets)),
        Value::Object(map) => {
            if map.keys().any(|key| secrets.iter().any(|s| contains_secret(key, s))) {
                *map = std::mem::take(map)
                    .into_iter()
                    .map(|(mut key, item)| {
                        scrub_text(&mut key, secrets);
                        (key, item)
                    })
                    .collect();
            }
            map.values_mut().for_each(|item| scrub(item, secrets));
        }
        // A numeric secret may come back as a number.
        Value::Number(number) => {
            let text = number.to_string();
            if secrets.iter().any(|secret| contains_secret(&text, secret)) {
                *value = Value::String(MASK.to_owned());
            }
        }
        Value::Null | Value::Bool(_) => {}
    }
}

/// Replaces the given secrets in a text.
///
/// Longer secrets are replaced first, so that no part of a secret remains that contains another one.
pub fn scrub_text(text: &mut String, secrets: &[Secret]) {
    let mut found: Vec<&Secret> = secrets.iter().filter(|secret| contains_secret(text, secret)).collect();
    found.sort_by_key(|secret| std::cmp::Reverse(secret.expose().len()));
    for secret in found {
        *text = text.replace(secret.expose(), MASK);
    }
}

/// Returns how many bytes at the end of a truncated text may be the beginning of a secret. Call it after complete
/// secrets were replaced.
pub fn partial_secret_at_end(text: &str, secrets: &[Secret]) -> usize {
    let parts = |secret: &str| {
        let ends = secret.char_indices().map(|(index, _)| index).rev();
        ends.filter_map(|end| secret.get(..end)).find(|part| text.ends_with(part)).map_or(0, str::len)
    };
    secrets.iter().map(|secret| parts(secret.expose())).max().unwrap_or(0)
}

/// Returns how many bytes at the start of a truncated text may be the end of a secret.
pub fn partial_secret_at_start(text: &str, secrets: &[Secret]) -> usize {
    let parts = |secret: &str| {
        let starts = secret.char_indices().map(|(index, _)| index).skip(1);
        starts.filter_map(|start| secret.get(start..)).find(|part| text.starts_with(part)).map_or(0, str::len)
    };
    secrets.iter().map(|secret| parts(secret.expose())).max().unwrap_or(0)
}

/// Very short secrets are not replaced: that would corrupt unrelated text without hiding anything.
fn contains_secret(text: &str, secret: &Secret) -> bool {
    secret.expose().len() >= 4 && text.contains(secret.expose())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_masked_in_debug_and_display() {
        let secret = Secret::new("s3cr3t".into());
        assert_eq!(format!("{secret} {secret:?} {:?}", Some(&secret)), "*** *** Some(***)");
    }

    #[test]
    fn scrub_reaches_keys_and_depths() {
        let mut value = serde_json::json!({"a": ["x hunter2 y", {"hunter2": 1}], "b": 2});
        scrub(&mut value, &[Secret::new("hunter2".into())]);
        assert_eq!(value, serde_json::json!({"a": ["x *** y", {"***": 1}], "b": 2}));
        let mut value = serde_json::json!({"pin": 8_273_645, "other": 8_273_644});
        scrub(&mut value, &[Secret::new("8273645".into())]);
        assert_eq!(value, serde_json::json!({"pin": "***", "other": 8_273_644}));
    }

    #[test]
    fn escaped_forms_are_complete() {
        let forms = |text: &str| {
            let secret = Secret::new(text.to_owned());
            secret.escaped_forms().map(|form| form.expose().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(forms("plain-1"), Vec::<String>::new());
        assert_eq!(
            forms("first line\r\nshort\n  second line"),
            [
                "first%20line%0D%0Ashort%0A%20%20second%20line",
                r"first line\r\nshort\n  second line",
                "first line&#13;&#10;short&#10;  second line",
                "first line",
                "second line"
            ]
        );
        assert_eq!(forms(r#"a&"b""#), ["a%26%22b%22", r#"a&\"b\""#, r#"a&amp;"b""#, "a&amp;&quot;b&quot;"]);
    }

    #[test]
    fn partial_secrets_are_found_at_both_ends() {
        let secrets = ["hunter2", "äöü"].map(|text| Secret::new(text.to_owned()));
        let check = |text: &str, start: usize, end: usize| {
            assert_eq!(
                (partial_secret_at_start(text, &secrets), partial_secret_at_end(text, &secrets)),
                (start, end),
                "{text}"
            );
        };
        check("", 0, 0);
        check("nothing", 0, 0);
        check("ter2 and hunt", 4, 4);
        check("ü and äö", 2, 4);
        check("h", 0, 1);
        check("hunter2", 0, 0);
    }

    #[test]
    fn nested_secrets_are_fully_replaced() {
        let secrets = ["hunter2", "hunter2-prod-key"].map(|text| Secret::new(text.to_owned()));
        let mut text = "a hunter2-prod-key b hunter2".to_owned();
        scrub_text(&mut text, &secrets);
        assert_eq!(text, "a *** b ***");
    }
}
