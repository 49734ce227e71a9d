//! Secrets: values that must not appear in output, logs or records.

mod account;
mod escape;
mod external;
mod search;

pub use account::{
    AccountId, AccountUser, Accounts, account_required, connect_path, grant_owner, login_owner, provider_of,
};
pub use external::{
    ExternalReference, ExternalSecretError, InvalidReference, SourceKind, check_path, check_provider_name,
    missing_secret,
};

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use zeroize::Zeroizing;

use crate::BoxFuture;
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

    /// Returns the lines of a multi-line text that are long enough to be redacted on their own.
    pub fn lines(&self) -> impl Iterator<Item = Secret> + '_ {
        let text = self.expose();
        let lines = text.lines().map(str::trim).filter(|line| line.len() >= MIN_LINE_LENGTH);
        lines.filter(move |line| *line != text).map(|line| Secret::new(line.to_owned()))
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

/// Selects a stored credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CredentialSelector<'a> {
    /// By its name.
    Name(&'a str),
    /// By what it is for; of several, the one that was changed last.
    Provider {
        /// The category.
        category: &'a str,
        /// The key of the provider.
        key: &'a str,
        /// The variant; `None` selects a credential without one.
        variant: Option<&'a str>,
    },
}

/// The source of the values of `${NAME}`. A name such as `vault:apps/weather#key` is an [`ExternalReference`].
pub trait SecretSource: Send + Sync {
    /// Returns the secret with this name, or `None` if it does not exist.
    fn secret<'a>(
        &'a self,
        tenant: &'a TenantId,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Option<Secret>, SecretError>>;

    /// Returns a credential as it was stored: its value, or its fields as a JSON object. Sources that know only secrets
    /// by name find nothing else.
    fn credential<'a>(
        &'a self,
        tenant: &'a TenantId,
        selector: CredentialSelector<'a>,
    ) -> BoxFuture<'a, Result<Option<Secret>, SecretError>> {
        match selector {
            CredentialSelector::Name(name) => self.secret(tenant, name),
            CredentialSelector::Provider { .. } => Box::pin(async { Ok(None) }),
        }
    }

    /// Returns the store of refresh tokens; without one they are kept in memory.
    fn refresh_tokens(&self) -> Option<Arc<dyn RefreshTokens>> {
        None
    }

    /// Returns the accounts of people, for `${account:NAME}`.
    fn accounts(&self) -> Option<Arc<dyn Accounts>> {
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
            if map.keys().any(|key| contains_secret(key, secrets)) {
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
            if contains_secret(&text, secrets) {
                *value = Value::String(MASK.to_owned());
            }
        }
        Value::Null | Value::Bool(_) => {}
    }
}

/// Replaces the given secrets in a text, however it is encoded: each character may be percent-encoded, a JSON escape or
/// an HTML character reference.
pub fn scrub_text(text: &mut String, secrets: &[Secret]) {
    // A secret is whole characters, so a part of valid text that is one starts and ends between characters.
    if let Cow::Owned(scrubbed) = scrub_bytes(text.as_bytes(), secrets) {
        *text = String::from_utf8_lossy(&scrubbed).into_owned();
    }
}

/// Like [`scrub_text`], for bytes that may not be text.
pub fn scrub_bytes<'a>(bytes: &'a [u8], secrets: &[Secret]) -> Cow<'a, [u8]> {
    let found = search::find(bytes, secrets);
    if found.is_empty() {
        return Cow::Borrowed(bytes);
    }
    let (mut scrubbed, mut from) = (Vec::with_capacity(bytes.len()), 0);
    for range in found {
        scrubbed.extend_from_slice(bytes.get(from..range.start).unwrap_or_default());
        scrubbed.extend_from_slice(MASK.as_bytes());
        from = range.end;
    }
    scrubbed.extend_from_slice(bytes.get(from..).unwrap_or_default());
    Cow::Owned(scrubbed)
}

/// Like [`scrub_text`], for multi-line text: replaces each line of a secret and keeps the line breaks.
pub fn scrub_lines(text: &mut String, secrets: &[Secret]) {
    let found = search::find(text.as_bytes(), secrets);
    if found.is_empty() {
        return;
    }
    let (mut scrubbed, mut from) = (Vec::with_capacity(text.len()), 0);
    let bytes = text.as_bytes();
    for range in found {
        scrubbed.extend_from_slice(bytes.get(from..range.start).unwrap_or_default());
        for line in bytes.get(range.clone()).unwrap_or_default().split_inclusive(|byte| *byte == b'\n') {
            scrubbed.extend_from_slice(MASK.as_bytes());
            scrubbed.extend(line.last().filter(|byte| **byte == b'\n'));
        }
        from = range.end;
    }
    scrubbed.extend_from_slice(bytes.get(from..).unwrap_or_default());
    *text = String::from_utf8_lossy(&scrubbed).into_owned();
}

/// Returns the offset from which the lines of a text may be the beginning of a multi-line secret; they are held back.
pub fn incomplete_lines(text: &str, secrets: &[Secret]) -> usize {
    let line_start = |at: usize| {
        let before = text.as_bytes().get(..at).unwrap_or_default();
        before.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1)
    };
    let mut from = line_start(search::partial_at_end(text.as_bytes(), secrets));
    // A complete secret is not split.
    for range in search::find(text.as_bytes(), secrets).into_iter().rev() {
        if range.start < from && from < range.end {
            from = line_start(range.start);
        }
    }
    from
}

/// Returns how many bytes at the end of a truncated text may be the beginning of a secret. Call it after complete
/// secrets were replaced.
pub fn partial_secret_at_end(text: &str, secrets: &[Secret]) -> usize {
    let end = search::partial_at_end(text.as_bytes(), secrets);
    text.len() - text.floor_char_boundary(end)
}

/// Returns how many bytes at the start of a truncated text may be the end of a secret.
pub fn partial_secret_at_start(text: &str, secrets: &[Secret]) -> usize {
    text.ceil_char_boundary(search::partial_at_start(text.as_bytes(), secrets))
}

fn contains_secret(text: &str, secrets: &[Secret]) -> bool {
    !search::find(text.as_bytes(), secrets).is_empty()
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
    fn changed_white_space_does_not_hide_a_secret() {
        for (secret, text) in [
            ("user\tp4ssword", "user p4ssword"),
            ("user\tp4ssword", "user        p4ssword"),
            ("user p4ssword", "user\n    p4ssword"),
            ("user p4ssword", r"user\n\tp4ssword"),
            ("user p4ssword", "user%0Ap4ssword"),
            ("user  p4ss word", "user+p4ss+word"),
            ("user\np4ss\nword", "user p4ss word"),
            ("user\np4ss", "userp4ss"),
            ("0123456789abcdefghij", "01\n23456789abcdefghij"),
            ("0123456789abcdefghij", "0123456789\r\n  abcdefghij"),
            ("0123456789abcdefghij", "0123456789abcdefgh\\nij"),
        ] {
            let mut shown = format!("a {text} b");
            scrub_text(&mut shown, &[Secret::new(secret.to_owned())]);
            assert_eq!(shown, "a *** b", "{secret:?} in {text:?}");
        }
        for (secret, text) in [("hunter2key", "hunter 2key"), ("user p4ss", "user p5ss"), ("abcd", "ab cd")] {
            let mut shown = text.to_owned();
            scrub_text(&mut shown, &[Secret::new(secret.to_owned())]);
            assert_eq!(shown, text, "{secret:?}");
        }
        let mut lines = "x: user\np4ss\nend".to_owned();
        scrub_lines(&mut lines, &[Secret::new("user\np4ss\n".to_owned())]);
        assert_eq!(lines, "x: ***\n***\nend");
    }

    #[test]
    fn long_lines_are_secrets_of_their_own() {
        let lines = |text: &str| {
            let secret = Secret::new(text.to_owned());
            secret.lines().map(|line| line.expose().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(lines("one line only"), Vec::<String>::new());
        assert_eq!(lines("first line\r\nshort\n  second line"), ["first line", "second line"]);
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
    fn secrets_are_found_in_any_mixture_of_encodings() {
        let secrets = ["p/ss w\"rd&1<>", "ab%41c", r"back\nslash", "tökén-😀", "plain-token"]
            .map(|text| Secret::new(text.to_owned()));
        for encoded in [
            // Percent-encoding.
            "p%2Fss%20w%22rd%261%3C%3E",
            "p%2fss+w%22rd%261%3c%3e",
            "%70/%73s w%22rd&1<%3E",
            "t%C3%b6k%c3%A9n-%F0%9f%98%80",
            "%70lain%2dtoken",
            // JSON.
            r#"p\/ss w\"rd&1<>"#,
            r"p\/ss w\u0022rd\u00261\u003c\u003E",
            r"t\u00f6k\u00E9n-\ud83d\uDE00",
            // HTML.
            "p/ss w&quot;rd&amp;1&lt;&gt;",
            "p&sol;ss&#32;w&#34;rd&#x26;1&#60;&#X3e;",
            "t&#246;k&#xE9;n&#45;&#128512;",
            // Mixtures, and text that is encoded twice or three times.
            r"p%2Fss\u0020w&quot;rd%261\u003c&gt;",
            "p%252Fss%2520w%2522rd%25261%253C%253E",
            r#"p\\\/ss w\\\"rd&1<>"#,
            r"p\u00252Fss w&amp;#34;rd%26amp;1\u0026lt;&#38;gt;",
            "%2525252D".replace("%2525252D", "plain%25252Dtoken").as_str(),
            // Secrets that look like escape sequences themselves.
            "ab%41%63",
            "ab%2541c",
            "%61b%41c",
            r"back\\nslash",
            r"back\nslas%68",
        ] {
            for (before, after) in [("", ""), ("x=", "&y=1"), ("C:\\", "%"), ("100%", ";"), ("ä&", "ä")] {
                let mut text = format!("{before}{encoded}{after}");
                scrub_text(&mut text, &secrets);
                assert_eq!(text, format!("{before}***{after}"), "{encoded}");
            }
        }
        for other in [
            "p%2Fss%20w%22rd%262%3C%3E",
            "abAc",
            "back\nslash",
            "plain%2Ftoken",
            "%70lain%2",
            "100% & more \\ +",
        ] {
            let mut text = other.to_owned();
            scrub_text(&mut text, &secrets);
            assert_eq!(text, other);
        }
    }

    #[test]
    fn partial_secrets_are_found_in_encoded_text() {
        let secrets = [Secret::new("p/ss word".to_owned())];
        for (text, start, end) in [
            ("nothing", 0, 0),
            ("%2", 0, 2),
            ("x p%2Fs", 0, 5),
            ("x p%2", 0, 3),
            ("x p%252", 0, 5),
            (r"x p\u002", 0, 6),
            (r"x p\u002fss\", 0, 10),
            ("x p&so", 0, 4),
            ("x %70&#4", 0, 6),
            ("s%20wor%64 y", 10, 0),
            ("Fss+word y", 8, 0),
            ("2Fss+word y", 9, 0),
            ("u002fss word y", 12, 0),
            ("47;ss word y", 10, 0),
        ] {
            let found = (partial_secret_at_start(text, &secrets), partial_secret_at_end(text, &secrets));
            assert_eq!(found, (start, end), "{text}");
        }
    }

    #[test]
    fn a_text_that_takes_too_long_is_masked_as_a_whole() {
        let secrets = [Secret::new(format!("{}b", "a".repeat(20_000)))];
        let mut text = "a%61".repeat(20_000);
        scrub_text(&mut text, &secrets);
        assert_eq!(text, MASK);
    }

    #[test]
    fn nested_secrets_are_fully_replaced() {
        let secrets = ["hunter2", "hunter2-prod-key"].map(|text| Secret::new(text.to_owned()));
        let mut text = "a hunter2-prod-key b hunter2".to_owned();
        scrub_text(&mut text, &secrets);
        assert_eq!(text, "a *** b ***");
    }
}
