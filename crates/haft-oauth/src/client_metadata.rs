//! The metadata of clients: as a client sends it to register itself (RFC 7591), and as a document that a `client_id`
//! names (OAuth Client ID Metadata Document).

use haft_core::problem::excerpt;
use serde::Deserialize;
use url::Url;

use crate::redirect_uri::{InvalidRedirectUri, RedirectUri};

/// The most redirect URIs of a client.
const MAX_REDIRECT_URIS: usize = 20;
/// The longest name that is kept, in characters.
const MAX_NAME_LENGTH: usize = 64;
/// The longest `client_id` that is a URL, in bytes.
const MAX_ID_BYTES: usize = 1024;

/// How a client shows who it is at the token endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthMethod {
    /// It has no secret.
    None,
    /// A secret in the `Authorization` header.
    Basic,
    /// A secret in the form.
    Post,
}

/// The metadata of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientMetadata {
    /// The name that it gives itself.
    pub name: String,
    /// Where answers may go.
    pub redirect_uris: Vec<RedirectUri>,
    /// How it authenticates.
    pub auth_method: AuthMethod,
    /// Whether it uses refresh tokens.
    pub refreshes: bool,
}

/// The metadata of a client is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidMetadata {
    /// A redirect URI is invalid.
    #[error("`redirect_uris`: {0}")]
    RedirectUri(#[from] InvalidRedirectUri),
    /// Another field is invalid.
    #[error("{0}")]
    Field(String),
}

#[derive(Deserialize)]
struct Document {
    client_id: Option<String>,
    client_name: Option<String>,
    #[serde(default)]
    redirect_uris: Vec<String>,
    token_endpoint_auth_method: Option<String>,
    grant_types: Option<Vec<String>>,
    response_types: Option<Vec<String>>,
}

impl AuthMethod {
    /// Returns the name in metadata.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Basic => "client_secret_basic",
            Self::Post => "client_secret_post",
        }
    }

    /// Parses the name in metadata.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::None, Self::Basic, Self::Post].into_iter().find(|method| method.as_str() == text)
    }
}

impl ClientMetadata {
    /// Reads the request of a client that registers itself.
    pub fn from_registration(body: &[u8]) -> Result<Self, InvalidMetadata> {
        let document = Document::parse(body)?;
        // RFC 7591, section 2.
        let method = document.token_endpoint_auth_method.as_deref().unwrap_or("client_secret_basic");
        let auth_method = AuthMethod::parse(method).ok_or_else(|| {
            let method = excerpt(method, 60);
            InvalidMetadata::Field(format!(
                "invalid `token_endpoint_auth_method` `{method}`: expected `none`, `client_secret_basic` or \
                 `client_secret_post`"
            ))
        })?;
        document.metadata(auth_method)
    }

    /// Reads the document of a client whose `client_id` is the URL of the document. It has no secret.
    pub fn from_document(id: &str, body: &[u8]) -> Result<Self, InvalidMetadata> {
        let document = Document::parse(body)?;
        if document.client_id.as_deref() != Some(id) {
            let named = excerpt(document.client_id.as_deref().unwrap_or_default(), 120);
            return Err(InvalidMetadata::Field(format!(
                "`client_id` is `{named}`, not the URL of the document"
            )));
        }
        match document.token_endpoint_auth_method.as_deref() {
            None | Some("none") => document.metadata(AuthMethod::None),
            Some(other) => Err(InvalidMetadata::Field(format!(
                "`token_endpoint_auth_method` is `{}`; expected `none`",
                excerpt(other, 60)
            ))),
        }
    }
}

impl Document {
    fn parse(body: &[u8]) -> Result<Self, InvalidMetadata> {
        serde_json::from_slice(body)
            .map_err(|error| InvalidMetadata::Field(format!("not the metadata of a client: {error}")))
    }

    fn metadata(self, auth_method: AuthMethod) -> Result<ClientMetadata, InvalidMetadata> {
        let count = self.redirect_uris.len();
        if !(1..=MAX_REDIRECT_URIS).contains(&count) {
            let message = format!("`redirect_uris` has {count} entries; expected 1 to {MAX_REDIRECT_URIS}");
            return Err(InvalidMetadata::Field(message));
        }
        let lists = |values: &Option<Vec<String>>, wanted: &str| {
            values.as_ref().is_none_or(|values| values.iter().any(|value| value == wanted))
        };
        if !lists(&self.grant_types, "authorization_code") {
            return Err(InvalidMetadata::Field("`grant_types` must contain `authorization_code`".to_owned()));
        }
        if !lists(&self.response_types, "code") {
            return Err(InvalidMetadata::Field("`response_types` must contain `code`".to_owned()));
        }
        let redirect_uris =
            self.redirect_uris.iter().map(|uri| RedirectUri::parse(uri)).collect::<Result<_, _>>()?;
        Ok(ClientMetadata {
            name: shown_name(self.client_name.as_deref().unwrap_or_default()),
            redirect_uris,
            auth_method,
            refreshes: lists(&self.grant_types, "refresh_token"),
        })
    }
}

/// Returns a name as it is shown: without control characters and marks that change the direction of text, with which a
/// name could pretend to be something else.
pub fn shown_name(text: &str) -> String {
    let is_shown = |c: &char| {
        !c.is_control()
            && !matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
    };
    let name: String = text.trim().chars().filter(is_shown).take(MAX_NAME_LENGTH).collect();
    let name = name.trim().to_owned();
    if name.is_empty() { "an unnamed application".to_owned() } else { name }
}

/// Returns the URL of the document that a `client_id` names; `None` if it is an id of another kind. With `allows_http`, it
/// may have the scheme `http`.
pub fn document_url(id: &str, allows_http: bool) -> Option<Result<Url, InvalidMetadata>> {
    if !id.starts_with("https://") && !id.starts_with("http://") {
        return None;
    }
    let invalid = |rule: &str| {
        let id = excerpt(id, 120);
        Some(Err(InvalidMetadata::Field(format!("invalid `client_id` `{id}`: {rule}"))))
    };
    if id.len() > MAX_ID_BYTES {
        return invalid("at most 1024 bytes");
    }
    let Ok(url) = Url::parse(id) else { return invalid("not a URL") };
    if url.scheme() != "https" && !allows_http {
        return invalid("expected `https`");
    }
    if url.as_str() != id || !id.is_ascii() {
        return invalid("the URL must be in its normal form");
    }
    if !url.username().is_empty() || url.password().is_some() || url.fragment().is_some() {
        return invalid("it must have neither user information nor a fragment");
    }
    if url.path() == "/" {
        return invalid("it must have a path");
    }
    Some(Ok(url))
}

#[cfg(test)]
mod tests {
    use super::*;

    const URL: &str = "https://a.test/client.json";

    #[test]
    fn registrations() {
        let check = |body: &str, expected: Result<(&str, AuthMethod, bool), &str>| {
            let read = ClientMetadata::from_registration(body.as_bytes());
            let read = read.map(|client| (client.name, client.auth_method, client.refreshes));
            let expected = expected.map(|(name, method, refreshes)| (name.to_owned(), method, refreshes));
            assert_eq!(read.map_err(|error| error.to_string()), expected.map_err(str::to_owned), "{body}");
        };
        let uri = r#""redirect_uris":["https://a.test/cb"]"#;
        check(&format!("{{{uri}}}"), Ok(("an unnamed application", AuthMethod::Basic, true)));
        check(
            &format!(
                r#"{{{uri},"client_name":" Cur\u202esor\n","token_endpoint_auth_method":"none",
                   "grant_types":["authorization_code"],"scope":"x","contacts":["y"]}}"#
            ),
            Ok(("Cursor", AuthMethod::None, false)),
        );
        check("{}", Err("`redirect_uris` has 0 entries; expected 1 to 20"));
        check(
            r#"{"redirect_uris":["http://evil.test/"]}"#,
            Err(
                "`redirect_uris`: invalid redirect URI `http://evil.test/`: `http` is for 127.0.0.1, [::1] and localhost \
                 only; use `https`",
            ),
        );
        check(
            &format!(r#"{{{uri},"token_endpoint_auth_method":"private_key_jwt"}}"#),
            Err(
                "invalid `token_endpoint_auth_method` `private_key_jwt`: expected `none`, `client_secret_basic` or \
                 `client_secret_post`",
            ),
        );
        check(
            &format!(r#"{{{uri},"grant_types":["client_credentials"]}}"#),
            Err("`grant_types` must contain `authorization_code`"),
        );
        check(
            &format!(r#"{{{uri},"response_types":["token"]}}"#),
            Err("`response_types` must contain `code`"),
        );
        let many = vec!["\"https://a.test/cb\""; 21].join(",");
        check(
            &format!(r#"{{"redirect_uris":[{many}]}}"#),
            Err("`redirect_uris` has 21 entries; expected 1 to 20"),
        );
    }

    #[test]
    fn a_document_names_its_own_url_and_has_no_secret() {
        let document = |id: &str, more: &str| {
            format!(r#"{{"client_id":"{id}","redirect_uris":["https://a.test/cb"]{more}}}"#)
        };
        assert!(ClientMetadata::from_document(URL, document(URL, "").as_bytes()).is_ok());
        for body in [
            document("https://a.test/other.json", ""),
            document("https://a.test/client.json/", ""),
            document(URL, r#","token_endpoint_auth_method":"client_secret_post""#),
            r#"{"redirect_uris":["https://a.test/cb"]}"#.to_owned(),
            "<html>".to_owned(),
            "[]".to_owned(),
        ] {
            assert!(ClientMetadata::from_document(URL, body.as_bytes()).is_err(), "{body}");
        }
    }

    #[test]
    fn document_urls() {
        let check = |id: &str, allows_http: bool, expected: Option<bool>| {
            assert_eq!(document_url(id, allows_http).map(|url| url.is_ok()), expected, "{id}");
        };
        check(URL, false, Some(true));
        check("haft_client_x", false, None);
        check("http://a.test/client.json", false, Some(false));
        check("http://127.0.0.1:1/client.json", true, Some(true));
        for id in [
            "https://a.test",
            "https://a.test/",
            "https://A.test/client.json",
            "https://a.test/x/../client.json",
            "https://a.test/client.json#x",
            "https://user@a.test/client.json",
            "https://",
        ] {
            check(id, false, Some(false));
        }
    }
}
