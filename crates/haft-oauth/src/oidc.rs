//! OpenID Connect as a relying party: the metadata of an issuer, the request of a login, its callback, and the answer of
//! the token endpoint.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use haft_core::problem::excerpt;
use haft_core::secret::Secret;
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use url::Url;
use url::form_urlencoded::{Serializer, byte_serialize};

use crate::exchange::IssuedTokens;

/// The largest metadata document or answer.
pub const MAX_DOCUMENT_BYTES: usize = 256 * 1024;
/// The longest URL of a metadata document.
const MAX_URL_BYTES: usize = 2048;

/// Why an answer of an issuer is unusable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OidcError {
    /// The document is not what it should be.
    #[error("{0} is not a valid document: {1}")]
    Document(&'static str, String),
    /// The metadata belongs to another issuer.
    #[error("the metadata belongs to another issuer: `{0}`")]
    OtherIssuer(String),
    /// A URL of the metadata is unusable.
    #[error("invalid `{0}` in the metadata: {1}")]
    Url(&'static str, &'static str),
    /// The callback comes from another issuer (RFC 9207).
    #[error("the answer comes from another issuer (`iss`)")]
    MixedUp,
    /// The issuer denied the login.
    #[error("the issuer denied the login: {0}")]
    Denied(String),
    /// The callback is incomplete.
    #[error("the answer has no `code`")]
    NoCode,
    /// The token endpoint sent no ID token.
    #[error("the token endpoint returned no `id_token`; the scope must include `openid`")]
    NoIdToken,
    /// The claims of the userinfo endpoint are those of somebody else.
    #[error("the userinfo endpoint returned the claims of another subject")]
    OtherSubject,
}

/// The metadata of an issuer.
#[derive(Debug, Clone)]
pub struct ProviderMetadata {
    /// Where a login begins.
    pub authorization_endpoint: Url,
    /// Where a code is exchanged for tokens.
    pub token_endpoint: Url,
    /// Where the keys are.
    pub jwks_uri: Url,
    /// Where further claims are.
    pub userinfo_endpoint: Option<Url>,
    /// Where a logout at the issuer begins.
    pub end_session_endpoint: Option<Url>,
    /// Whether callbacks name the issuer (RFC 9207).
    pub names_itself: bool,
    /// Whether the client secret is a field of the form instead of a header.
    pub secret_in_form: bool,
}

#[derive(Deserialize)]
struct RawMetadata {
    issuer: String,
    authorization_endpoint: String,
    token_endpoint: String,
    jwks_uri: String,
    userinfo_endpoint: Option<String>,
    end_session_endpoint: Option<String>,
    #[serde(default)]
    authorization_response_iss_parameter_supported: bool,
    token_endpoint_auth_methods_supported: Option<Vec<String>>,
}

/// Returns the address of the metadata of an issuer.
pub fn discovery_url(issuer: &Url) -> Url {
    let mut url = issuer.clone();
    url.set_query(None);
    url.set_fragment(None);
    url.set_path(&format!("{}/.well-known/openid-configuration", issuer.path().trim_end_matches('/')));
    url
}

impl ProviderMetadata {
    /// Reads the metadata of an issuer.
    pub fn parse(document: &[u8], issuer: &str) -> Result<Self, OidcError> {
        let invalid =
            |error: serde_json::Error| OidcError::Document("the metadata", excerpt(&error.to_string(), 200));
        let raw: RawMetadata = serde_json::from_slice(document).map_err(invalid)?;
        if raw.issuer != issuer {
            return Err(OidcError::OtherIssuer(excerpt(&raw.issuer, 200)));
        }
        let is_secure = issuer.starts_with("https://");
        let url = |name, text: &str| endpoint(name, text, is_secure);
        let optional =
            |name, text: Option<&String>| text.map(|text| endpoint(name, text, is_secure)).transpose();
        let has = |method: &str| {
            let methods = raw.token_endpoint_auth_methods_supported.as_ref();
            methods.map(|methods| methods.iter().any(|one| one == method))
        };
        Ok(Self {
            authorization_endpoint: url("authorization_endpoint", &raw.authorization_endpoint)?,
            token_endpoint: url("token_endpoint", &raw.token_endpoint)?,
            jwks_uri: url("jwks_uri", &raw.jwks_uri)?,
            userinfo_endpoint: optional("userinfo_endpoint", raw.userinfo_endpoint.as_ref())?,
            end_session_endpoint: optional("end_session_endpoint", raw.end_session_endpoint.as_ref())?,
            names_itself: raw.authorization_response_iss_parameter_supported,
            secret_in_form: has("client_secret_basic") == Some(false)
                && has("client_secret_post") == Some(true),
        })
    }
}

/// Parses an untrusted URL. The metadata of an `https` issuer names only `https` URLs.
fn endpoint(name: &'static str, text: &str, is_secure: bool) -> Result<Url, OidcError> {
    let url = Url::parse(text).ok().filter(|_| text.len() <= MAX_URL_BYTES);
    let url = url.filter(Url::has_host).ok_or(OidcError::Url(name, "not a URL"))?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(OidcError::Url(name, "it contains a user name or password"));
    }
    match (url.scheme(), is_secure) {
        ("https", _) | ("http", false) => Ok(url),
        ("http", true) => Err(OidcError::Url(name, "`https` is required, because the issuer uses it")),
        _ => Err(OidcError::Url(name, "expected `https`")),
    }
}

/// What a login is bound to.
pub struct AuthorizationRequest<'a> {
    /// The client.
    pub client_id: &'a str,
    /// Where the issuer sends the browser back to.
    pub redirect_uri: &'a str,
    /// The scopes, with `openid` among them.
    pub scopes: &'a [String],
    /// Identifies the login.
    pub state: &'a str,
    /// Binds the ID token to the login.
    pub nonce: &'a str,
    /// Binds the code to the login.
    pub verifier: &'a Secret,
}

impl AuthorizationRequest<'_> {
    /// Returns the URL that a browser opens.
    pub fn url(&self, metadata: &ProviderMetadata) -> Url {
        let mut url = metadata.authorization_endpoint.clone();
        url.query_pairs_mut()
            .append_pair("response_type", "code")
            .append_pair("client_id", self.client_id)
            .append_pair("redirect_uri", self.redirect_uri)
            .append_pair("scope", &self.scopes.join(" "))
            .append_pair("state", self.state)
            .append_pair("nonce", self.nonce)
            .append_pair("code_challenge", &code_challenge(self.verifier))
            .append_pair("code_challenge_method", "S256");
        url
    }
}

/// Returns the PKCE challenge of a verifier (RFC 7636, S256).
pub fn code_challenge(verifier: &Secret) -> String {
    URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.expose().as_bytes()))
}

/// What the issuer sent the browser back with.
#[derive(Debug, Clone, Default)]
pub struct Callback {
    /// The code.
    pub code: Option<Secret>,
    /// The issuer (RFC 9207).
    pub iss: Option<String>,
    /// Why there is no code.
    pub error: Option<String>,
    /// The same for people.
    pub error_description: Option<String>,
}

impl Callback {
    /// Returns the code, if the answer comes from the issuer of the login.
    pub fn check(self, issuer: &str, metadata: &ProviderMetadata) -> Result<Secret, OidcError> {
        match &self.iss {
            Some(named) if named != issuer => return Err(OidcError::MixedUp),
            None if metadata.names_itself => return Err(OidcError::MixedUp),
            Some(_) | None => {}
        }
        if let Some(error) = self.error {
            let description = self.error_description.map(|text| format!(": {text}")).unwrap_or_default();
            return Err(OidcError::Denied(excerpt(&format!("{error}{description}"), 300)));
        }
        self.code.filter(|code| !code.expose().is_empty()).ok_or(OidcError::NoCode)
    }
}

/// The exchange of a code.
pub struct CodeExchange<'a> {
    /// The client.
    pub client_id: &'a str,
    /// Its secret, if it has one.
    pub client_secret: Option<&'a Secret>,
    /// The same as in the request.
    pub redirect_uri: &'a str,
    /// The code.
    pub code: &'a Secret,
    /// What binds the code to the login.
    pub verifier: &'a Secret,
}

/// A request to a token endpoint.
pub struct TokenRequest {
    /// The form.
    pub form: String,
    /// The header `Authorization`.
    pub authorization: Option<Secret>,
}

impl CodeExchange<'_> {
    /// Returns the request.
    pub fn request(&self, metadata: &ProviderMetadata) -> TokenRequest {
        let mut form = Serializer::new(String::new());
        form.append_pair("grant_type", "authorization_code")
            .append_pair("code", self.code.expose())
            .append_pair("redirect_uri", self.redirect_uri)
            .append_pair("code_verifier", self.verifier.expose());
        let authorization = authenticate(&mut form, metadata, self.client_id, self.client_secret);
        TokenRequest { form: form.finish(), authorization }
    }
}

/// Adds the authentication of a client to a form; returns the header, if it needs one.
pub(crate) fn authenticate(
    form: &mut Serializer<'_, String>,
    metadata: &ProviderMetadata,
    client_id: &str,
    client_secret: Option<&Secret>,
) -> Option<Secret> {
    match client_secret {
        Some(secret) if !metadata.secret_in_form => {
            let encode = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
            let pair = format!("{}:{}", encode(client_id), encode(secret.expose()));
            return Some(Secret::new(format!("Basic {}", STANDARD.encode(pair))));
        }
        Some(secret) => {
            form.append_pair("client_id", client_id).append_pair("client_secret", secret.expose());
        }
        None => {
            form.append_pair("client_id", client_id);
        }
    }
    None
}

/// The answer of a token endpoint.
pub struct TokenAnswer {
    /// Who logged in.
    pub id_token: String,
    /// The other tokens; the access token gives access to the userinfo endpoint.
    pub tokens: Option<IssuedTokens>,
}

impl TokenAnswer {
    /// Reads an answer.
    pub fn parse(document: &[u8], now: i64) -> Result<Self, OidcError> {
        let invalid =
            || OidcError::Document("the answer of the token endpoint", "expected a JSON object".to_owned());
        let value: Value = serde_json::from_slice(document).map_err(|_| invalid())?;
        let text = |name| value.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
        Ok(Self {
            id_token: text("id_token").ok_or(OidcError::NoIdToken)?.to_owned(),
            // Some issuers send none, or one of a kind that nobody needs here.
            tokens: IssuedTokens::read(&value, now).ok(),
        })
    }
}

/// Returns why a token endpoint rejected a request, without what it may have repeated of it.
pub fn rejection(document: &[u8]) -> Option<String> {
    let value: Value = serde_json::from_slice(document).ok()?;
    let error = value.get("error")?.as_str()?;
    Some(excerpt(error, 100))
}

/// Adds the claims of the userinfo endpoint to those of the ID token, which win.
pub fn merge_userinfo(claims: &mut crate::jwt::Claims, document: &[u8]) -> Result<(), OidcError> {
    let invalid =
        || OidcError::Document("the answer of the userinfo endpoint", "expected a JSON object".to_owned());
    let further: crate::jwt::Claims = serde_json::from_slice(document).map_err(|_| invalid())?;
    if further.get("sub") != claims.get("sub") {
        return Err(OidcError::OtherSubject);
    }
    for (name, value) in further {
        claims.entry(name).or_insert(value);
    }
    Ok(())
}

/// Returns where a logout at the issuer begins (RP-initiated logout); `None` if the issuer has none.
pub fn logout_url(metadata: &ProviderMetadata, client_id: &str, back: &str) -> Option<Url> {
    let mut url = metadata.end_session_endpoint.clone()?;
    url.query_pairs_mut().append_pair("client_id", client_id).append_pair("post_logout_redirect_uri", back);
    Some(url)
}

#[cfg(test)]
#[path = "oidc_tests.rs"]
mod tests;
