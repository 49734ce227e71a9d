//! URLs of servers, as people write them.

use std::net::IpAddr;

use url::{Host, Url};

use crate::error::CliError;

/// Reads the URL of a server. The address of the API and that of the web interface name the same server.
pub(crate) fn parse(text: &str) -> Result<Url, CliError> {
    let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    let Some(mut url) = url else {
        // What may contain a password or a token is not repeated.
        let shown = if text.contains(['@', '?', '#']) { String::new() } else { format!(" `{text}`") };
        return Err(CliError::usage(format!(
            "invalid server URL{shown}: expected a URL such as `http://127.0.0.1:18789`"
        )));
    };
    let host = url.host_str().unwrap_or_default();
    if !url.username().is_empty() || url.password().is_some() {
        let message = format!("the URL of the server at `{host}` must not contain a user name or a password");
        return Err(CliError::usage(message));
    }
    if url.query().is_some() || url.fragment().is_some() {
        let message = format!("the URL of the server at `{host}` must not contain a query or a fragment");
        return Err(CliError::usage(message));
    }
    let path = url.path().trim_end_matches('/');
    let path = path.strip_suffix("/api").or_else(|| path.strip_suffix("/ui")).unwrap_or(path).to_owned();
    url.set_path(&path);
    Ok(url)
}

/// Whether a token may be sent to another machine over `http`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PlainHttp {
    /// A person has allowed it.
    Allowed,
    /// Only to this machine.
    Rejected,
}

/// Reads the URL of a server that a token is stored for.
pub(crate) fn parse_for_token(text: &str, http: PlainHttp) -> Result<Url, CliError> {
    let url = parse(text)?;
    if http == PlainHttp::Rejected && is_readable_by_others(&url) {
        return Err(CliError::Usage {
            message: unencrypted(&url),
            hint: Some("use `https`, or pass `--insecure-http` in a network that you trust".to_owned()),
        });
    }
    Ok(url)
}

/// Returns whether others on the network can read what is sent to a server.
pub(crate) fn is_readable_by_others(url: &Url) -> bool {
    url.scheme() == "http" && !is_loopback(url)
}

/// Returns what is wrong with a server that others can read the requests of.
pub(crate) fn unencrypted(url: &Url) -> String {
    format!("`{}` has no encryption: others on the network could read the token", shown(url))
}

/// Returns whether a URL names this machine.
pub(crate) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(ip)) => IpAddr::V4(ip).is_loopback(),
        Some(Host::Ipv6(ip)) => IpAddr::V6(ip).is_loopback(),
        None => false,
    }
}

/// Returns a URL as it is shown.
pub(crate) fn shown(url: &Url) -> &str {
    url.as_str().trim_end_matches('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_api_and_the_web_interface_name_the_server() {
        for (text, expected) in [
            ("https://haft.example.com", "https://haft.example.com"),
            ("https://haft.example.com/api", "https://haft.example.com"),
            ("https://haft.example.com/api/", "https://haft.example.com"),
            ("https://example.com/haft/ui/", "https://example.com/haft"),
            ("http://127.0.0.1:18789/", "http://127.0.0.1:18789"),
        ] {
            assert_eq!(shown(&parse_for_token(text, PlainHttp::Rejected).unwrap()), expected, "{text}");
        }
        for text in ["", "haft.example.com", "localhost:18789", "ftp://example.com", "file:///etc"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_token_is_not_sent_in_clear_to_another_machine() {
        let rejected = |text: &str| parse_for_token(text, PlainHttp::Rejected).unwrap_err().text();
        insta::assert_snapshot!(rejected("http://haft.example.com"), @r"
        `http://haft.example.com` has no encryption: others on the network could read the token

        hint: use `https`, or pass `--insecure-http` in a network that you trust
        ");
        for text in
            ["http://localhost:1", "http://127.0.0.2", "http://[::1]:18789", "https://haft.example.com"]
        {
            assert!(parse_for_token(text, PlainHttp::Rejected).is_ok(), "{text}");
        }
        assert!(parse_for_token("http://haft.example.com", PlainHttp::Allowed).is_ok());
        for text in
            ["https://ann:hunter2@example.com", "https://example.com/?token=hunter2", "https://a.test/#x"]
        {
            for result in [parse_for_token(text, PlainHttp::Allowed), parse(text)] {
                let error = result.unwrap_err().text();
                assert!(error.contains("must not contain") && !error.contains("hunter2"), "{error}");
            }
        }
        let invalid = parse("ftp://ann:hunter2@example.com").unwrap_err().text();
        assert!(!invalid.contains("hunter2"), "{invalid}");
    }
}
