//! Sends requests by one of two ways and reads the answers the same way.

use axum::Router;
use bytes::Bytes;
use haft_core::secret::Secret;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, USER_AGENT};
use http_body_util::{BodyExt as _, Limited};
use serde_json::Value;
use tower::ServiceExt as _;
use url::Url;

use super::request::{Body, Request};
use crate::engine::Engine;
use crate::error::{ApiError, CliError};

/// The largest answer that is read.
const MAX_BYTES: usize = 256 * 1024 * 1024;
/// What the server sees as the program that calls.
const AGENT: &str = concat!("haft-cli/", env!("CARGO_PKG_VERSION"));

/// How requests reach the API.
enum Way {
    /// To a running server.
    Http { client: reqwest::Client, base: Url },
    /// To the router in this process.
    Local { engine: Box<Engine>, router: Router },
}

/// A client of the API.
pub(crate) struct Client {
    way: Way,
    token: Secret,
}

impl Client {
    /// Makes a client of a running server.
    pub(super) fn http(client: reqwest::Client, base: Url, token: Secret) -> Self {
        Self { way: Way::Http { client, base }, token }
    }

    /// Makes a client of the engine in this process.
    pub(super) async fn local(engine: Engine) -> Self {
        let token = engine.token();
        let router = engine.router().await;
        Self { way: Way::Local { engine: Box::new(engine), router }, token }
    }

    /// Returns the engine, where the home folder is opened by this process.
    pub(crate) fn engine(&self) -> Option<&Engine> {
        match &self.way {
            Way::Http { .. } => None,
            Way::Local { engine, .. } => Some(engine),
        }
    }

    /// Returns where requests go, for people.
    pub(crate) fn place(&self) -> String {
        match &self.way {
            Way::Http { base, .. } => base.as_str().trim_end_matches('/').to_owned(),
            Way::Local { .. } => "in this process".to_owned(),
        }
    }

    /// Sends a request and returns the `data` of its answer.
    pub(crate) async fn data(&self, request: Request) -> Result<Value, CliError> {
        let mut answer = self.send(request).await?;
        Ok(answer.get_mut("data").map(Value::take).unwrap_or_default())
    }

    /// Sends a request and returns its whole answer.
    pub(crate) async fn send(&self, request: Request) -> Result<Value, CliError> {
        let (status, body) = self.exchange(request).await?;
        read_answer(status, &body, || self.place())
    }

    /// Asks whether the server is ready; what it lacks is an answer, too.
    pub(crate) async fn ready(&self) -> Result<Value, CliError> {
        let (status, body) = self.exchange(Request::get("/readyz")).await?;
        let answer = serde_json::from_slice::<Value>(&body).ok();
        let known = answer.filter(|answer| answer.get("checks").is_some_and(Value::is_object));
        known.ok_or_else(|| CliError::Answer { url: self.place(), status })
    }

    async fn exchange(&self, request: Request) -> Result<(u16, Bytes), CliError> {
        match &self.way {
            Way::Http { client, base } => self.send_http(client, base, request).await,
            Way::Local { router, .. } => self.send_local(router, request).await,
        }
    }

    async fn send_local(&self, router: &Router, request: Request) -> Result<(u16, Bytes), CliError> {
        let failed = |source| CliError::Unreachable { url: self.place(), source };
        let request = self.build(&request.path.clone(), request).map_err(|error| failed(error.into()))?;
        let Ok(answer) = router.clone().oneshot(request.map(axum::body::Body::from)).await;
        let status = answer.status().as_u16();
        let body = Limited::new(answer.into_body(), MAX_BYTES).collect().await.map_err(failed)?;
        Ok((status, body.to_bytes()))
    }

    async fn send_http(
        &self,
        client: &reqwest::Client,
        base: &Url,
        request: Request,
    ) -> Result<(u16, Bytes), CliError> {
        let failed = |source: Box<dyn std::error::Error + Send + Sync>| CliError::Unreachable {
            url: self.place(),
            source,
        };
        let uri = format!("{}{}", base.as_str().trim_end_matches('/'), request.path);
        let request = self.build(&uri, request).map_err(|error| failed(error.into()))?;
        let request = reqwest::Request::try_from(request).map_err(|error| failed(error.into()))?;
        let mut answer = client.execute(request).await.map_err(|error| failed(error.without_url().into()))?;
        let status = answer.status().as_u16();
        let mut body = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(|error| failed(error.without_url().into()))? {
            if body.len() + chunk.len() > MAX_BYTES {
                return Err(failed("the answer is larger than 256 MiB".into()));
            }
            body.extend_from_slice(&chunk);
        }
        Ok((status, body.into()))
    }

    fn build(&self, uri: &str, request: Request) -> http::Result<http::Request<Vec<u8>>> {
        let mut builder = http::Request::builder()
            .method(request.method)
            .uri(uri)
            .header(ACCEPT, "application/json")
            .header(USER_AGENT, AGENT)
            .header("x-haft-surface", "cli")
            .header(AUTHORIZATION, format!("Bearer {}", self.token.expose()));
        for (name, value) in request.headers {
            builder = builder.header(name, value);
        }
        match request.body {
            Body::Empty => builder.body(Vec::new()),
            Body::Json(value) => {
                builder.header(CONTENT_TYPE, "application/json").body(value.to_string().into_bytes())
            }
            Body::Text { content_type, text } => {
                builder.header(CONTENT_TYPE, content_type).body(text.into_bytes())
            }
        }
    }

    /// Lets go of the home folder.
    pub(crate) async fn close(self) {
        if let Way::Local { engine, .. } = self.way {
            engine.close().await;
        }
    }
}

/// Reads an answer: JSON that is no error.
pub(crate) fn read_answer(status: u16, body: &[u8], place: impl Fn() -> String) -> Result<Value, CliError> {
    let success = (200..300).contains(&status);
    if success && body.is_empty() {
        return Ok(Value::Null);
    }
    let Ok(answer) = serde_json::from_slice::<Value>(body) else {
        return Err(CliError::Answer { url: place(), status });
    };
    if success {
        return Ok(answer);
    }
    // The envelope of errors, or the outcome of a call that was refused.
    let Some(error) = answer.get("error").filter(|error| error.is_object()) else {
        return Err(CliError::Answer { url: place(), status });
    };
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
    Err(CliError::Api(Box::new(ApiError {
        status,
        code: text(error.get("code")).unwrap_or_default(),
        message: text(error.get("message")).unwrap_or_else(|| format!("HTTP status {status}")),
        details: error.get("details").cloned().unwrap_or_default(),
        request_id: text(answer.get("request_id")),
    })))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn answers_are_data_or_errors() {
        let read = |status, body: &str| read_answer(status, body.as_bytes(), || "here".to_owned());
        assert_eq!(
            read(200, r#"{"status":"success","data":1}"#).unwrap(),
            json!({"status":"success","data":1})
        );
        assert_eq!(read(204, "").unwrap(), Value::Null);
        for (status, body) in [(200, "<html>"), (502, "Bad Gateway"), (500, r#"{"oops":1}"#), (404, "")] {
            assert!(matches!(read(status, body), Err(CliError::Answer { .. })), "{status} {body}");
        }
        let body =
            r#"{"status":"error","error":{"code":"not_found","message":"m","details":[1]},"request_id":"r"}"#;
        let Err(CliError::Api(error)) = read(404, body) else { panic!("no API error") };
        assert_eq!(
            *error,
            ApiError {
                status: 404,
                code: "not_found".into(),
                message: "m".into(),
                details: json!([1]),
                request_id: Some("r".into()),
            }
        );
    }
}
