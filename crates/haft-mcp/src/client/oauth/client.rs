//! Who haft is to an authorisation server: a client that was configured, or one that it registers (RFC 7591).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use haft_core::encode::percent_encode;
use haft_core::secret::Secret;
use haft_runtime::egress::Egress;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use url::Url;

use super::error::OAuthError;
use super::fetch::{Sent, send, shown};
use super::metadata::Issuer;

/// How a client proves who it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Proof {
    /// By nothing but its name.
    None,
    /// By its secret, in a header.
    Basic,
    /// By its secret, in the body.
    Post,
}

/// A client.
#[derive(Debug, Clone)]
pub(super) struct Client {
    pub(super) id: String,
    pub(super) secret: Option<Secret>,
    pub(super) proof: Proof,
}

impl Client {
    /// A client that someone registered by hand.
    pub(super) fn configured(id: &str, secret: Option<&Secret>, issuer: &Issuer) -> Self {
        let proof = if secret.is_some() { secret_proof(issuer) } else { Proof::None };
        Self { id: id.to_owned(), secret: secret.cloned(), proof }
    }

    /// Adds the proof to a request for tokens; returns the header, where it is one.
    pub(super) fn prove(&self, form: &mut url::form_urlencoded::Serializer<'_, String>) -> Option<Secret> {
        match (self.proof, &self.secret) {
            (Proof::Basic, Some(secret)) => {
                // RFC 6749, section 2.3.1: both parts are form-encoded before they are joined.
                let pair = format!("{}:{}", percent_encode(&self.id), percent_encode(secret.expose()));
                return Some(Secret::new(format!("Basic {}", STANDARD.encode(pair))));
            }
            (Proof::Post, Some(secret)) => {
                form.append_pair("client_id", &self.id);
                form.append_pair("client_secret", secret.expose());
            }
            (Proof::None, _) | (_, None) => {
                form.append_pair("client_id", &self.id);
            }
        }
        None
    }
}

/// Registers a client that gets its answers at an address of this server.
pub(super) async fn register(
    egress: &Egress,
    issuer: &Issuer,
    redirect: &Url,
    scope: Option<&str>,
) -> Result<Client, OAuthError> {
    let Some(place) = &issuer.registration_endpoint else {
        return Err(OAuthError::Configuration(
            "its authorisation server registers no clients by itself: register one there, with the redirect \
             address of this server, and configure `oauth.client_id`"
                .to_owned(),
        ));
    };
    let method = match wanted_proof(issuer) {
        Proof::None => "none",
        Proof::Basic => "client_secret_basic",
        Proof::Post => "client_secret_post",
    };
    // A redirect that leaves the machine is that of a site (OpenID Connect registration, section 2).
    let kind = if redirect.scheme() == "https" { "web" } else { "native" };
    let mut body = json!({
        "client_name": "haft",
        "redirect_uris": [redirect.as_str()],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": method,
        "application_type": kind,
    });
    if let (Some(scope), Some(body)) = (scope, body.as_object_mut()) {
        body.insert("scope".to_owned(), scope.into());
    }
    let sent = Sent {
        url: place,
        content_type: "application/json",
        body: body.to_string(),
        authorization: None,
        hidden: Vec::new(),
    };
    let answer = send(egress, sent).await?;
    let text = |name| answer.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    let id = text("client_id").ok_or_else(|| {
        OAuthError::Metadata(format!("{} registered a client without a `client_id`", shown(place)))
    })?;
    let secret = text("client_secret").map(|text| Secret::new(text.to_owned()));
    let proof = match (text("token_endpoint_auth_method"), &secret) {
        (_, None) | (Some("none"), Some(_)) => Proof::None,
        (Some("client_secret_post"), Some(_)) => Proof::Post,
        (Some("client_secret_basic"), Some(_)) => Proof::Basic,
        (_, Some(_)) => secret_proof(issuer),
    };
    Ok(Client { id: id.to_owned(), secret, proof })
}

/// What haft would rather do: it can keep a secret.
fn wanted_proof(issuer: &Issuer) -> Proof {
    let takes = |name: &str| issuer.auth_methods.iter().flatten().any(|method| method == name);
    match issuer.auth_methods {
        None => Proof::Basic,
        Some(_) if takes("client_secret_basic") => Proof::Basic,
        Some(_) if takes("client_secret_post") => Proof::Post,
        Some(_) => Proof::None,
    }
}

/// How a secret is shown; a header is the way that every server has to take.
fn secret_proof(issuer: &Issuer) -> Proof {
    match wanted_proof(issuer) {
        Proof::Post => Proof::Post,
        Proof::Basic | Proof::None => Proof::Basic,
    }
}
