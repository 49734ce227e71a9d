//! How operations prove who sends them: security schemes to `auth`, with names of secrets in place of secrets.

use serde_json::{Map, Value};

use super::document::{Document, Operation};
use super::names::of_secret;
use haft_core::implementation::{ApiKeyLocation, Auth, OAuth2};
use haft_core::problem::{Problem, excerpt};

/// What a requirement comes to.
#[derive(Debug, Default, Clone)]
pub(super) struct Proof {
    pub(super) auth: Option<Auth>,
    /// Keys beside the first proof: name and template.
    pub(super) headers: Vec<(String, String)>,
    pub(super) query: Vec<(String, String)>,
    pub(super) cookies: Vec<(String, String)>,
    /// The names of all secrets.
    pub(super) secrets: Vec<String>,
    pub(super) warnings: Vec<Problem>,
}

/// Takes the first of the alternatives that an `http` tool can fulfil.
pub(super) fn proof(document: &Document, operation: &Operation<'_>, prefix: &str) -> Proof {
    let required = operation.value.get("security").or_else(|| document.root.get("security"));
    let Some(alternatives) = required.and_then(Value::as_array) else { return Proof::default() };
    let mut refused = Vec::new();
    for alternative in alternatives.iter().filter_map(Value::as_object) {
        match fulfil(document, alternative, prefix) {
            Ok(proof) => return proof,
            Err(why) => refused.push(why),
        }
    }
    let mut proof = Proof::default();
    if let Some(first) = refused.into_iter().next() {
        let message = format!("{first}; calls go out without credentials. Set `auth` by hand");
        proof.warnings.push(Problem::new("implementation.auth", "unsupported_security", message));
    }
    proof
}

/// Why a requirement cannot be fulfilled.
#[derive(Debug, thiserror::Error)]
enum SchemeError {
    #[error("the security scheme `{0}` is not described")]
    Missing(String),
    #[error("the security scheme `{name}` has the type `{kind}`, which is not supported")]
    Unsupported { name: String, kind: String },
    #[error("the requirement asks for two proofs that both go into `Authorization`")]
    Two,
}

fn fulfil(document: &Document, alternative: &Map<String, Value>, prefix: &str) -> Result<Proof, SchemeError> {
    let mut proof = Proof::default();
    for (name, scopes) in alternative {
        let shown = || excerpt(name, 60);
        let scheme = document.root.pointer("/components/securitySchemes").and_then(|all| all.get(name));
        let scheme = scheme.and_then(|scheme| document.follow(scheme).ok()).and_then(Value::as_object);
        let scheme = scheme.ok_or_else(|| SchemeError::Missing(shown()))?;
        let text = |key: &str| scheme.get(key).and_then(Value::as_str).unwrap_or_default();
        let reader = Scheme { name, map: scheme, prefix };
        match text("type") {
            "apiKey" => reader.key(&mut proof)?,
            "http" | "oauth2" | "openIdConnect" if proof.has_header() => return Err(SchemeError::Two),
            "http" => reader.http(&mut proof)?,
            "oauth2" => reader.oauth2(scopes, &mut proof),
            "openIdConnect" => reader.token(&mut proof),
            kind => return Err(SchemeError::Unsupported { name: shown(), kind: excerpt(kind, 40) }),
        }
    }
    Ok(proof)
}

impl Proof {
    /// Tells whether `Authorization` is taken.
    fn has_header(&self) -> bool {
        matches!(self.auth, Some(Auth::Bearer { .. } | Auth::Basic { .. } | Auth::Oauth2(_)))
    }

    fn secret(&mut self, parts: &[&str]) -> String {
        let name = of_secret(parts);
        let template = format!("${{{name}}}");
        self.secrets.push(name);
        template
    }

    /// The first proof is the tool's `auth`; a key that was there before makes room.
    fn take(&mut self, auth: Auth) {
        match self.auth.replace(auth) {
            Some(Auth::ApiKey { name, value, place: ApiKeyLocation::Header }) => {
                self.headers.push((name, value))
            }
            Some(Auth::ApiKey { name, value, place: ApiKeyLocation::Query }) => {
                self.query.push((name, value))
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

    fn key(&self, proof: &mut Proof) -> Result<(), SchemeError> {
        let name = self.text("name").trim();
        let token = |text: &str| {
            !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
        };
        let place = match self.text("in") {
            "header" if token(name) => ApiKeyLocation::Header,
            "query" if !name.is_empty() => ApiKeyLocation::Query,
            "cookie" if token(name) => {
                let value = proof.secret(&[self.prefix, self.name]);
                proof.cookies.push((name.to_owned(), value));
                return Ok(());
            }
            other => return Err(self.unsupported(&format!("apiKey in {other}"))),
        };
        let value = proof.secret(&[self.prefix, self.name]);
        match (&proof.auth, place) {
            (None, place) => proof.auth = Some(Auth::ApiKey { name: name.to_owned(), value, place }),
            (Some(_), ApiKeyLocation::Header) => proof.headers.push((name.to_owned(), value)),
            (Some(_), ApiKeyLocation::Query) => proof.query.push((name.to_owned(), value)),
        }
        Ok(())
    }

    fn http(&self, proof: &mut Proof) -> Result<(), SchemeError> {
        match self.text("scheme").to_ascii_lowercase().as_str() {
            "bearer" => {
                let token = proof.secret(&[self.prefix, self.name]);
                proof.take(Auth::Bearer { token });
            }
            "basic" => {
                let username = proof.secret(&[self.prefix, self.name, "username"]);
                let password = proof.secret(&[self.prefix, self.name, "password"]);
                proof.take(Auth::Basic { username, password });
            }
            other => return Err(self.unsupported(&format!("http {other}"))),
        }
        Ok(())
    }

    /// Client credentials are fetched by haft; the other flows need a person, who stores the token that came of it.
    fn oauth2(&self, scopes: &Value, proof: &mut Proof) {
        let flow = self.map.get("flows").and_then(|flows| flows.get("clientCredentials"));
        let token_url =
            flow.and_then(|flow| flow.get("tokenUrl")).and_then(Value::as_str).unwrap_or_default();
        let web = url::Url::parse(token_url).is_ok_and(|url| matches!(url.scheme(), "http" | "https"));
        if !web {
            return self.token(proof);
        }
        let client_id = proof.secret(&[self.prefix, self.name, "client_id"]);
        let client_secret = proof.secret(&[self.prefix, self.name, "client_secret"]);
        let scopes = scopes.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned);
        proof.take(Auth::Oauth2(OAuth2 {
            token_url: super::servers::escaped(token_url),
            client_id,
            client_secret,
            refresh_token: None,
            scopes: scopes.filter(|scope| !scope.contains("${")).take(50).collect(),
            audience: None,
        }));
    }

    fn token(&self, proof: &mut Proof) {
        let token = proof.secret(&[self.prefix, self.name]);
        let name = proof.secrets.last().cloned().unwrap_or_default();
        let message = format!(
            "sign in elsewhere and store the access token as the secret `{name}`: this flow needs a person"
        );
        proof.warnings.push(Problem::new("implementation.auth", "token_needed", message));
        proof.take(Auth::Bearer { token });
    }
}
