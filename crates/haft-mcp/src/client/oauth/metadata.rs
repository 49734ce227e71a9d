//! Discovers the authorization server of an MCP server: RFC 9728, RFC 8414, and the defaults of older servers.

use haft_executors::egress::Egress;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use url::Url;

use super::challenge::Challenge;
use super::error::OAuthError;
use super::fetch::{display_url, get_document};

/// The metadata of a server (RFC 9728).
#[derive(Debug, Deserialize)]
struct ProtectedResourceMetadata {
    resource: String,
    #[serde(default)]
    authorization_servers: Vec<String>,
    #[serde(default)]
    scopes_supported: Vec<String>,
}

/// The metadata of an authorization server (RFC 8414).
#[derive(Debug, Deserialize)]
struct AuthorizationServerMetadata {
    issuer: String,
    authorization_endpoint: Option<String>,
    token_endpoint: String,
    device_authorization_endpoint: Option<String>,
    registration_endpoint: Option<String>,
    #[serde(default)]
    scopes_supported: Vec<String>,
    #[serde(default)]
    code_challenge_methods_supported: Vec<String>,
    token_endpoint_auth_methods_supported: Option<Vec<String>>,
    #[serde(default)]
    authorization_response_iss_parameter_supported: bool,
}

/// An authorization server.
#[derive(Debug, Clone)]
pub(super) struct Issuer {
    /// Its issuer identifier; `None` without metadata.
    pub(super) name: Option<String>,
    pub(super) authorization_endpoint: Option<Url>,
    pub(super) token_endpoint: Url,
    pub(super) device_authorization_endpoint: Option<Url>,
    pub(super) registration_endpoint: Option<Url>,
    pub(super) auth_methods: Option<Vec<String>>,
    /// Whether callbacks name the issuer (RFC 9207).
    pub(super) names_itself: bool,
    /// Whether it supports PKCE with `S256`.
    pub(super) supports_s256: bool,
    /// Whether refresh tokens need the scope `offline_access`.
    pub(super) has_offline_access: bool,
}

/// The result of the discovery.
#[derive(Debug, Clone)]
pub(super) struct Discovered {
    /// The resource identifier of the server (RFC 8707); empty for a provider, whose tokens are for itself.
    pub(super) resource: String,
    /// The scope to request by default.
    pub(super) scope: Option<String>,
    pub(super) issuer: Issuer,
}

/// The endpoints of a provider: those of its issuer, or the given ones.
#[derive(Debug, Clone)]
pub struct ProviderEndpoints {
    /// The issuer, whose metadata has the endpoints.
    pub issuer: Option<Url>,
    /// Where people log in.
    pub authorization_endpoint: Option<Url>,
    /// Where haft gets tokens.
    pub token_endpoint: Option<Url>,
    /// Where haft gets codes for logins on other devices; overrides that of the issuer.
    pub device_authorization_endpoint: Option<Url>,
}

impl ProviderEndpoints {
    /// Returns what a login is valid for: it is void if this changes.
    pub(super) fn server(&self) -> Result<&Url, OAuthError> {
        let server = self.issuer.as_ref().or(self.token_endpoint.as_ref());
        server.ok_or_else(|| OAuthError::Configuration("the provider has no token endpoint".to_owned()))
    }

    /// Returns the endpoints; those of an issuer are read from its metadata.
    pub(super) async fn discover(&self, egress: &Egress) -> Result<Discovered, OAuthError> {
        let server = self.server()?;
        let mut issuer = match &self.issuer {
            Some(named) => issuer(egress, named, named.as_str()).await?.ok_or_else(|| {
                let host = named.host_str().unwrap_or_default();
                OAuthError::Metadata(format!("the issuer at `{host}` has no metadata"))
            })?,
            None => Issuer {
                name: None,
                authorization_endpoint: self.authorization_endpoint.clone(),
                token_endpoint: server.clone(),
                device_authorization_endpoint: None,
                registration_endpoint: None,
                auth_methods: None,
                names_itself: false,
                supports_s256: true,
                has_offline_access: false,
            },
        };
        if let Some(endpoint) = &self.device_authorization_endpoint {
            issuer.device_authorization_endpoint = Some(endpoint.clone());
        }
        Ok(Discovered { resource: String::new(), scope: None, issuer })
    }
}

/// Discovers the authorization server of an MCP server.
pub(super) async fn discover(
    egress: &Egress,
    server: &Url,
    challenge: &Challenge,
) -> Result<Discovered, OAuthError> {
    let metadata = resource(egress, server, challenge).await?;
    let (resource, supported, issuer) = if let Some(metadata) = metadata {
        let named = metadata.authorization_servers.first().ok_or_else(|| {
            let url = display_url(server);
            OAuthError::Metadata(format!("the metadata of {url} names no authorization server"))
        })?;
        let issuer = issuer(egress, server, named).await?;
        let issuer = issuer.ok_or_else(|| {
            OAuthError::Metadata(format!("the authorization server `{named}` has no metadata"))
        })?;
        (metadata.resource, metadata.scopes_supported, issuer)
    } else {
        // A server of the oldest protocol version is its own authorization server.
        let origin = server.origin().ascii_serialization();
        let found = issuer(egress, server, &origin).await?;
        let issuer = found.map_or_else(|| fallback(server), Ok)?;
        (canonical(server), Vec::new(), issuer)
    };
    let scope = challenge.scope.clone().or_else(|| (!supported.is_empty()).then(|| supported.join(" ")));
    Ok(Discovered { resource, scope, issuer })
}

async fn resource(
    egress: &Egress,
    server: &Url,
    challenge: &Challenge,
) -> Result<Option<ProtectedResourceMetadata>, OAuthError> {
    let named =
        challenge.resource_metadata.as_deref().map(|text| parse_url(server, "resource_metadata", text));
    let urls = match named {
        Some(url) => vec![url?],
        None => well_known(server, "oauth-protected-resource"),
    };
    for url in urls {
        let Some(document) = get_document(egress, &url).await? else { continue };
        let metadata: ProtectedResourceMetadata = parse(&url, document)?;
        if !covers(&metadata.resource, server) {
            return Err(OAuthError::Metadata(format!(
                "the metadata at {} belongs to another server: `{}`",
                display_url(&url),
                haft_core::problem::excerpt(&metadata.resource, 200)
            )));
        }
        return Ok(Some(metadata));
    }
    Ok(None)
}

/// Returns whether a resource is the server or a parent path of the same origin.
fn covers(resource: &str, server: &Url) -> bool {
    let Ok(resource) = Url::parse(resource) else { return false };
    let above = resource.path().trim_end_matches('/');
    let below = server.path().strip_prefix(above);
    resource.origin() == server.origin() && below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

async fn issuer(egress: &Egress, server: &Url, named: &str) -> Result<Option<Issuer>, OAuthError> {
    let at = parse_url(server, "authorization_servers", named)?;
    let mut urls = well_known(&at, "oauth-authorization-server");
    urls.truncate(1);
    urls.extend(well_known(&at, "openid-configuration").into_iter().take(1));
    if at.path() != "/" {
        let mut last = at.clone();
        last.set_query(None);
        last.set_path(&format!("{}/.well-known/openid-configuration", at.path().trim_end_matches('/')));
        urls.push(last);
    }
    for url in urls {
        let Some(document) = get_document(egress, &url).await? else { continue };
        let metadata: AuthorizationServerMetadata = parse(&url, document)?;
        // A trailing slash is often added.
        if metadata.issuer.trim_end_matches('/') != named.trim_end_matches('/') {
            return Err(OAuthError::Metadata(format!(
                "the metadata at {} belongs to another issuer: `{}`",
                display_url(&url),
                haft_core::problem::excerpt(&metadata.issuer, 200)
            )));
        }
        return to_issuer(server, metadata).map(Some);
    }
    Ok(None)
}

fn to_issuer(server: &Url, metadata: AuthorizationServerMetadata) -> Result<Issuer, OAuthError> {
    let optional =
        |name: &str, text: Option<String>| text.map(|text| parse_url(server, name, &text)).transpose();
    Ok(Issuer {
        authorization_endpoint: optional("authorization_endpoint", metadata.authorization_endpoint)?,
        token_endpoint: parse_url(server, "token_endpoint", &metadata.token_endpoint)?,
        device_authorization_endpoint: optional(
            "device_authorization_endpoint",
            metadata.device_authorization_endpoint,
        )?,
        registration_endpoint: optional("registration_endpoint", metadata.registration_endpoint)?,
        auth_methods: metadata.token_endpoint_auth_methods_supported,
        names_itself: metadata.authorization_response_iss_parameter_supported,
        supports_s256: metadata.code_challenge_methods_supported.iter().any(|method| method == "S256"),
        has_offline_access: metadata.scopes_supported.iter().any(|scope| scope == "offline_access"),
        name: Some(metadata.issuer),
    })
}

/// The default endpoints of the oldest protocol version, for a server without metadata.
fn fallback(server: &Url) -> Result<Issuer, OAuthError> {
    let at = |path: &str| {
        let joined = server.join(path).map_err(|error| OAuthError::Metadata(error.to_string()))?;
        Ok::<_, OAuthError>(joined)
    };
    Ok(Issuer {
        name: None,
        authorization_endpoint: Some(at("/authorize")?),
        token_endpoint: at("/token")?,
        device_authorization_endpoint: None,
        registration_endpoint: Some(at("/register")?),
        auth_methods: None,
        names_itself: false,
        supports_s256: true,
        has_offline_access: false,
    })
}

/// Returns the well-known URLs: with the path of `at`, then at the root.
fn well_known(at: &Url, name: &str) -> Vec<Url> {
    let path = at.path().trim_end_matches('/');
    let mut urls = Vec::new();
    for path in [path, ""] {
        let mut url = at.clone();
        url.set_query(None);
        url.set_fragment(None);
        url.set_path(&format!("/.well-known/{name}{path}"));
        if !urls.contains(&url) {
            urls.push(url);
        }
    }
    urls
}

/// Parses an untrusted URL. The metadata of an `https` server may name only `https` URLs.
fn parse_url(server: &Url, field: &str, text: &str) -> Result<Url, OAuthError> {
    let invalid = |why: &str| {
        let text = haft_core::problem::excerpt(text, 200);
        OAuthError::Metadata(format!("invalid `{field}` `{text}`: {why}"))
    };
    let url = Url::parse(text).map_err(|_| invalid("not a URL"))?;
    match url.scheme() {
        "https" => Ok(url),
        "http" if server.scheme() == "http" => Ok(url),
        "http" => Err(invalid("`https` is required, because the server uses it")),
        _ => Err(invalid("expected `http` or `https`")),
    }
}

fn parse<T: DeserializeOwned>(url: &Url, document: Value) -> Result<T, OAuthError> {
    serde_json::from_value(document)
        .map_err(|error| OAuthError::Metadata(format!("invalid metadata at {}: {error}", display_url(url))))
}

/// Returns the resource identifier of a server.
fn canonical(server: &Url) -> String {
    let mut url = server.clone();
    url.set_fragment(None);
    let text = url.to_string();
    if url.path() == "/" && url.query().is_none() { text.trim_end_matches('/').to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn a_resource_covers_what_is_below_it() {
        for (resource, server, expected) in [
            ("https://a.test/mcp", "https://a.test/mcp", true),
            ("https://a.test/mcp/", "https://a.test/mcp", true),
            ("https://a.test", "https://a.test/mcp", true),
            ("https://a.test/", "https://a.test/", true),
            ("https://a.test/mc", "https://a.test/mcp", false),
            ("https://a.test/mcp/x", "https://a.test/mcp", false),
            ("https://b.test/mcp", "https://a.test/mcp", false),
            ("http://a.test/mcp", "https://a.test/mcp", false),
            ("https://a.test:444/mcp", "https://a.test/mcp", false),
            ("a.test", "https://a.test/mcp", false),
        ] {
            assert_eq!(covers(resource, &url(server)), expected, "{resource} {server}");
        }
    }

    #[test]
    fn well_known_urls() {
        let check = |at: &str, expected: &[&str]| {
            let urls: Vec<_> = well_known(&url(at), "x").iter().map(Url::to_string).collect();
            assert_eq!(urls, expected, "{at}");
        };
        check("https://a.test", &["https://a.test/.well-known/x"]);
        check(
            "https://a.test/one/two/?q",
            &["https://a.test/.well-known/x/one/two", "https://a.test/.well-known/x"],
        );
    }

    #[test]
    fn untrusted_urls() {
        let check = |server: &str, text: &str, expected: &str| {
            let read = parse_url(&url(server), "f", text).map(|url| url.to_string());
            assert_eq!(read.unwrap_or_else(|error| error.to_string()), expected);
        };
        check("https://a.test", "https://b.test/x", "https://b.test/x");
        check("http://a.test", "http://b.test/x", "http://b.test/x");
        check(
            "https://a.test",
            "http://b.test/",
            "invalid `f` `http://b.test/`: `https` is required, because the server uses it",
        );
        check(
            "http://a.test",
            "javascript:alert(1)",
            "invalid `f` `javascript:alert(1)`: expected `http` or `https`",
        );
        check("http://a.test", "/x", "invalid `f` `/x`: not a URL");
    }
}
