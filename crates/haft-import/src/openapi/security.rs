//! Converts security schemes to `auth`, with references to secrets.

use serde_json::{Map, Value};

use super::document::{Document, Operation};
use crate::api::names::secret_name;
use haft_core::implementation::{ApiKeyLocation, Auth, OAuth2};
use haft_core::problem::{Problem, excerpt};

/// The credentials of a security requirement.
#[derive(Debug, Default, Clone)]
pub(super) struct Credentials {
    pub(super) auth: Option<Auth>,
    /// Additional API keys: name and template.
    pub(super) headers: Vec<(String, String)>,
    pub(super) query: Vec<(String, String)>,
    pub(super) cookies: Vec<(String, String)>,
    /// The names of all secrets.
    pub(super) secrets: Vec<String>,
    pub(super) warnings: Vec<Problem>,
}

/// Returns the credentials of the first supported alternative.
pub(super) fn credentials(document: &Document, operation: &Operation<'_>, prefix: &str) -> Credentials {
    let required = operation.value.get("security").or_else(|| document.root.get("security"));
    let Some(alternatives) = required.and_then(Value::as_array) else { return Credentials::default() };
    let mut refused = Vec::new();
    for alternative in alternatives.iter().filter_map(Value::as_object) {
        match resolve_requirement(document, alternative, prefix) {
            Ok(credentials) => return credentials,
            Err(why) => refused.push(why),
        }
    }
    let mut credentials = Credentials::default();
    if let Some(first) = refused.into_iter().next() {
        let message = format!("{first}; calls are sent without credentials. Set `auth` manually");
        credentials.warnings.push(Problem::new("implementation.auth", "unsupported_security", message));
    }
    credentials
}

/// Why a security requirement is not supported.
#[derive(Debug, thiserror::Error)]
enum SchemeError {
    #[error("the security scheme `{0}` is not defined")]
    Missing(String),
    #[error("the security scheme `{name}` has the unsupported type `{kind}`")]
    Unsupported { name: String, kind: String },
    #[error("the security requirement needs two credentials in the `Authorization` header")]
    Two,
}

fn resolve_requirement(
    document: &Document,
    alternative: &Map<String, Value>,
    prefix: &str,
) -> Result<Credentials, SchemeError> {
    let mut credentials = Credentials::default();
    for (name, scopes) in alternative {
        let shown = || excerpt(name, 60);
        let scheme = document.root.pointer("/components/securitySchemes").and_then(|all| all.get(name));
        let scheme = scheme.and_then(|scheme| document.follow(scheme).ok()).and_then(Value::as_object);
        let scheme = scheme.ok_or_else(|| SchemeError::Missing(shown()))?;
        let text = |key: &str| scheme.get(key).and_then(Value::as_str).unwrap_or_default();
        let reader = Scheme { name, map: scheme, prefix };
        match text("type") {
            "apiKey" => reader.key(&mut credentials)?,
            "http" | "oauth2" | "openIdConnect" if credentials.has_header() => return Err(SchemeError::Two),
            "http" => reader.http(&mut credentials)?,
            "oauth2" => reader.oauth2(scopes, &mut credentials),
            "openIdConnect" => reader.token(&mut credentials),
            kind => return Err(SchemeError::Unsupported { name: shown(), kind: excerpt(kind, 40) }),
        }
    }
    Ok(credentials)
}

impl Credentials {
    /// Returns whether the `Authorization` header is in use.
    fn has_header(&self) -> bool {
        matches!(self.auth, Some(Auth::Bearer { .. } | Auth::Basic { .. } | Auth::Oauth2(_)))
    }

    fn secret(&mut self, parts: &[&str]) -> String {
        let name = secret_name(parts);
        let template = format!("${{{name}}}");
        self.secrets.push(name);
        template
    }

    /// Sets the `auth` of the tool; an earlier API key becomes an additional header or query parameter.
    fn take(&mut self, auth: Auth) {
        match self.auth.replace(auth) {
            Some(Auth::ApiKey { name, value, location: ApiKeyLocation::Header }) => {
                self.headers.push((name, value));
            }
            Some(Auth::ApiKey { name, value, location: ApiKeyLocation::Query }) => {
                self.query.push((name, value));
            }
            _ => {}
        }
    }
}

struct Scheme<'a> {
    name: &'a str,
    map: &'a Map<String, Value>,
    prefix: &'a str,
}

impl Scheme<'_> {
    fn text(&self, key: &str) -> &str {
        self.map.get(key).and_then(Value::as_str).unwrap_or_default()
    }

    fn unsupported(&self, kind: &str) -> SchemeError {
        SchemeError::Unsupported { name: excerpt(self.name, 60), kind: excerpt(kind, 40) }
    }

    fn key(&self, credentials: &mut Credentials) -> Result<(), SchemeError> {
        let name = self.text("name").trim();
        let token = |text: &str| {
            !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
        };
        let location = match self.text("in") {
            "header" if token(name) => ApiKeyLocation::Header,
            "query" if !name.is_empty() => ApiKeyLocation::Query,
            "cookie" if token(name) => {
                let value = credentials.secret(&[self.prefix, self.name]);
                credentials.cookies.push((name.to_owned(), value));
                return Ok(());
            }
            other => return Err(self.unsupported(&format!("apiKey in {other}"))),
        };
        let value = credentials.secret(&[self.prefix, self.name]);
        match (&credentials.auth, location) {
            (None, location) => {
                credentials.auth = Some(Auth::ApiKey { name: name.to_owned(), value, location });
            }
            (Some(_), ApiKeyLocation::Header) => credentials.headers.push((name.to_owned(), value)),
            (Some(_), ApiKeyLocation::Query) => credentials.query.push((name.to_owned(), value)),
        }
        Ok(())
    }

    fn http(&self, credentials: &mut Credentials) -> Result<(), SchemeError> {
        match self.text("scheme").to_ascii_lowercase().as_str() {
            "bearer" => {
                let token = credentials.secret(&[self.prefix, self.name]);
                credentials.take(Auth::Bearer { token });
            }
            "basic" => {
                let username = credentials.secret(&[self.prefix, self.name, "username"]);
                let password = credentials.secret(&[self.prefix, self.name, "password"]);
                credentials.take(Auth::Basic { username, password });
            }
            other => return Err(self.unsupported(&format!("http {other}"))),
        }
        Ok(())
    }

    /// haft supports the client credentials flow; the other flows need a person who stores a token.
    fn oauth2(&self, scopes: &Value, credentials: &mut Credentials) {
        let flow = self.map.get("flows").and_then(|flows| flows.get("clientCredentials"));
        let token_url =
            flow.and_then(|flow| flow.get("tokenUrl")).and_then(Value::as_str).unwrap_or_default();
        let web = url::Url::parse(token_url).is_ok_and(|url| matches!(url.scheme(), "http" | "https"));
        if !web {
            return self.token(credentials);
        }
        let client_id = credentials.secret(&[self.prefix, self.name, "client_id"]);
        let client_secret = credentials.secret(&[self.prefix, self.name, "client_secret"]);
        let scopes = scopes.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned);
        credentials.take(Auth::Oauth2(OAuth2 {
            token_url: super::servers::escape_template(token_url),
            client_id,
            client_secret,
            refresh_token: None,
            scopes: scopes.filter(|scope| !scope.contains("${")).take(50).collect(),
            audience: None,
        }));
    }

    fn token(&self, credentials: &mut Credentials) {
        let token = credentials.secret(&[self.prefix, self.name]);
        let name = credentials.secrets.last().cloned().unwrap_or_default();
        let message = format!(
            "this OAuth flow needs a person: obtain an access token and store it as the secret `{name}`"
        );
        credentials.warnings.push(Problem::new("implementation.auth", "token_needed", message));
        credentials.take(Auth::Bearer { token });
    }
}
