//! Literal secrets in the configuration of an MCP server: masked when shown, and reported as warnings.

use super::{address, is_literal, is_sensitive_parameter, plain};
use crate::mcp::Transport;
use crate::secret::{MASK, Secret};

/// A redacted transport.
#[derive(Debug, Clone, PartialEq)]
pub struct RedactedServer {
    /// The transport with secrets masked.
    pub transport: Transport,
    /// The fields that seem to contain a credential, such as `args[1]`.
    pub suspicious: Vec<String>,
    /// The credentials themselves.
    pub literals: Vec<CredentialLiteral>,
}

/// A text in a configuration that seems to be a credential.
#[derive(Debug, Clone, PartialEq)]
pub struct CredentialLiteral {
    /// The text.
    pub secret: Secret,
    /// Whether its name is unambiguous, such as `--api-key`. A guess, such as the value of `--sort-key`, may be an
    /// ordinary word, and removing it would corrupt the output of tools.
    pub certain: bool,
}

impl CredentialLiteral {
    fn new(name: &str, text: &str) -> Self {
        Self { secret: Secret::new(credential(text).to_owned()), certain: is_certain(name) }
    }
}

/// Masks secrets, and what looks like one, in the environment, headers, arguments and URL of a server. References such
/// as `${TOKEN}` are kept.
pub fn redact_transport(transport: &Transport) -> RedactedServer {
    let (mut transport, mut suspicious, mut literals) = (transport.clone(), Vec::new(), Vec::new());
    match &mut transport {
        Transport::Stdio(stdio) => {
            for (name, value) in &mut stdio.env {
                let is_secret = is_sensitive_parameter(name) && is_literal(value);
                if is_secret {
                    literals.push(CredentialLiteral::new(name, value));
                }
                if is_secret || !value.contains("${") {
                    MASK.clone_into(value);
                }
            }
            let mut before = String::new();
            for (number, text) in stdio.args.iter_mut().enumerate() {
                let plain = std::mem::replace(&mut before, text.clone());
                if let Some((masked, found)) = argument(text, &plain) {
                    literals.extend(found);
                    *text = masked;
                    suspicious.push(format!("args[{number}]"));
                }
            }
        }
        Transport::Http(http) => {
            for (name, value) in &mut http.headers {
                if is_sensitive_parameter(name) && is_literal(value) {
                    literals.push(CredentialLiteral::new(name, value));
                }
                if !value.contains("${") || is_literal(value) {
                    MASK.clone_into(value);
                }
            }
            if let Some((masked, found)) = url(&http.url) {
                literals.extend(found);
                http.url = masked;
                suspicious.push("url".to_owned());
            }
        }
    }
    // Short texts would match everywhere.
    literals.retain(|literal| literal.secret.expose().len() >= MIN_CREDENTIAL_LENGTH);
    RedactedServer { transport, suspicious, literals }
}

/// The minimum length of a credential that is removed from output.
const MIN_CREDENTIAL_LENGTH: usize = 6;
/// How many names may precede a value, such as in `--header=Authorization: …`.
const MAX_NAMES: u8 = 3;
/// Suffixes of names that are unambiguous.
const CERTAIN: [&str; 9] = [
    "apikey",
    "accesskey",
    "secretkey",
    "privatekey",
    "token",
    "secret",
    "password",
    "passwd",
    "authorization",
];

/// Returns whether a name unambiguously marks its value as a credential.
fn is_certain(name: &str) -> bool {
    let plain = plain(name);
    CERTAIN.iter().any(|end| plain.ends_with(end))
}

/// Returns an argument with its credentials masked, and the credentials.
fn argument(text: &str, before: &str) -> Option<(String, Vec<CredentialLiteral>)> {
    if text.contains("://")
        && let Some(found) = url(text)
    {
        return Some(found);
    }
    let flag = before.strip_prefix('-').map(|flag| flag.trim_start_matches('-'));
    if let Some(flag) = flag
        && !flag.contains('=')
        && is_sensitive_parameter(flag)
        && !text.starts_with('-')
        && is_literal(text)
    {
        return Some((MASK.to_owned(), vec![CredentialLiteral::new(flag, text)]));
    }
    named(text, MAX_NAMES)
}

/// Masks `--api-key=…`, `API_KEY=…`, `Authorization: …` and nested forms of them.
fn named(text: &str, most: u8) -> Option<(String, Vec<CredentialLiteral>)> {
    let at = text.find(['=', ':'])?;
    let (name, value) = text.split_at_checked(at)?;
    let (separator, value) = value.split_at_checked(1)?;
    let name_alone = name.trim_start_matches('-');
    let is_name =
        !name_alone.is_empty() && name_alone.chars().all(|c| c.is_alphanumeric() || "-_.".contains(c));
    if !is_name {
        return None;
    }
    let space = if value.starts_with(' ') { " " } else { "" };
    if is_sensitive_parameter(name_alone) && is_literal(value) {
        return Some((
            format!("{name}{separator}{space}{MASK}"),
            vec![CredentialLiteral::new(name_alone, value)],
        ));
    }
    let (masked, found) = named(value.trim_start(), most.checked_sub(1)?)?;
    Some((format!("{name}{separator}{space}{masked}"), found))
}

/// Returns the credential without its authentication scheme.
fn credential(value: &str) -> &str {
    let value = value.trim();
    value.split_once(' ').map_or(value, |(_, rest)| rest.trim())
}

/// Masks the user information and the sensitive parameters of a URL.
fn url(text: &str) -> Option<(String, Vec<CredentialLiteral>)> {
    let (mut shown, mut found) = (text.to_owned(), Vec::new());
    if let Some((scheme, rest)) = text.split_once("://") {
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        if let Some((authority, after)) = rest.split_at_checked(end)
            && let Some((user, host)) = authority.rsplit_once('@')
            && let password = user.split_once(':').map_or(user, |(_, password)| password)
            && is_literal(password)
        {
            found.push(CredentialLiteral { secret: Secret::new(password.to_owned()), certain: true });
            shown = format!("{scheme}://{MASK}@{host}{after}");
        }
    }
    if let Some(masked) = address::masked(&shown) {
        let parts = |text: &str| text.split(['?', '&', '#']).map(str::to_owned).collect::<Vec<_>>();
        let both = parts(&shown).into_iter().zip(parts(&masked));
        let hidden = both.filter(|(plain, masked)| plain != masked);
        found.extend(hidden.filter_map(|(plain, _)| {
            let (name, value) = plain.split_once('=')?;
            Some(CredentialLiteral::new(name, value))
        }));
        shown = masked;
    }
    (!found.is_empty()).then_some((shown, found))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::mcp::{Stdio, StreamableHttp};

    fn check_args(args: &[&str], expected: &[&str], literals: &[&str]) {
        let stdio = Stdio { args: args.iter().map(|arg| (*arg).to_owned()).collect(), ..Stdio::default() };
        let shown = redact_transport(&Transport::Stdio(stdio));
        let Transport::Stdio(stdio) = &shown.transport else { panic!("another transport") };
        assert_eq!(stdio.args, expected);
        let found: Vec<&str> = shown.literals.iter().map(|literal| literal.secret.expose()).collect();
        assert_eq!(found, literals, "{args:?}");
        let differing = args.iter().zip(expected).filter(|(plain, shown)| plain != shown).count();
        assert_eq!(shown.suspicious.len(), differing, "{args:?}");
    }

    #[test]
    fn arguments_that_look_like_credentials_are_masked() {
        check_args(&["-y", "pkg@1.0", "/data", "--port=80"], &["-y", "pkg@1.0", "/data", "--port=80"], &[]);
        check_args(&["--api-key=abcdef1"], &["--api-key=***"], &["abcdef1"]);
        check_args(&["--api-key=${KEY}"], &["--api-key=${KEY}"], &[]);
        check_args(&["--token", "abcdef1", "x"], &["--token", "***", "x"], &["abcdef1"]);
        check_args(
            &["--token", "${T}", "--token", "--verbose"],
            &["--token", "${T}", "--token", "--verbose"],
            &[],
        );
        check_args(
            &["--header", "Authorization: Bearer abcdef1"],
            &["--header", "Authorization: ***"],
            &["abcdef1"],
        );
        check_args(
            &["--header", "Authorization: Bearer ${T}"],
            &["--header", "Authorization: Bearer ${T}"],
            &[],
        );
        check_args(&["GITHUB_TOKEN=abcdef1"], &["GITHUB_TOKEN=***"], &["abcdef1"]);
        check_args(
            &["postgres://app:hunter22@db:5432/x?sslmode=on"],
            &["postgres://***@db:5432/x?sslmode=on"],
            &["hunter22"],
        );
        check_args(&["postgres://app:${PW}@db/x"], &["postgres://app:${PW}@db/x"], &[]);
        check_args(
            &["postgres://app:hunter22@db/x?password=second33&api_key=third444"],
            &["postgres://***@db/x?password=***&api_key=***"],
            &["hunter22", "second33", "third444"],
        );
        check_args(
            &["--header=Authorization: Bearer abcdef1", "--env=API_KEY=abcdef2", "--token=abc://x"],
            &["--header=Authorization: ***", "--env=API_KEY=***", "--token=***"],
            &["abcdef1", "abcdef2", "abc://x"],
        );
        check_args(&["--set=a=b=c=API_KEY=abcdef2"], &["--set=a=b=c=API_KEY=abcdef2"], &[]);
    }

    #[test]
    fn only_unambiguous_names_are_certain() {
        let args = ["--sort-key=created_at", "--auth=disabled", "--tokenizer=cl100k_base", "--token=abcdef1"];
        let env = [("API_KEY", "apikeysecret888"), ("MODE", "production"), ("S", "${S}")];
        let stdio = Stdio {
            args: args.map(str::to_owned).into(),
            env: env.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
            ..Stdio::default()
        };
        let shown = redact_transport(&Transport::Stdio(stdio));
        let found = |certain| {
            let all = shown.literals.iter().filter(move |literal| literal.certain == certain);
            all.map(|literal| literal.secret.expose()).collect::<Vec<_>>()
        };
        assert_eq!(found(true), ["apikeysecret888", "abcdef1"]);
        assert_eq!(found(false), ["created_at", "disabled", "cl100k_base"]);
    }

    #[test]
    fn urls_and_headers_are_masked() {
        let headers = BTreeMap::from([
            ("Authorization".to_owned(), "Bearer ${T}".to_owned()),
            ("X-Half".to_owned(), "abc${T}".to_owned()),
            ("X-Plain".to_owned(), "abc".to_owned()),
        ]);
        let url = "https://u:hunter22@a.example/mcp?token=abcdef1&x=1".to_owned();
        let shown =
            redact_transport(&Transport::Http(StreamableHttp { url, headers, ..StreamableHttp::default() }));
        let Transport::Http(http) = &shown.transport else { panic!("another transport") };
        assert_eq!(http.url, "https://***@a.example/mcp?token=***&x=1");
        let values: Vec<&str> = http.headers.values().map(String::as_str).collect();
        assert_eq!(values, ["Bearer ${T}", MASK, MASK]);
        assert_eq!(shown.suspicious, ["url"]);
        let literals: Vec<&str> = shown.literals.iter().map(|literal| literal.secret.expose()).collect();
        assert_eq!(literals, ["hunter22", "abcdef1"]);
    }
}
