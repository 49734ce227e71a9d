//! Resource indicators (RFC 8707): an access token is for this server, whatever part of it the client names.

use url::Url;

/// The paths of the server that clients name as their resource, besides its URL itself.
const PATHS: [&str; 3] = ["/mcp", "/v1", "/api"];

/// Returns whether a resource is this server, or a part of it. `base` is the URL of the server.
pub fn is_of(base: &str, resource: &str) -> bool {
    let (Ok(base), Ok(named)) = (Url::parse(base), Url::parse(resource)) else { return false };
    let has_user = !named.username().is_empty() || named.password().is_some();
    if has_user || named.fragment().is_some() || named.query().is_some() || named.origin() != base.origin() {
        return false;
    }
    // Dot segments are resolved, but encoded ones could still lead elsewhere.
    if named.path().to_ascii_lowercase().contains("%2e") || named.path().contains("//") {
        return false;
    }
    let below = named.path().strip_prefix(base.path().trim_end_matches('/'));
    below.is_some_and(|path| {
        let is_part =
            |part: &str| path.strip_prefix(part).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        path.is_empty() || path == "/" || PATHS.into_iter().any(is_part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resource_is_this_server_or_a_part_of_it() {
        let check = |base: &str, resource: &str, expected: bool| {
            assert_eq!(is_of(base, resource), expected, "{base} {resource}");
        };
        for (resource, expected) in [
            ("https://a.test", true),
            ("https://a.test/", true),
            ("https://A.test:443/mcp", true),
            ("https://a.test/mcp/", true),
            ("https://a.test/mcp/bundles/web", true),
            ("https://a.test/v1", true),
            ("https://a.test/mcpx", false),
            ("https://a.test/other", false),
            ("https://a.test/mcp#x", false),
            ("https://a.test/mcp?x", false),
            ("https://a.test/mcp/%2E%2e/x", false),
            ("https://a.test//mcp", false),
            ("http://a.test/mcp", false),
            ("https://a.test:8443/mcp", false),
            ("https://a.test.evil.test/mcp", false),
            ("https://a.test@evil.test/mcp", false),
            ("https://user@a.test/mcp", false),
            ("/mcp", false),
            ("", false),
        ] {
            check("https://a.test", resource, expected);
        }
        check("https://a.test/haft", "https://a.test/haft/mcp", true);
        check("https://a.test/haft", "https://a.test/mcp", false);
        check("http://127.0.0.1:18789", "http://127.0.0.1:18789/mcp", true);
        check("http://127.0.0.1:18789", "http://localhost:18789/mcp", false);
    }
}
