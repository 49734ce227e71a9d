//! Tells an application that a request failed because the person allowed it too little, and which scope to ask for
//! (RFC 6750, section 3.1). What the person may not do either is a plain error.

use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use haft_core::token::Role;
use haft_oauth::access_token::AccessToken;
use haft_oauth::scope;

use crate::browser;
use crate::error::RequiredRole;
use haft_platform::Installation;
use haft_platform::bearer;

/// The path of the metadata of this server as a resource (RFC 9728); the path of the resource follows.
pub(crate) const RESOURCE_METADATA: &str = "/.well-known/oauth-protected-resource";

/// The request of an application; nothing for other requests.
pub(crate) struct StepUp(Option<Sent>);

struct Sent {
    value: String,
    base: HeaderMap,
    path: String,
}

impl StepUp {
    /// Keeps what is needed of a request.
    pub(crate) fn of(request: &Request) -> Self {
        let value = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let value = value.and_then(|value| value.split_once(' ')).map(|(_, value)| value.trim());
        Self(value.filter(|value| AccessToken::is_claimed(value)).map(|value| Sent {
            value: value.to_owned(),
            base: request.headers().clone(),
            path: request.uri().path().to_owned(),
        }))
    }

    /// Adds the challenge to a response that lacks a role.
    pub(crate) async fn add(self, app: &Installation, mut response: Response) -> Response {
        let Some(Sent { value, base, path }) = self.0 else { return response };
        let required = response.extensions().get::<RequiredRole>().map(|required| required.0);
        let Some(role) = required.filter(|_| response.status() == StatusCode::FORBIDDEN) else {
            return response;
        };
        if !person_may(app, &value, role).await {
            return response;
        }
        let path = if path == "/mcp" || path.starts_with("/mcp/") { path.as_str() } else { "" };
        let metadata = format!("{}{RESOURCE_METADATA}{path}", browser::own_url(app, &base));
        let scope = scope::granted(role, false);
        let challenge = format!(
            "Bearer error=\"insufficient_scope\", scope=\"{scope}\", resource_metadata=\"{metadata}\""
        );
        if let Ok(challenge) = HeaderValue::from_str(&challenge) {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
        }
        response
    }
}

/// Returns whether the person who connected the application has a role.
async fn person_may(app: &Installation, value: &str, role: Role) -> bool {
    let Ok(Some(token)) = bearer::find_token(app, value).await else { return false };
    let principal = &token.principal;
    match &principal.actor {
        Some(actor) => app
            .access()
            .principal_of_person(actor.id, &principal.tenant)
            .is_some_and(|person| person.role >= role),
        // A token without an owner allowed it; the page shows whether it may allow more.
        None => true,
    }
}
