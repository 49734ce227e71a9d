//! Sends requests over HTTP or to the router in this process, and reads the responses.

use axum::Router;
use bytes::Bytes;
use haft_core::secret::Secret;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, USER_AGENT};
use http_body_util::{BodyExt as _, Limited};
use serde_json::Value;
use tower::ServiceExt as _;
use url::Url;

use super::events::EventStream;
use super::request::{Body, Request};
use crate::engine::Engine;
use crate::error::{ApiError, CliError};
use crate::progress::Progress;

/// The largest response.
const MAX_RESPONSE_BYTES: usize = 256 * 1024 * 1024;
/// The `User-Agent` of requests.
pub(super) const USER_AGENT_VALUE: &str = concat!("haft-cli/", env!("CARGO_PKG_VERSION"));

/// How requests reach the API.
enum Transport {
    /// To a running server.
    Http { client: reqwest::Client, base: Url },
    /// To the router in this process.
    Local { engine: Box<Engine>, router: Router },
}

/// A client of the API.
pub(crate) struct Client {
    transport: Transport,
    token: Secret,
    progress: Progress,
}

impl Client {
    /// Creates a client of a running server.
    pub(super) fn http(client: reqwest::Client, base: Url, token: Secret) -> Self {
        Self { transport: Transport::Http { client, base }, token, progress: Progress::default() }
    }

    /// Creates a client of the engine in this process.
    pub(super) async fn local(engine: Engine) -> Self {
        let token = engine.token();
        let router = engine.router().await;
        let transport = Transport::Local { engine: Box::new(engine), router };
        Self { transport, token, progress: Progress::default() }
    }

    /// Shows progress during requests.
    pub(super) fn with_progress(self, progress: Progress) -> Self {
        Self { progress, ..self }
    }

    /// Returns the progress display, for operations with several requests.
    pub(crate) fn progress(&self) -> &Progress {
        &self.progress
    }

    /// Returns the engine, if this process opened the home folder.
    pub(crate) fn engine(&self) -> Option<&Engine> {
        match &self.transport {
            Transport::Http { .. } => None,
            Transport::Local { engine, .. } => Some(engine),
        }
    }

    /// Returns where requests go, for messages.
    pub(crate) fn location(&self) -> String {
        match &self.transport {
            Transport::Http { base, .. } => base.as_str().trim_end_matches('/').to_owned(),
            Transport::Local { .. } => "this process".to_owned(),
        }
    }

    /// Sends a request and returns the `data` of its response.
    pub(crate) async fn data(&self, request: Request) -> Result<Value, CliError> {
        let mut response = self.send(request).await?;
        Ok(response.get_mut("data").map(Value::take).unwrap_or_default())
    }

    /// Sends a request and returns its whole response.
    pub(crate) async fn send(&self, request: Request) -> Result<Value, CliError> {
        let (status, body) = self.exchange(request).await?;
        read_response(status, &body, || self.location())
    }

    /// Sends a request and returns the bytes of its response.
    pub(crate) async fn bytes(&self, request: Request) -> Result<Bytes, CliError> {
        let (status, body) = self.exchange(request).await?;
        if (200..300).contains(&status) {
            return Ok(body);
        }
        // An error status is an error.
        read_response(status, &body, || self.location()).map(|_| Bytes::new())
    }

    /// Opens the stream of live events; `None` where there is no server to send any.
    pub(crate) async fn events(&self, topics: &str) -> Result<Option<EventStream>, CliError> {
        match self.transport {
            Transport::Local { .. } => Ok(None),
            Transport::Http { .. } => {
                self.stream(Request::get("/api/events").query("topics", topics)).await.map(Some)
            }
        }
    }

    /// Sends a request to a running server, whose response is a stream of events.
    pub(crate) async fn stream(&self, request: Request) -> Result<EventStream, CliError> {
        let Transport::Http { client, base } = &self.transport else {
            return Err(CliError::LocalRequest { source: "a stream needs a server".into() });
        };
        let failed = |source: Box<dyn std::error::Error + Send + Sync>| CliError::unreachable(base, source);
        let uri = format!("{}{}", base.as_str().trim_end_matches('/'), request.path);
        let request = self.build(&uri, request).map_err(|error| failed(error.into()))?;
        let mut request = reqwest::Request::try_from(request).map_err(|error| failed(error.into()))?;
        request.headers_mut().insert(ACCEPT, http::HeaderValue::from_static("text/event-stream"));
        let response = client.execute(request).await.map_err(|error| failed(error.without_url().into()))?;
        let status = response.status().as_u16();
        let is_stream = response
            .headers()
            .get(CONTENT_TYPE)
            .is_some_and(|media| media.as_bytes().starts_with(b"text/event-stream"));
        if response.status().is_success() && is_stream {
            return Ok(EventStream::new(response));
        }
        let body = response.bytes().await.map_err(|error| failed(error.without_url().into()))?;
        read_response(status, &body, || self.location())?;
        // An error status is an error; any other response is not the stream.
        Err(CliError::InvalidResponse { url: self.location(), status })
    }

    async fn exchange(&self, request: Request) -> Result<(u16, Bytes), CliError> {
        let text = request.purpose();
        let exchange = async {
            match &self.transport {
                Transport::Http { client, base } => self.send_http(client, base, request).await,
                Transport::Local { router, .. } => self.send_local(router, request).await,
            }
        };
        self.progress.during(text, exchange).await
    }

    async fn send_local(&self, router: &Router, request: Request) -> Result<(u16, Bytes), CliError> {
        let failed = |source| CliError::LocalRequest { source };
        let request = self.build(&request.path.clone(), request).map_err(|error| failed(error.into()))?;
        let Ok(response) = router.clone().oneshot(request.map(axum::body::Body::from)).await;
        let status = response.status().as_u16();
        let body = Limited::new(response.into_body(), MAX_RESPONSE_BYTES).collect().await.map_err(failed)?;
        Ok((status, body.to_bytes()))
    }

    async fn send_http(
        &self,
        client: &reqwest::Client,
        base: &Url,
        request: Request,
    ) -> Result<(u16, Bytes), CliError> {
        let failed = |source: Box<dyn std::error::Error + Send + Sync>| CliError::unreachable(base, source);
        let uri = format!("{}{}", base.as_str().trim_end_matches('/'), request.path);
        let request = self.build(&uri, request).map_err(|error| failed(error.into()))?;
        let request = reqwest::Request::try_from(request).map_err(|error| failed(error.into()))?;
        let mut response =
            client.execute(request).await.map_err(|error| failed(error.without_url().into()))?;
        let status = response.status().as_u16();
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| failed(error.without_url().into()))? {
            if body.len() + chunk.len() > MAX_RESPONSE_BYTES {
                return Err(failed("the response exceeds the limit of 256 MiB".into()));
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
            .header(USER_AGENT, USER_AGENT_VALUE)
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
            Body::Bytes { content_type, bytes } => builder.header(CONTENT_TYPE, content_type).body(bytes),
            Body::Text { content_type, text } => {
                builder.header(CONTENT_TYPE, content_type).body(text.into_bytes())
            }
        }
    }

    /// Closes the home folder, if this process opened it.
    pub(crate) async fn close(self) {
        if let Transport::Local { engine, .. } = self.transport {
            engine.close().await;
        }
    }
}

/// Parses a response; an error response is an error.
pub(crate) fn read_response(
    status: u16,
    body: &[u8],
    location: impl Fn() -> String,
) -> Result<Value, CliError> {
    let success = (200..300).contains(&status);
    if success && body.is_empty() {
        return Ok(Value::Null);
    }
    let Ok(response) = serde_json::from_slice::<Value>(body) else {
        return Err(CliError::InvalidResponse { url: location(), status });
    };
    if success {
        return Ok(response);
    }
    // The error envelope, or the outcome of a rejected call.
    let Some(error) = response.get("error").filter(|error| error.is_object()) else {
        return Err(CliError::InvalidResponse { url: location(), status });
    };
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
    Err(CliError::Api(Box::new(ApiError {
        status,
        code: text(error.get("code")).unwrap_or_default(),
        message: text(error.get("message")).unwrap_or_else(|| format!("HTTP status {status}")),
        details: error.get("details").cloned().unwrap_or_default(),
        request_id: text(response.get("request_id")),
        tool: None,
    })))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn responses_are_data_or_errors() {
        let read = |status, body: &str| read_response(status, body.as_bytes(), || "here".to_owned());
        assert_eq!(
            read(200, r#"{"status":"success","data":1}"#).unwrap(),
            json!({"status":"success","data":1})
        );
        assert_eq!(read(204, "").unwrap(), Value::Null);
        for (status, body) in [(200, "<html>"), (502, "Bad Gateway"), (500, r#"{"oops":1}"#), (404, "")] {
            assert!(matches!(read(status, body), Err(CliError::InvalidResponse { .. })), "{status} {body}");
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
                tool: None,
            }
        );
    }
}
