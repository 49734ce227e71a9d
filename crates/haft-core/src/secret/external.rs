//! References to secrets in sources outside of haft, such as `vault:apps/weather#api_key`, and why one cannot be read.
//! Reading them is up to the sources.

use std::time::Duration;

use crate::duration;
use crate::problem::excerpt;

/// The maximum length of a reference, in characters.
const MAX_LENGTH: usize = 512;
/// The maximum length of the name of a provider of accounts, in characters.
const MAX_PROVIDER: usize = 64;
/// The maximum length of the name of a command or a variable, in characters.
const MAX_NAME: usize = 128;

/// A kind of source outside of haft.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SourceKind {
    /// The KV store (version 2) of HashiCorp Vault or OpenBao.
    Vault,
    /// The files of a folder.
    File,
    /// The environment of the server.
    Environment,
    /// The output of a command.
    Command,
    /// The account of the person who calls.
    Account,
}

impl SourceKind {
    /// All kinds.
    pub const ALL: [Self; 5] = [Self::Vault, Self::File, Self::Environment, Self::Command, Self::Account];

    /// Returns the text before the colon of a reference.
    pub const fn scheme(self) -> &'static str {
        match self {
            Self::Vault => "vault",
            Self::File => "file",
            Self::Environment => "env",
            Self::Command => "cmd",
            Self::Account => "account",
        }
    }

    /// Returns the setting that configures the source.
    pub const fn setting(self) -> &'static str {
        match self {
            Self::Vault => "secrets.vault.address",
            Self::File => "secrets.files.directory",
            Self::Environment => "secrets.environment",
            Self::Command => "secrets.commands",
            Self::Account => "/api/account-providers",
        }
    }
}

/// A reference to a secret in a source outside of haft.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExternalReference<'a> {
    /// The source.
    pub kind: SourceKind,
    /// The path in Vault or in the folder, or the name of the variable or the command.
    pub path: &'a str,
    /// The key within a secret of Vault; without one, the usual one.
    pub key: Option<&'a str>,
}

impl<'a> ExternalReference<'a> {
    /// Parses the text between the braces of `${…}`. Returns `None` for the name of a stored secret, which has no scheme.
    pub fn parse(text: &'a str) -> Option<Result<Self, InvalidReference>> {
        let (scheme, rest) = text.split_once(':')?;
        let kind = SourceKind::ALL.into_iter().find(|kind| kind.scheme() == scheme)?;
        let parsed = Self::of(kind, rest);
        Some(parsed.map_err(|reason| InvalidReference { reference: excerpt(text, 80), reason }))
    }

    fn of(kind: SourceKind, rest: &'a str) -> Result<Self, &'static str> {
        if rest.chars().count() > MAX_LENGTH {
            return Err("it exceeds 512 characters");
        }
        if rest.chars().any(is_rejected) {
            return Err("it has white space, a control character, or one of { } $ | & \" ' \\ ? %");
        }
        let (path, key) = match rest.split_once('#') {
            Some((path, key)) => (path, Some(key)),
            None => (rest, None),
        };
        match key {
            Some(_) if kind != SourceKind::Vault => return Err("only references to `vault:` have a `#`"),
            Some("") => return Err("the key after `#` is empty"),
            Some(key) if key.contains('#') => return Err("it has more than one `#`"),
            _ => {}
        }
        match kind {
            SourceKind::Vault | SourceKind::File => check_path(path)?,
            SourceKind::Environment | SourceKind::Command => check_name(path)?,
            SourceKind::Account => check_provider_name(path)?,
        }
        Ok(Self { kind, path, key })
    }
}

/// Returns whether a character may be in no reference: it could end the reference, or change the URL that is requested.
fn is_rejected(c: char) -> bool {
    c.is_whitespace()
        || c.is_control()
        || matches!(c, '{' | '}' | '$' | '|' | '&' | '"' | '\'' | '\\' | '?' | '%')
}

/// Checks a relative path of one or more parts.
pub fn check_path(path: &str) -> Result<(), &'static str> {
    if path.is_empty() {
        return Err("the path is empty");
    }
    if path.starts_with('/') {
        return Err("the path starts with `/`; write it without");
    }
    if path.split('/').any(str::is_empty) {
        return Err("the path has an empty part (`//`, or `/` at the end)");
    }
    if path.split('/').any(|part| matches!(part, "." | "..")) {
        return Err("the path has the part `.` or `..`");
    }
    Ok(())
}

fn check_name(name: &str) -> Result<(), &'static str> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if name.is_empty() || name.chars().count() > MAX_NAME || !name.chars().all(is_plain) {
        return Err("the name must have 1 to 128 letters, digits, `_`, `-` and `.`");
    }
    Ok(())
}

/// Checks the name of a provider of accounts.
pub fn check_provider_name(name: &str) -> Result<(), &'static str> {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '-');
    if name.is_empty() || name.len() > MAX_PROVIDER || !name.chars().all(is_plain) {
        return Err("expected 1 to 64 lower-case letters, digits, `_` and `-`");
    }
    Ok(())
}

/// A reference that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid reference `{reference}`: {reason}")]
pub struct InvalidReference {
    /// The reference.
    pub reference: String,
    /// What is invalid.
    pub reason: &'static str,
}

/// Why a secret of a source outside of haft cannot be read. No message has a value or a token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExternalSecretError {
    /// The reference is invalid.
    #[error(transparent)]
    Invalid(#[from] InvalidReference),
    /// The source is not configured.
    #[error("no source for `{}:` is configured; set `{}` in `haft.toml`", .0.scheme(), .0.setting())]
    NotConfigured(SourceKind),
    /// The command is not configured, or the tenant may not use it.
    #[error(
        "no command `{name}` is configured for tenant `{tenant}`; add `[secrets.commands.{name}]` to `haft.toml`, or the tenant to its `tenants`"
    )]
    UnknownCommand {
        /// The command.
        name: String,
        /// The tenant.
        tenant: String,
    },
    /// The environment variable is not available, or the tenant may not read it.
    #[error(
        "the variable `{name}` is not available to tenant `{tenant}`; set it, add it to `secrets.environment`, and for a tenant other than `default` add it to the `environment` of the tenant"
    )]
    UnknownVariable {
        /// The variable.
        name: String,
        /// The tenant.
        tenant: String,
    },
    /// The tenant may not use the source.
    #[error("tenant `{tenant}` may not use this source; add the tenant to `{setting}`")]
    TenantDenied {
        /// The tenant.
        tenant: String,
        /// The setting with the tenants that may.
        setting: String,
    },
    /// The tenant may not read the path.
    #[error("the path is not below `{0}`, to which `secrets.vault.path_prefix` limits the tenant")]
    OutsidePrefix(String),
    /// The source has no such secret.
    #[error("not found: {0}")]
    NotFound(&'static str),
    /// The secret has no such key.
    #[error("the secret has no key `{0}`")]
    NoKey(String),
    /// The secret has several keys, and none of them is a usual one.
    #[error("the secret has several keys; name one, as in `vault:PATH#KEY`")]
    SeveralKeys,
    /// Vault denied the request.
    #[error(
        "Vault denied the request (403): the token is invalid, or its policy does not allow reading `{0}`"
    )]
    Denied(String),
    /// Vault rejected the login.
    #[error("Vault rejected the login by `{method}` (status {status})")]
    LoginRejected {
        /// The method.
        method: &'static str,
        /// The status of the response.
        status: u16,
    },
    /// A file with a credential of haft cannot be used.
    #[error("the credential file of Vault could not be read; the log names it")]
    CredentialFile,
    /// Vault is sealed.
    #[error("Vault is sealed")]
    Sealed,
    /// Vault redirected the request.
    #[error(
        "Vault redirected the request, which haft does not follow; set `secrets.vault.address` to the active node"
    )]
    Redirected,
    /// Vault failed.
    #[error("Vault responded with status {0}")]
    Status(u16),
    /// There is no connection to Vault.
    #[error("Vault is unreachable: {0}")]
    Unreachable(String),
    /// There was no response in time.
    #[error("timeout ({}) exceeded", duration::format(*.0))]
    TimedOut(Duration),
    /// The response is not one of a KV store.
    #[error("invalid response of Vault: {0}")]
    InvalidResponse(&'static str),
    /// The file or its folder cannot be read.
    #[error("{0}")]
    File(String),
    /// The command failed.
    #[error("the command {0}")]
    CommandFailed(String),
    /// The value exceeds the limit.
    #[error("the value exceeds the limit of {0} bytes")]
    TooLarge(usize),
    /// All fields of a secret together exceed the limit.
    #[error("the fields of the secret together exceed the limit of {0} bytes")]
    FieldsTooLarge(usize),
    /// The value is no text.
    #[error("the value is not UTF-8 text")]
    NotText,
    /// The value is empty.
    #[error("the value is empty")]
    Empty,
}

impl ExternalSecretError {
    /// Returns whether the source did not respond, so that a later attempt may succeed.
    pub fn is_unavailable(&self) -> bool {
        match self {
            // Other programs replace a credential file.
            Self::Sealed
            | Self::Redirected
            | Self::Unreachable(_)
            | Self::TimedOut(_)
            | Self::CredentialFile => true,
            // 412: this node has not received the newest state of the active one yet.
            Self::Status(status) => matches!(*status, 412 | 429) || *status >= 500,
            Self::Invalid(_)
            | Self::NotConfigured(_)
            | Self::UnknownCommand { .. }
            | Self::UnknownVariable { .. }
            | Self::TenantDenied { .. }
            | Self::OutsidePrefix(_)
            | Self::NotFound(_)
            | Self::NoKey(_)
            | Self::SeveralKeys
            | Self::Denied(_)
            | Self::LoginRejected { .. }
            | Self::InvalidResponse(_)
            | Self::File(_)
            | Self::CommandFailed(_)
            | Self::TooLarge(_)
            | Self::FieldsTooLarge(_)
            | Self::NotText
            | Self::Empty => false,
        }
    }
}

/// Returns the message about a secret that does not exist, and how to provide it.
pub fn missing_secret(name: &str) -> String {
    match ExternalReference::parse(name) {
        Some(Ok(reference)) => {
            // Programs that use the library may have no `haft.toml`.
            format!("secret `{name}`: no source for `{}:` secrets is configured", reference.kind.scheme())
        }
        Some(Err(error)) => error.to_string(),
        None => format!("secret `{name}` is not stored; store it with `haft secret set {name}`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_providers() {
        let long = "x".repeat(65);
        for (name, is_valid) in [
            ("github", true),
            ("git-hub_2", true),
            ("", false),
            ("GitHub", false),
            ("mcp:github", false),
            ("a/b", false),
            (&*long, false),
        ] {
            assert_eq!(check_provider_name(name).is_ok(), is_valid, "{name}");
        }
    }

    fn check(text: &str, expected: &str) {
        let shown = match ExternalReference::parse(text) {
            None => "a name".to_owned(),
            Some(Ok(ExternalReference { kind, path, key })) => format!("{kind:?} {path} {key:?}"),
            Some(Err(error)) => error.reason.to_owned(),
        };
        assert_eq!(shown, expected, "{text}");
    }

    #[test]
    fn references_have_a_known_scheme() {
        check("vault:apps/weather#api_key", "Vault apps/weather Some(\"api_key\")");
        check("vault:apps/weather.v2", "Vault apps/weather.v2 None");
        check("vault:apps/weather#a.b-c/d", "Vault apps/weather Some(\"a.b-c/d\")");
        check("file:db/password", "File db/password None");
        check("env:API_KEY", "Environment API_KEY None");
        check("cmd:github-token", "Command github-token None");
        for name in ["API_KEY", "github.token", "other:x", "Vault:x", ""] {
            check(name, "a name");
        }
    }

    #[test]
    fn paths_that_leave_their_place_are_rejected() {
        let odd = "it has white space, a control character, or one of { } $ | & \" ' \\ ? %";
        let dots = "the path has the part `.` or `..`";
        let empty = "the path has an empty part (`//`, or `/` at the end)";
        for (text, expected) in [
            ("vault:", "the path is empty"),
            ("vault:#key", "the path is empty"),
            ("vault:a#", "the key after `#` is empty"),
            ("vault:a#b#c", "it has more than one `#`"),
            ("vault:../sys/policy", dots),
            ("vault:a/../../b#c", dots),
            ("vault:a/./b", dots),
            ("vault:/a", "the path starts with `/`; write it without"),
            ("vault:a//b", empty),
            ("vault:a/", empty),
            ("vault:a?version=1", odd),
            ("vault:a%2e%2e/b", odd),
            ("vault:a\\b", odd),
            ("vault:a b", odd),
            ("vault:a\u{7}b", odd),
            ("vault:{{path}}", odd),
            ("file:../etc/passwd", dots),
            ("file:/etc/passwd", "the path starts with `/`; write it without"),
            ("file:a#b", "only references to `vault:` have a `#`"),
            ("env:A/B", "the name must have 1 to 128 letters, digits, `_`, `-` and `.`"),
            ("cmd:", "the name must have 1 to 128 letters, digits, `_`, `-` and `.`"),
            ("cmd:rm;ls", "the name must have 1 to 128 letters, digits, `_`, `-` and `.`"),
        ] {
            check(text, expected);
        }
        check(&format!("vault:{}", "x".repeat(513)), "it exceeds 512 characters");
    }

    #[test]
    fn a_missing_secret_says_how_to_provide_it() {
        for (name, expected) in [
            ("KEY", "secret `KEY` is not stored; store it with `haft secret set KEY`"),
            ("vault:a#b", "secret `vault:a#b`: no source for `vault:` secrets is configured"),
            (
                "vault:a//b",
                "invalid reference `vault:a//b`: the path has an empty part (`//`, or `/` at the end)",
            ),
        ] {
            assert_eq!(missing_secret(name), expected);
        }
    }

    #[test]
    fn only_sources_without_a_response_are_unavailable() {
        for (error, expected) in [
            (ExternalSecretError::Sealed, true),
            (ExternalSecretError::Unreachable("connection refused".to_owned()), true),
            (ExternalSecretError::Status(502), true),
            (ExternalSecretError::Status(412), true),
            (ExternalSecretError::CredentialFile, true),
            (ExternalSecretError::Status(400), false),
            (ExternalSecretError::Denied("secret/data/a".to_owned()), false),
            (ExternalSecretError::NotFound("x"), false),
        ] {
            assert_eq!(error.is_unavailable(), expected, "{error}");
        }
    }
}
