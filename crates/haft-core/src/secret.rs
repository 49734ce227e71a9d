//! Values that must never be seen.

use std::fmt;
use std::sync::Arc;

use zeroize::Zeroizing;

use crate::BoxFuture;
use crate::encode::{percent_encode, xml_escape};
use crate::name::TenantId;

/// What is shown in place of a secret; written back, it means "unchanged".
pub const MASK: &str = "***";

/// The shortest line of a longer secret that is kept secret by itself.
const SHORTEST_LINE: usize = 8;

/// A secret text. `Debug` and `Display` show [`MASK`], and it is not serialisable.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Wraps a text.
    pub fn new(text: String) -> Self {
        Self(Zeroizing::new(text))
    }

    /// Returns the text itself. Call it only where the secret is put to use.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Returns the other forms that the text takes in a URL, in JSON and in XML: an echo may show any of them. Of a
    /// text of several lines each is one, too: an output is often looked at line by line.
    pub fn escaped_forms(&self) -> impl Iterator<Item = Secret> + '_ {
        let text = self.expose();
        let quoted = serde_json::Value::String(text.to_owned()).to_string();
        let json =
            quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(text).to_owned();
        // Some servers write only the characters as entities that have to be.
        let xml = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        let lines = text.lines().map(str::trim).filter(|line| line.len() >= SHORTEST_LINE);
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

/// Says why a secret could not be read (not that it does not exist).
#[derive(Debug, thiserror::Error)]
#[error("read the secret `{name}`")]
pub struct SecretError {
    /// The name that was asked for.
    pub name: String,
    /// What went wrong.
    #[source]
    pub source: Box<dyn std::error::Error + Send + Sync>,
}

/// Where `${NAME}` finds its value.
pub trait SecretSource: Send + Sync {
    /// Returns the secret of that name, or `None` where there is none.
    fn secret<'a>(
        &'a self,
        tenant: &'a TenantId,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Option<Secret>, SecretError>>;

    /// Returns where refresh tokens are kept; nothing means: no longer than the process lives.
    fn refresh_tokens(&self) -> Option<Arc<dyn RefreshTokens>> {
        None
    }
}

/// What tokens are asked for with, told from all others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantId {
    /// For whom.
    pub tenant: TenantId,
    /// A digest of everything that the definition and the credentials say.
    pub key: String,
    /// The credential that holds the first refresh token; empty where it is not just one.
    pub credential: String,
}

/// The turn of one process to use the refresh token of a grant.
#[derive(Debug, Clone)]
pub struct RefreshLock {
    /// The token that was kept last; without it, the configured one is the newest.
    pub token: Option<Secret>,
    /// Tells this turn from others.
    pub number: i64,
}

/// Keeps the refresh tokens that servers give out in place of the configured ones, beyond the process. A token
/// that was used once may be worth nothing: whoever uses one waits for its turn.
pub trait RefreshTokens: Send + Sync {
    /// Returns the token that was kept last, without a turn to use it up.
    fn read<'a>(&'a self, grant: &'a GrantId) -> BoxFuture<'a, Result<Option<Secret>, SecretError>>;
    /// Waits for the turn.
    fn begin<'a>(&'a self, grant: &'a GrantId) -> BoxFuture<'a, Result<RefreshLock, SecretError>>;
    /// Keeps what is the newest token now, or forgets that there was one, and ends the turn.
    fn end<'a>(
        &'a self,
        grant: &'a GrantId,
        turn: i64,
        token: Option<&'a Secret>,
    ) -> BoxFuture<'a, Result<(), SecretError>>;
}

/// Replaces every occurrence of the given secrets in all strings (keys too) of a value.
///
/// A server may echo what it was sent; the echo must not reach a model or a record.
pub fn scrub(value: &mut serde_json::Value, secrets: &[Secret]) {
    use serde_json::Value;
    match value {
        Value::String(text) => scrub_text(text, secrets),
        Value::Array(items) => items.iter_mut().for_each(|item| scrub(item, secrets)),
        Value::Object(map) => {
            if map.keys().any(|key| secrets.iter().any(|s| visible(key, s))) {
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
        // A secret of digits may come back as a number.
        Value::Number(number) => {
            let text = number.to_string();
            if secrets.iter().any(|secret| visible(&text, secret)) {
                *value = Value::String(MASK.to_owned());
            }
        }
        Value::Null | Value::Bool(_) => {}
    }
}

/// Replaces every occurrence of the given secrets in a text.
///
/// The longest goes first: of a secret that holds another one, the rest would stay to be read.
pub fn scrub_text(text: &mut String, secrets: &[Secret]) {
    let mut found: Vec<&Secret> = secrets.iter().filter(|secret| visible(text, secret)).collect();
    found.sort_by_key(|secret| std::cmp::Reverse(secret.expose().len()));
    for secret in found {
        *text = text.replace(secret.expose(), MASK);
    }
}

/// Returns how many bytes at the end of a text may be the beginning of a secret. For texts that are cut there, once
/// the whole secrets are replaced.
pub fn halved_at_end(text: &str, secrets: &[Secret]) -> usize {
    let parts = |secret: &str| {
        let ends = secret.char_indices().map(|(index, _)| index).rev();
        ends.filter_map(|end| secret.get(..end)).find(|part| text.ends_with(part)).map_or(0, str::len)
    };
    secrets.iter().map(|secret| parts(secret.expose())).max().unwrap_or(0)
}

/// Returns how many bytes at the start of a text may be the end of a secret.
pub fn halved_at_start(text: &str, secrets: &[Secret]) -> usize {
    let parts = |secret: &str| {
        let starts = secret.char_indices().map(|(index, _)| index).skip(1);
        starts.filter_map(|start| secret.get(start..)).find(|part| text.starts_with(part)).map_or(0, str::len)
    };
    secrets.iter().map(|secret| parts(secret.expose())).max().unwrap_or(0)
}

/// Very short secrets are left alone: masking them would mutilate unrelated text without hiding anything.
fn visible(text: &str, secret: &Secret) -> bool {
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
    fn every_escaped_form_is_known() {
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
    fn halves_of_secrets_are_found_at_both_ends() {
        let secrets = ["hunter2", "äöü"].map(|text| Secret::new(text.to_owned()));
        let check = |text: &str, start: usize, end: usize| {
            assert_eq!(
                (halved_at_start(text, &secrets), halved_at_end(text, &secrets)),
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
    fn a_secret_within_another_leaves_no_rest() {
        let secrets = ["hunter2", "hunter2-prod-key"].map(|text| Secret::new(text.to_owned()));
        let mut text = "a hunter2-prod-key b hunter2".to_owned();
        scrub_text(&mut text, &secrets);
        assert_eq!(text, "a *** b ***");
    }
}
