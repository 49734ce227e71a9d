//! The request with which an application sends a person here, and what is wrong with it. As long as it is not certain
//! where the answer may go, errors are shown to the person and never sent anywhere.

use haft_core::token::Role;
use haft_oauth::redirect_uri::RedirectUri;
use haft_oauth::{pkce, resource, scope};

use super::clients::{self, Client, ClientError, Origin};
use crate::context::Context;
use crate::error::ServiceError;
use crate::identity::Identity;

/// The longest `state`, in bytes.
const MAX_STATE_BYTES: usize = 2048;
/// The parameters that are read; none may be repeated.
const PARAMETERS: [&str; 8] = [
    "response_type",
    "client_id",
    "redirect_uri",
    "state",
    "scope",
    "code_challenge",
    "code_challenge_method",
    "prompt",
];

/// A valid request of an application.
#[derive(Debug, Clone)]
pub struct AuthorizationRequest {
    pub client: Client,
    /// Where the answer goes.
    pub redirect_uri: RedirectUri,
    pub state: Option<String>,
    /// The role that it asks for.
    pub role: Role,
    pub challenge: String,
    pub resource: Option<String>,
    /// The URL of this server, which answers name.
    pub issuer: String,
}

/// A request that cannot be allowed.
#[derive(Debug)]
pub enum RequestError {
    /// An error for the person; the application learns nothing.
    Shown(ServiceError),
    /// The address with which the application learns the error.
    Redirect(String),
}

impl From<ServiceError> for RequestError {
    fn from(error: ServiceError) -> Self {
        Self::Shown(error)
    }
}

impl AuthorizationRequest {
    /// Returns the address of the answer to the application.
    pub fn answer(&self, parameters: &[(&str, &str)]) -> String {
        answer(&self.redirect_uri, self.state.as_deref(), &self.issuer, parameters)
    }
}

fn answer(
    redirect_uri: &RedirectUri,
    state: Option<&str>,
    issuer: &str,
    parameters: &[(&str, &str)],
) -> String {
    let state = state.map(|state| ("state", state));
    // RFC 9207: a client that talks to several servers recognises a mix-up.
    redirect_uri.with_parameters(parameters.iter().copied().chain(state).chain([("iss", issuer)]))
}

/// Checks the query of a request. `issuer` is the URL of this server.
pub async fn check(
    app: &Context,
    identity: &Identity,
    issuer: &str,
    query: &[(String, String)],
) -> Result<AuthorizationRequest, RequestError> {
    let value = |name: &str| {
        let found = query.iter().find(|(key, value)| key == name && !value.is_empty());
        found.map(|(_, value)| value.as_str())
    };
    let is_repeated = |name: &&str| query.iter().filter(|(key, _)| key == *name).count() > 1;
    let repeated = PARAMETERS.iter().find(|name| is_repeated(name));
    if let Some(name) = repeated {
        return Err(ServiceError::bad_request(format!("`{name}` is repeated")).into());
    }
    let id = value("client_id").ok_or_else(|| ServiceError::bad_request("missing `client_id`"))?;
    let client = find_client(app, identity, id).await?;
    let redirect_uri = redirect_uri(&client, value("redirect_uri"))?;
    let state = value("state").map(str::to_owned);
    if state.as_ref().is_some_and(|state| state.len() > MAX_STATE_BYTES) {
        let message = format!("`state` is too long: at most {MAX_STATE_BYTES} bytes");
        return Err(ServiceError::bad_request(message).into());
    }
    let fail = |code: &str, description: &str| {
        let parameters = [("error", code), ("error_description", description)];
        RequestError::Redirect(answer(&redirect_uri, state.as_deref(), issuer, &parameters))
    };
    if value("response_type") != Some("code") {
        return Err(fail("unsupported_response_type", "expected `response_type=code`"));
    }
    let challenge = value("code_challenge").filter(|text| pkce::is_challenge(text));
    let Some(challenge) = challenge.filter(|_| value("code_challenge_method") == Some(pkce::METHOD)) else {
        return Err(fail("invalid_request", "PKCE with `code_challenge_method=S256` is required"));
    };
    let mut resources = query.iter().filter(|(key, _)| key == "resource").map(|(_, value)| value.as_str());
    let resource = resources.clone().next().map(str::to_owned);
    if resources.any(|named| !resource::is_of(issuer, named)) {
        return Err(fail("invalid_target", "`resource` is not this server"));
    }
    if value("prompt") == Some("none") {
        return Err(fail("consent_required", "a person has to allow it"));
    }
    let role = scope::requested_role(value("scope")).unwrap_or(scope::DEFAULT);
    let challenge = challenge.to_owned();
    let issuer = issuer.to_owned();
    Ok(AuthorizationRequest { client, redirect_uri, state, role, challenge, resource, issuer })
}

/// Finds the application. Who names many whose description cannot be read has to wait.
async fn find_client(app: &Context, identity: &Identity, id: &str) -> Result<Client, ServiceError> {
    let is_fetched = clients::missing_document(app, id).is_some();
    let key = format!("{}/{}", identity.tenant, identity.id());
    if is_fetched && !app.document_failures().try_acquire(&key, app.now()) {
        let message = "too many descriptions of applications could not be read; retry in ten minutes";
        return Err(ServiceError::new(haft_core::outcome::ErrorCode::RateLimited, message));
    }
    let found = clients::find(app, id).await;
    if is_fetched && !matches!(found, Err(ClientError::Document(_))) {
        app.document_failures().release(&key);
    }
    let client = found.map_err(|error| match error {
        ClientError::Store(error) => error.into(),
        error => ServiceError::bad_request(error.to_string()),
    })?;
    match &client.origin {
        // The same as for one that does not exist.
        Origin::Created(tenant) if *tenant != identity.tenant => {
            Err(ServiceError::bad_request(ClientError::Unknown(id.to_owned()).to_string()))
        }
        _ => Ok(client),
    }
}

fn redirect_uri(client: &Client, sent: Option<&str>) -> Result<RedirectUri, ServiceError> {
    let sent = match (sent, client.redirect_uris.as_slice()) {
        (Some(sent), _) => {
            RedirectUri::parse(sent).map_err(|error| ServiceError::bad_request(error.to_string()))?
        }
        (None, [only]) => only.clone(),
        (None, _) => return Err(ServiceError::bad_request("missing `redirect_uri`")),
    };
    if client.covers(&sent) {
        return Ok(sent);
    }
    let message = format!(
        "the application is not registered for the redirect URI `{}`; nothing was sent there",
        haft_core::problem::excerpt(sent.as_str(), 200)
    );
    Err(ServiceError::bad_request(message))
}
