//! Finding out who gives tokens for a server: RFC 9728 and RFC 8414, and what was done before there were these.

use haft_runtime::egress::Egress;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use url::Url;

use super::challenge::Challenge;
use super::error::OAuthError;
use super::fetch::{document, shown};

/// What a server says of itself (RFC 9728).
#[derive(Debug, Deserialize)]
struct Protected {
    resource: String,
    #[serde(default)]
    authorization_servers: Vec<String>,
    #[serde(default)]
    scopes_supported: Vec<String>,
}

/// What an authorisation server says of itself (RFC 8414).
#[derive(Debug, Deserialize)]
struct Described {
    issuer: String,
    authorization_endpoint: Option<String>,
    token_endpoint: String,
    registration_endpoint: Option<String>,
    #[serde(default)]
    scopes_supported: Vec<String>,
    #[serde(default)]
    code_challenge_methods_supported: Vec<String>,
    token_endpoint_auth_methods_supported: Option<Vec<String>>,
    #[serde(default)]
    authorization_response_iss_parameter_supported: bool,
}

/// Who gives tokens for a server, and how.
#[derive(Debug, Clone)]
pub(super) struct Issuer {
    /// Its name; nothing where it says nothing of itself.
    pub(super) name: Option<String>,
    pub(super) authorization_endpoint: Option<Url>,
    pub(super) token_endpoint: Url,
    pub(super) registration_endpoint: Option<Url>,
    pub(super) auth_methods: Option<Vec<String>>,
    /// Whether what comes back from a login names it.
    pub(super) names_itself: bool,
    /// Whether it takes proof that whoever ends a login began it.
    pub(super) takes_s256: bool,
    /// Whether tokens that outlive the person's presence have to be asked for by name.
    pub(super) has_offline_access: bool,
}

/// Everything that a login needs to know.
#[derive(Debug, Clone)]
pub(super) struct Discovered {
    /// The server, as tokens name it (RFC 8707).
    pub(super) resource: String,
    /// What to ask for, where nothing else is said.
    pub(super) scope: Option<String>,
    pub(super) issuer: Issuer,
}

/// Finds out who gives tokens for a server.
pub(super) async fn discover(
    egress: &Egress,
    server: &Url,
    challenge: &Challenge,
) -> Result<Discovered, OAuthError> {
    let said = resource(egress, server, challenge).await?;
    let (resource, supported, issuer) = if let Some(said) = said {
        let named = said.authorization_servers.first().ok_or_else(|| {
            let place = shown(server);
            OAuthError::Metadata(format!("the metadata of {place} names no authorisation server"))
        })?;
        let issuer = issuer(egress, server, named).await?;
        let issuer = issuer.ok_or_else(|| {
            OAuthError::Metadata(format!("the authorisation server `{named}` says nothing of itself"))
        })?;
        (said.resource, said.scopes_supported, issuer)
    } else {
        // A server of the first version of the protocol gives tokens itself.
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
) -> Result<Option<Protected>, OAuthError> {
    let named = challenge.resource_metadata.as_deref().map(|text| address(server, "resource_metadata", text));
    let places = match named {
        Some(place) => vec![place?],
        None => well_known(server, "oauth-protected-resource"),
    };
    for place in places {
        let Some(said) = document(egress, &place).await? else { continue };
        let said: Protected = read(&place, said)?;
        if !covers(&said.resource, server) {
            return Err(OAuthError::Metadata(format!(
                "the metadata at {} is about another server: `{}`",
                shown(&place),
                haft_core::problem::excerpt(&said.resource, 200)
            )));
        }
        return Ok(Some(said));
    }
    Ok(None)
}

/// Tells whether a resource is the server, or what stands above it at the same origin.
fn covers(resource: &str, server: &Url) -> bool {
    let Ok(resource) = Url::parse(resource) else { return false };
    let above = resource.path().trim_end_matches('/');
    let below = server.path().strip_prefix(above);
    resource.origin() == server.origin() && below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

async fn issuer(egress: &Egress, server: &Url, named: &str) -> Result<Option<Issuer>, OAuthError> {
    let at = address(server, "authorization_servers", named)?;
    let mut places = well_known(&at, "oauth-authorization-server");
    places.truncate(1);
    places.extend(well_known(&at, "openid-configuration").into_iter().take(1));
    if at.path() != "/" {
        let mut last = at.clone();
        last.set_query(None);
        last.set_path(&format!("{}/.well-known/openid-configuration", at.path().trim_end_matches('/')));
        places.push(last);
    }
    for place in places {
        let Some(said) = document(egress, &place).await? else { continue };
        let said: Described = read(&place, said)?;
        // A slash at the end of a host alone is the same address, and often written.
        if said.issuer.trim_end_matches('/') != named.trim_end_matches('/') {
            return Err(OAuthError::Metadata(format!(
                "the metadata at {} is that of another issuer: `{}`",
                shown(&place),
                haft_core::problem::excerpt(&said.issuer, 200)
            )));
        }
        return described(server, said).map(Some);
    }
    Ok(None)
}

fn described(server: &Url, said: Described) -> Result<Issuer, OAuthError> {
    let one = |name: &str, text: Option<String>| text.map(|text| address(server, name, &text)).transpose();
    Ok(Issuer {
        authorization_endpoint: one("authorization_endpoint", said.authorization_endpoint)?,
        token_endpoint: address(server, "token_endpoint", &said.token_endpoint)?,
        registration_endpoint: one("registration_endpoint", said.registration_endpoint)?,
        auth_methods: said.token_endpoint_auth_methods_supported,
        names_itself: said.authorization_response_iss_parameter_supported,
        takes_s256: said.code_challenge_methods_supported.iter().any(|method| method == "S256"),
        has_offline_access: said.scopes_supported.iter().any(|scope| scope == "offline_access"),
        name: Some(said.issuer),
    })
}

/// The addresses of the first version of the protocol, for a server that says nothing.
fn fallback(server: &Url) -> Result<Issuer, OAuthError> {
    let at = |path: &str| {
        let joined = server.join(path).map_err(|error| OAuthError::Metadata(error.to_string()))?;
        Ok::<_, OAuthError>(joined)
    };
    Ok(Issuer {
        name: None,
        authorization_endpoint: Some(at("/authorize")?),
        token_endpoint: at("/token")?,
        registration_endpoint: Some(at("/register")?),
        auth_methods: None,
        names_itself: false,
        takes_s256: true,
        has_offline_access: false,
    })
}

/// The places where something is described: below its path, then at the root.
fn well_known(at: &Url, name: &str) -> Vec<Url> {
    let path = at.path().trim_end_matches('/');
    let mut places = Vec::new();
    for path in [path, ""] {
        let mut place = at.clone();
        place.set_query(None);
        place.set_fragment(None);
        place.set_path(&format!("/.well-known/{name}{path}"));
        if !places.contains(&place) {
            places.push(place);
        }
    }
    places
}

/// Reads an address that a stranger names. What is asked for with encryption leads nowhere without.
fn address(server: &Url, field: &str, text: &str) -> Result<Url, OAuthError> {
    let wrong = |why: &str| {
        let text = haft_core::problem::excerpt(text, 200);
        OAuthError::Metadata(format!("`{field}` is `{text}`, {why}"))
    };
    let url = Url::parse(text).map_err(|_| wrong("which is no address"))?;
    match url.scheme() {
        "https" => Ok(url),
        "http" if server.scheme() == "http" => Ok(url),
        "http" => Err(wrong("which is not encrypted, while the server is")),
        _ => Err(wrong("which is not spoken to by HTTP")),
    }
}

fn read<T: DeserializeOwned>(place: &Url, document: Value) -> Result<T, OAuthError> {
    serde_json::from_value(document)
        .map_err(|error| OAuthError::Metadata(format!("the metadata at {}: {error}", shown(place))))
}

/// The address of a server as tokens name it.
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
    fn places() {
        let check = |at: &str, expected: &[&str]| {
            let places: Vec<_> = well_known(&url(at), "x").iter().map(Url::to_string).collect();
            assert_eq!(places, expected, "{at}");
        };
        check("https://a.test", &["https://a.test/.well-known/x"]);
        check(
            "https://a.test/one/two/?q",
            &["https://a.test/.well-known/x/one/two", "https://a.test/.well-known/x"],
        );
    }

    #[test]
    fn addresses_of_strangers() {
        let check = |server: &str, text: &str, expected: &str| {
            let read = address(&url(server), "f", text).map(|url| url.to_string());
            assert_eq!(read.unwrap_or_else(|error| error.to_string()), expected);
        };
        check("https://a.test", "https://b.test/x", "https://b.test/x");
        check("http://a.test", "http://b.test/x", "http://b.test/x");
        check(
            "https://a.test",
            "http://b.test/",
            "`f` is `http://b.test/`, which is not encrypted, while the server is",
        );
        check(
            "http://a.test",
            "javascript:alert(1)",
            "`f` is `javascript:alert(1)`, which is not spoken to by HTTP",
        );
        check("http://a.test", "/x", "`f` is `/x`, which is no address");
    }
}
