//! A client of a server that may die at any moment.

#![expect(clippy::unwrap_used, reason = "a harness may fail the test")]

use std::time::Duration;

use serde_json::Value;

use crate::harness::{Haft, Server};

/// Sends requests with one token.
#[derive(Clone)]
pub(crate) struct Client {
    http: reqwest::Client,
    url: String,
    /// The token it sends.
    pub(crate) token: String,
}

impl Client {
    /// A client with the token in the home folder of a server.
    pub(crate) fn new(haft: &Haft, server: &Server) -> Self {
        let token = std::fs::read_to_string(haft.home().join("tokens")).unwrap().trim().to_owned();
        Self { token, ..Self::at(server) }
    }

    /// A client without a token.
    pub(crate) fn at(server: &Server) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        Self { http, url: server.url.trim_end_matches('/').to_owned(), token: String::new() }
    }

    /// The same client with another token.
    pub(crate) fn with_token(&self, token: &Value) -> Self {
        Self { token: token.as_str().unwrap().to_owned(), ..self.clone() }
    }

    /// Returns status and answer to a request, or `None` where the server is gone.
    pub(crate) async fn request(&self, method: &str, path: &str, body: &Value) -> Option<(u16, Value)> {
        let request = self.http.request(method.parse().unwrap(), format!("{}{path}", self.url));
        let request = request.bearer_auth(&self.token).body(body.to_string());
        let response = request.timeout(Duration::from_secs(30)).send().await.ok()?;
        let status = response.status().as_u16();
        Some((status, serde_json::from_slice(&response.bytes().await.ok()?).unwrap()))
    }

    /// Returns the answer to a request that must succeed, or `None` where the server is gone.
    pub(crate) async fn send(&self, method: &str, path: &str, body: Value) -> Option<Value> {
        let (status, answer) = self.request(method, path, &body).await?;
        assert!((200..300).contains(&status), "{path} {answer}");
        Some(answer)
    }
}
