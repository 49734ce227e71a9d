//! Literal secrets in the configuration of an MCP server: shown masked, and told to whoever writes one.

use super::{address, is_literal, names_a_secret};
use crate::mcp::Transport;
use crate::secret::{MASK, Secret};

/// How a server is reached, as others may see it.
#[derive(Debug, Clone, PartialEq)]
pub struct ShownServer {
    /// The same with what is secret masked.
    pub transport: Transport,
    /// Which arguments and addresses look as if they held a credential, such as `args[1]`.
    pub doubtful: Vec<String>,
    /// The credentials themselves.
    pub literals: Vec<Secret>,
}

/// Masks what stands in the environment, the headers, the arguments and the address of a server and is a secret, or
/// looks like one; what only names secrets is shown.
pub fn server(transport: &Transport) -> ShownServer {
    let mut shown = ShownServer { transport: transport.clone(), doubtful: Vec::new(), literals: Vec::new() };
    let mut literals = Vec::new();
    let mut keep = |text: &str| {
        // Short ones would be found everywhere.
        if text.len() >= LEAST {
            literals.push(Secret::new(text.to_owned()));
        }
    };
    match &mut shown.transport {
        Transport::Stdio(stdio) => {
            for (name, value) in &mut stdio.env {
                if !value.contains("${") || (names_a_secret(name) && is_literal(value)) {
                    MASK.clone_into(value);
                }
            }
            let mut before = String::new();
            for (number, text) in stdio.args.iter_mut().enumerate() {
                let plain = std::mem::replace(&mut before, text.clone());
                if let Some((masked, literal)) = argument(text, &plain) {
                    keep(&literal);
                    *text = masked;
                    shown.doubtful.push(format!("args[{number}]"));
                }
            }
        }
        Transport::Http(http) => {
            for value in http.headers.values_mut() {
                if !value.contains("${") || is_literal(value) {
                    MASK.clone_into(value);
                }
            }
            if let Some((masked, literal)) = url(&http.url) {
                keep(&literal);
                http.url = masked;
                shown.doubtful.push("url".to_owned());
            }
        }
    }
    shown.literals = literals;
    shown
}

/// The shortest text that is taken for a credential where it comes back in other texts.
const LEAST: usize = 6;

/// Returns an argument with its credential masked, and that.
fn argument(text: &str, before: &str) -> Option<(String, String)> {
    if text.contains("://") {
        return url(text);
    }
    let flag = before.strip_prefix('-').map(|flag| flag.trim_start_matches('-'));
    if flag.is_some_and(|flag| !flag.contains('=') && names_a_secret(flag))
        && !text.starts_with('-')
        && is_literal(text)
    {
        return Some((MASK.to_owned(), text.to_owned()));
    }
    // `--api-key=…`, `API_KEY=…`, `Authorization: …`.
    let at = text.find(['=', ':'])?;
    let (name, value) = text.split_at_checked(at)?;
    let (separator, value) = value.split_at_checked(1)?;
    let name_alone = name.trim_start_matches('-');
    let is_name =
        !name_alone.is_empty() && name_alone.chars().all(|c| c.is_alphanumeric() || "-_.".contains(c));
    (is_name && names_a_secret(name_alone) && is_literal(value)).then(|| {
        let space = if value.starts_with(' ') { " " } else { "" };
        (format!("{name}{separator}{space}{MASK}"), credential(value).to_owned())
    })
}

/// The credential without its scheme.
fn credential(value: &str) -> &str {
    let value = value.trim();
    value.split_once(' ').map_or(value, |(_, rest)| rest.trim())
}

/// Masks the user and the secret parameters of an address.
fn url(text: &str) -> Option<(String, String)> {
    let (mut shown, mut literal) = (text.to_owned(), None);
    if let Some((scheme, rest)) = text.split_once("://") {
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        if let Some((authority, after)) = rest.split_at_checked(end)
            && let Some((user, host)) = authority.rsplit_once('@')
            && let password = user.split_once(':').map_or(user, |(_, password)| password)
            && is_literal(password)
        {
            literal = Some(password.to_owned());
            shown = format!("{scheme}://{MASK}@{host}{after}");
        }
    }
    if let Some(masked) = address::masked(&shown) {
        let parts = |text: &str| text.split(['?', '&', '#']).map(str::to_owned).collect::<Vec<_>>();
        let hidden = parts(&shown).into_iter().zip(parts(&masked)).find(|(plain, masked)| plain != masked);
        literal = hidden
            .and_then(|(plain, _)| plain.split_once('=').map(|(_, value)| value.to_owned()))
            .or(literal);
        shown = masked;
    }
    literal.map(|literal| (shown, literal))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::mcp::{Stdio, StreamableHttp};

    fn check_args(args: &[&str], expected: &[&str], literals: &[&str]) {
        let stdio = Stdio { args: args.iter().map(|arg| (*arg).to_owned()).collect(), ..Stdio::default() };
        let shown = server(&Transport::Stdio(stdio));
        let Transport::Stdio(stdio) = &shown.transport else { panic!("another transport") };
        assert_eq!(stdio.args, expected);
        let found: Vec<&str> = shown.literals.iter().map(Secret::expose).collect();
        assert_eq!(found, literals, "{args:?}");
        let differing = args.iter().zip(expected).filter(|(plain, shown)| plain != shown).count();
        assert_eq!(shown.doubtful.len(), differing, "{args:?}");
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
    }

    #[test]
    fn addresses_and_headers_too() {
        let headers = BTreeMap::from([
            ("Authorization".to_owned(), "Bearer ${T}".to_owned()),
            ("X-Half".to_owned(), "abc${T}".to_owned()),
            ("X-Plain".to_owned(), "abc".to_owned()),
        ]);
        let url = "https://u:hunter22@a.example/mcp?token=abcdef1&x=1".to_owned();
        let shown = server(&Transport::Http(StreamableHttp { url, headers, ..StreamableHttp::default() }));
        let Transport::Http(http) = &shown.transport else { panic!("another transport") };
        assert_eq!(http.url, "https://***@a.example/mcp?token=***&x=1");
        let values: Vec<&str> = http.headers.values().map(String::as_str).collect();
        assert_eq!(values, ["Bearer ${T}", MASK, MASK]);
        assert_eq!(shown.doubtful, ["url"]);
    }
}
