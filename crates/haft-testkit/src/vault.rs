//! A server on loopback that plays HashiCorp Vault: a KV store of version 2, logins by AppRole and Kubernetes, tokens
//! that can be revoked, and failures.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};

use crate::upstream::{SeenRequest, Upstream};

/// The role id that may log in.
pub const ROLE_ID: &str = "role-id-of-haft";
/// Its secret id.
pub const SECRET_ID: &str = "secret-id-of-haft";
/// The Kubernetes role that may log in.
pub const ROLE: &str = "haft";
/// Its service account token.
pub const JWT: &str = "service-account-token";
/// How many seconds the token of a login is valid.
pub const LEASE_SECONDS: u64 = 3600;

/// A Vault on a free loopback port; it ends when this is dropped.
pub struct TestVault {
    upstream: Upstream,
    state: Shared,
}

type Shared = Arc<Mutex<VaultState>>;

#[derive(Default)]
struct VaultState {
    /// The data of secrets as JSON objects, by path.
    secrets: BTreeMap<String, String>,
    tokens: BTreeSet<String>,
    /// How many tokens were issued.
    logins: usize,
    /// The status of every response.
    failure: Option<u16>,
    /// The status of every login.
    login_failure: Option<u16>,
    /// The paths of the API that no policy allows.
    denied: BTreeSet<String>,
}

impl TestVault {
    /// Starts an empty Vault.
    pub async fn start() -> std::io::Result<Self> {
        let state = Shared::default();
        let router = Router::new().fallback(answer).with_state(Arc::clone(&state));
        Ok(Self { upstream: Upstream::serve(router).await?, state })
    }

    /// Returns its address.
    pub fn address(&self) -> String {
        self.upstream.url("")
    }

    /// Stores a secret: its data is a JSON object.
    pub fn put(&self, path: &str, data: &str) {
        lock(&self.state).secrets.insert(path.to_owned(), data.to_owned());
    }

    /// Accepts a token.
    pub fn accept(&self, token: &str) {
        lock(&self.state).tokens.insert(token.to_owned());
    }

    /// Revokes all tokens.
    pub fn revoke_tokens(&self) {
        lock(&self.state).tokens.clear();
    }

    /// Fails all requests with a status; 503 says that Vault is sealed.
    pub fn fail_with(&self, status: Option<u16>) {
        lock(&self.state).failure = status;
    }

    /// Fails all logins with a status.
    pub fn fail_logins_with(&self, status: Option<u16>) {
        lock(&self.state).login_failure = status;
    }

    /// Denies reading a path of the API, such as `/v1/secret/data/a`, to every token.
    pub fn deny(&self, path: &str) {
        lock(&self.state).denied.insert(path.to_owned());
    }

    /// Returns how many tokens were issued.
    pub fn logins(&self) -> usize {
        lock(&self.state).logins
    }

    /// Returns the requests whose path begins with this.
    pub fn requests(&self, path: &str) -> Vec<SeenRequest> {
        let mut seen = self.upstream.seen();
        seen.retain(|request| request.target.starts_with(path));
        seen
    }
}

fn lock(state: &Shared) -> MutexGuard<'_, VaultState> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn answer(
    State(state): State<Shared>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let token = headers.get("x-vault-token").and_then(|value| value.to_str().ok());
    let (status, text) = respond(&mut lock(&state), &method, uri.path(), token, &body);
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    (status, [(CONTENT_TYPE, "application/json")], text).into_response()
}

fn respond(
    state: &mut VaultState,
    method: &Method,
    path: &str,
    token: Option<&str>,
    body: &[u8],
) -> (u16, String) {
    if let Some(status) = state.failure {
        let error = if status == 503 { "Vault is sealed" } else { "internal error" };
        return (status, format!(r#"{{"errors":["{error}"]}}"#));
    }
    if method == Method::POST {
        if let Some(status) = state.login_failure {
            return (status, r#"{"errors":["internal error"]}"#.to_owned());
        }
        return log_in(state, path, &String::from_utf8_lossy(body));
    }
    if state.denied.contains(path) || !token.is_some_and(|token| state.tokens.contains(token)) {
        return (403, r#"{"errors":["permission denied"]}"#.to_owned());
    }
    if path == "/v1/auth/token/lookup-self" {
        return (200, r#"{"data":{"policies":["haft"]}}"#.to_owned());
    }
    match path.strip_prefix("/v1/secret/data/").and_then(|path| state.secrets.get(path)) {
        Some(data) => (200, format!(r#"{{"data":{{"data":{data},"metadata":{{"version":1}}}}}}"#)),
        None => (404, r#"{"errors":[]}"#.to_owned()),
    }
}

fn log_in(state: &mut VaultState, path: &str, body: &str) -> (u16, String) {
    let expected = match path {
        "/v1/auth/approle/login" => [("role_id", ROLE_ID), ("secret_id", SECRET_ID)],
        "/v1/auth/kubernetes/login" => [("role", ROLE), ("jwt", JWT)],
        _ => return (404, r#"{"errors":["no handler for route"]}"#.to_owned()),
    };
    if !expected.iter().all(|(key, value)| body.contains(&format!(r#""{key}":"{value}""#))) {
        return (400, r#"{"errors":["invalid role or secret ID"]}"#.to_owned());
    }
    state.logins += 1;
    let token = format!("hvs.token-{}", state.logins);
    state.tokens.insert(token.clone());
    (200, format!(r#"{{"auth":{{"client_token":"{token}","lease_duration":{LEASE_SECONDS}}}}}"#))
}
