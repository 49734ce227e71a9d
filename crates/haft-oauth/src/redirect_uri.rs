//! Redirect URIs: where the answer of an authorization goes. They are compared exactly, except for the port of a program
//! on the person's own computer (RFC 8252).

use haft_core::problem::excerpt;
use url::Url;

/// The longest redirect URI in bytes.
const MAX_BYTES: usize = 1024;
/// The hosts of this computer, in the only spelling that is accepted.
const LOOPBACK: [&str; 3] = ["127.0.0.1", "[::1]", "localhost"];
/// Schemes that run code, read files, or mean something else to a browser or an operating system.
const FORBIDDEN_SCHEMES: [&str; 20] = [
    "about",
    "blob",
    "chrome",
    "data",
    "file",
    "filesystem",
    "ftp",
    "gopher",
    "intent",
    "jar",
    "ldap",
    "mailto",
    "news",
    "search-ms",
    "sms",
    "ssh",
    "tel",
    "view-source",
    "ws",
    "wss",
];

/// A valid redirect URI.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedirectUri {
    text: String,
    kind: Kind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    /// A website.
    Web(String),
    /// A program on the person's own computer that listens on a port.
    Loopback,
    /// A program that the operating system knows by a scheme of its own.
    Private(String),
}

/// A redirect URI is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid redirect URI `{shown}`: {rule}")]
pub struct InvalidRedirectUri {
    shown: String,
    rule: &'static str,
}

impl RedirectUri {
    /// Checks a redirect URI.
    pub fn parse(text: &str) -> Result<Self, InvalidRedirectUri> {
        let invalid = |rule| Err(InvalidRedirectUri { shown: excerpt(text, 120), rule });
        if text.len() > MAX_BYTES {
            return invalid("at most 1024 bytes");
        }
        if !text.bytes().all(|b| b.is_ascii_graphic() && !matches!(b, b'\\' | b'"' | b'<' | b'>')) {
            return invalid("expected printable ASCII characters");
        }
        if text.contains('#') {
            return invalid("it must not have a fragment");
        }
        let Ok(url) = Url::parse(text) else { return invalid("expected an absolute URL") };
        let authority = text.split_once("://").map(|(_, rest)| rest.split(['/', '?']).next().unwrap_or(""));
        if authority.is_some_and(|authority| authority.contains('@')) || !url.username().is_empty() {
            return invalid("it must not have user information");
        }
        // What a browser would read differently from what is compared here is rejected: upper case, `..`, default ports,
        // other spellings of addresses.
        if url.as_str() != text && url.as_str().strip_suffix('/') != Some(text) {
            return invalid("it must be in its normal form, as a browser shows it");
        }
        let host = url.host_str().unwrap_or_default();
        let kind = match url.scheme() {
            "https" if !host.is_empty() => Kind::Web(host.to_owned()),
            "http" if LOOPBACK.contains(&host) => Kind::Loopback,
            "http" => return invalid("`http` is for 127.0.0.1, [::1] and localhost only; use `https`"),
            scheme if is_forbidden(scheme) => return invalid("this scheme is not allowed"),
            scheme => Kind::Private(scheme.to_owned()),
        };
        Ok(Self { text: text.to_owned(), kind })
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns whether the answer stays on the person's own computer.
    pub fn is_local(&self) -> bool {
        self.kind != Kind::Web(self.host().unwrap_or_default().to_owned())
    }

    /// Returns the host of a website.
    pub fn host(&self) -> Option<&str> {
        match &self.kind {
            Kind::Web(host) => Some(host),
            Kind::Loopback | Kind::Private(_) => None,
        }
    }

    /// Returns where the answer goes, for people.
    pub fn destination(&self) -> String {
        match &self.kind {
            Kind::Web(host) => host.clone(),
            Kind::Loopback => "a program on this computer".to_owned(),
            Kind::Private(scheme) => format!("a program on this computer that opens `{scheme}:` links"),
        }
    }

    /// Returns whether a redirect URI of a request is this one. The port of a program on this computer may differ, because
    /// the operating system chooses it.
    pub fn covers(&self, sent: &Self) -> bool {
        match (&self.kind, &sent.kind) {
            (Kind::Loopback, Kind::Loopback) => without_port(&self.text) == without_port(&sent.text),
            _ => self.text == sent.text,
        }
    }

    /// Returns the address of the answer: the redirect URI with further parameters.
    pub fn with_parameters<'a>(&self, parameters: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(parameters);
        let separator = match self.text.find('?') {
            None => "?",
            Some(at) if at + 1 == self.text.len() => "",
            Some(_) => "&",
        };
        format!("{}{separator}{}", self.text, query.finish())
    }
}

fn is_forbidden(scheme: &str) -> bool {
    // `javascript`, `vbscript`, look-alikes of `http`, and the handlers of Windows.
    scheme.ends_with("script")
        || scheme.contains("http")
        || scheme.starts_with("ms-")
        || scheme.len() < 3
        || FORBIDDEN_SCHEMES.contains(&scheme)
}

fn without_port(text: &str) -> Option<(String, String)> {
    let url = Url::parse(text).ok()?;
    let query = url.query().map(|query| format!("?{query}")).unwrap_or_default();
    Some((url.host_str()?.to_owned(), format!("{}{query}", url.path())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_redirect_uris_are_rejected() {
        for text in [
            "",
            "/callback",
            "callback",
            "//evil.test/cb",
            "https://",
            "https:///cb",
            "https:evil.test/cb",
            "https:/evil.test",
            "https://a.test/cb#fragment",
            "https://a.test/cb#",
            "https://user@a.test/cb",
            "https://user:password@a.test/cb",
            "https://a.test@evil.test/cb",
            "https://@a.test/cb",
            "https://A.test/cb",
            "HTTPS://a.test/cb",
            "https://a.test:443/cb",
            "https://a.test/x/../cb",
            "https://a.test/%2e%2e/cb",
            "https://a.test\\@evil.test/cb",
            "https://a.test/c b",
            "https://a.test/cb\n",
            "https://a.test/ä",
            "https://ä.test/cb",
            "https://a.test/\"><script>",
            "http://a.test/cb",
            "http://localhost.evil.test/cb",
            "http://localhost.:8080/cb",
            "http://localhost@evil.test/cb",
            "http://127.0.0.1.evil.test/cb",
            "http://127.0.0.2/cb",
            "http://127.1/cb",
            "http://0x7f.0.0.1/cb",
            "http://2130706433/cb",
            "http://0.0.0.0/cb",
            "http://[::]/cb",
            "http://[::ffff:127.0.0.1]/cb",
            "http://[0:0:0:0:0:0:0:1]/cb",
            "http://192.168.0.1/cb",
            "javascript:alert(1)",
            "JavaScript:alert(1)",
            "javascript://a.test/%0aalert(1)",
            "livescript:x",
            "data:text/html,x",
            "file:///etc/passwd",
            "vbscript:x",
            "blob:https://a.test/x",
            "about:blank",
            "view-source:https://a.test",
            "httpx://a.test/cb",
            "xhttp://a.test/cb",
            "shttp://a.test/cb",
            "ws://a.test/",
            "ftp://a.test/",
            "ms-settings:privacy",
            "c:/windows",
            &format!("https://a.test/{}", "x".repeat(MAX_BYTES)),
        ] {
            assert!(RedirectUri::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn destinations_of_redirect_uris() {
        for (text, expected, is_local) in [
            ("https://claude.ai/api/mcp/auth_callback", "claude.ai", false),
            ("https://a.test:8443/cb?x=1", "a.test", false),
            ("https://a.test", "a.test", false),
            ("http://127.0.0.1:33418/", "a program on this computer", true),
            ("http://127.0.0.1:33418", "a program on this computer", true),
            ("http://localhost/callback", "a program on this computer", true),
            ("http://[::1]:1/cb", "a program on this computer", true),
            (
                "cursor://anysphere.cursor-mcp/oauth/callback",
                "a program on this computer that opens `cursor:` links",
                true,
            ),
            ("com.example.app:/cb", "a program on this computer that opens `com.example.app:` links", true),
        ] {
            let uri = RedirectUri::parse(text).unwrap();
            assert_eq!((uri.destination(), uri.is_local()), (expected.to_owned(), is_local), "{text}");
        }
    }

    #[test]
    fn only_the_port_of_this_computer_may_differ() {
        let check = |registered: &str, sent: &str, expected: bool| {
            let (registered, sent) =
                (RedirectUri::parse(registered).unwrap(), RedirectUri::parse(sent).unwrap());
            assert_eq!(registered.covers(&sent), expected, "{registered:?} {sent:?}");
        };
        check("https://a.test/cb", "https://a.test/cb", true);
        check("https://a.test/cb", "https://a.test/cb/", false);
        check("https://a.test/cb", "https://a.test/CB", false);
        check("https://a.test/cb", "https://a.test/cb?next=https://evil.test", false);
        check("https://a.test/cb", "https://a.test:8443/cb", false);
        check("https://a.test/cb", "https://b.a.test/cb", false);
        check("https://a.test/c%62", "https://a.test/cb", false);
        check("http://127.0.0.1/cb", "http://127.0.0.1:5000/cb", true);
        check("http://127.0.0.1:1/cb", "http://127.0.0.1:5000/cb", true);
        check("http://127.0.0.1", "http://127.0.0.1:5000/", true);
        check("http://127.0.0.1/cb", "http://127.0.0.1:5000/cb?x", false);
        check("http://127.0.0.1/cb", "http://127.0.0.1:5000/other", false);
        check("http://127.0.0.1/cb", "http://localhost:5000/cb", false);
        check("http://localhost/cb", "http://localhost:5000/cb", true);
        check("http://localhost/cb", "https://localhost:5000/cb", false);
        check("app.example:/cb", "app.example:/cb", true);
        check("app.example:/cb", "app.example:/cb2", false);
    }

    #[test]
    fn parameters_are_added_and_encoded() {
        for (text, expected) in [
            ("https://a.test/cb", "https://a.test/cb?code=a%26b&state=x"),
            ("https://a.test/cb?", "https://a.test/cb?code=a%26b&state=x"),
            ("https://a.test/cb?x=1", "https://a.test/cb?x=1&code=a%26b&state=x"),
            ("app.example:/cb", "app.example:/cb?code=a%26b&state=x"),
        ] {
            let uri = RedirectUri::parse(text).unwrap();
            assert_eq!(uri.with_parameters([("code", "a&b"), ("state", "x")]), expected);
        }
    }
}
