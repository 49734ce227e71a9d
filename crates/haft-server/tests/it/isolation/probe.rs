//! Requests with the token of the second tenant, and what no response to them may contain.

use std::cell::RefCell;
use std::fmt::Write as _;
use std::time::Duration;

use reqwest::Method;
use serde_json::Value;

use super::first_tenant::{FirstTenant, NAMES};
use crate::harness::Server;

/// The second tenant.
pub(super) const TENANT: &str = "acme";
/// Stands for the names of the first tenant in requests for what does not exist.
const ABSENT_NAME: &str = "absent-name";
const ABSENT_ID: &str = "01900000-0000-7000-8000-00000000abcd";

/// A token of the second tenant.
pub(super) struct Probe<'a> {
    pub(super) server: &'a Server,
    pub(super) first: &'a FirstTenant,
    pub(super) token: String,
    /// All requests of the tenant, which its audit log repeats.
    pub(super) sent: &'a RefCell<String>,
}

/// A request, with the path and the query.
#[derive(Debug, Clone)]
pub(super) struct ProbeRequest {
    pub(super) method: Method,
    pub(super) path: String,
    /// The body; `null` for none.
    pub(super) body: Value,
}

/// The status and the text of a response.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ProbeResponse {
    pub(super) status: u16,
    pub(super) body: String,
}

impl ProbeRequest {
    fn text(&self) -> String {
        format!("{} {} {}", self.method, self.path, self.body)
    }

    /// Returns the same request for things that no tenant has.
    fn absent(&self, first: &FirstTenant) -> Self {
        let replace = |text: &str| first.without_identity(text, ABSENT_NAME, ABSENT_ID);
        let body = serde_json::from_str(&replace(&self.body.to_string())).unwrap();
        Self { method: self.method.clone(), path: replace(&self.path), body }
    }
}

impl FirstTenant {
    /// Replaces the names and ids of the tenant in a text.
    fn without_identity(&self, text: &str, name: &str, id: &str) -> String {
        let named = NAMES.iter().fold(text.to_owned(), |text, own| text.replace(own, name));
        let ids = self.secrets.iter().filter(|secret| secret.parse::<uuid::Uuid>().is_ok());
        ids.fold(named, |text, own| text.replace(own, id))
    }

    /// Fails if a response contains anything of the tenant that the request did not contain.
    pub(super) fn check_secrets(&self, request: &str, response: &str) {
        for secret in self.secrets.iter().filter(|secret| !request.contains(secret.as_str())) {
            assert!(!response.contains(secret), "{request} reveals `{secret}`:\n{response}");
        }
    }
}

impl Probe<'_> {
    /// Sends a request, and fails if the response contains anything of the first tenant.
    pub(super) async fn send(&self, request: &ProbeRequest) -> ProbeResponse {
        let ProbeRequest { method, path, body } = request;
        let mut builder = self.server.bare(method.clone(), path).bearer_auth(&self.token);
        builder = builder.header("x-request-id", "probe").timeout(Duration::from_secs(20));
        if !body.is_null() {
            builder = builder.body(body.to_string());
        }
        let fail = |error: reqwest::Error| -> ! { panic!("{}: {error:?}", request.text()) };
        let response = builder.send().await.unwrap_or_else(|error| fail(error));
        let status = response.status().as_u16();
        let mut text = format!("{status}\n");
        for (name, value) in response.headers() {
            writeln!(text, "{name}: {}", String::from_utf8_lossy(value.as_bytes())).unwrap();
        }
        // The event stream has no end.
        let body = if path.starts_with("/api/events") {
            first_chunk(response).await
        } else {
            response.text().await.unwrap_or_else(|error| fail(error))
        };
        let mut sent = self.sent.borrow_mut();
        sent.push_str(&request.text());
        let known = if path.starts_with("/api/audit") { sent.clone() } else { request.text() };
        drop(sent);
        self.first.check_secrets(&known, &format!("{text}\n{body}"));
        if let Ok(value) = serde_json::from_str(&body) {
            check_tenants(&value, &request.text());
        }
        assert!(status < 500, "{}: {status} {body}", request.text());
        ProbeResponse { status, body }
    }

    /// Sends a request, and fails unless the response is the same as for something that does not exist.
    pub(super) async fn send_like_absent(&self, request: &ProbeRequest) -> ProbeResponse {
        let absent = request.absent(self.first);
        let response = self.send(request).await;
        let expected = self.send(&absent).await;
        let body = self.first.without_identity(&response.body, ABSENT_NAME, ABSENT_ID);
        let response = ProbeResponse { body, ..response };
        assert_eq!(response, expected, "the response tells that it exists: {}", request.text());
        response
    }
}

async fn first_chunk(mut response: reqwest::Response) -> String {
    let chunk = response.chunk().await.unwrap().unwrap();
    String::from_utf8(chunk.to_vec()).unwrap()
}

/// Fails if a value belongs to another tenant than the second one.
fn check_tenants(value: &Value, request: &str) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| check_tenants(item, request)),
        Value::Object(fields) => {
            let owner = fields.get("tenant").and_then(Value::as_str);
            assert!(owner.is_none_or(|owner| owner == TENANT), "{request}: of tenant {owner:?}: {value}");
            fields.values().for_each(|field| check_tenants(field, request));
        }
        _ => {}
    }
}
