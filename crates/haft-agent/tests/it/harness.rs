//! What the tests share: cassettes, a server that plays them, and models that talk to it.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Response, StatusCode};
use haft_agent::model::{
    ConfiguredBy, ContentPart, Model, ModelEgress, ModelError, ModelRequest, ModelResponse, ModelSettings,
    Provider, RetryPolicy, ToolDefinition, collect, connect,
};
use haft_core::secret::Secret;
use haft_executors::egress::EgressRules;
use haft_runtime::clock::SystemClock;
use haft_testkit::upstream::{Upstream, axum};
use serde_json::{Value, json};

/// The key of every request.
pub(crate) const KEY: &str = "sk-live-0123456789";

/// Returns the folder of the tests.
pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")
}

/// Reads a recorded response.
pub(crate) fn cassette(name: &str) -> String {
    std::fs::read_to_string(folder().join("cassettes").join(name)).unwrap()
}

/// A response of the server.
#[derive(Debug, Clone)]
pub(crate) struct Canned {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: String,
}

impl Canned {
    pub(crate) fn new(status: u16, content_type: &str, body: impl Into<String>) -> Self {
        Self { status, headers: vec![("content-type", content_type.to_owned())], body: body.into() }
    }

    /// A streamed answer.
    pub(crate) fn stream(body: impl Into<String>) -> Self {
        Self::new(200, "text/event-stream; charset=utf-8", body)
    }

    /// A cassette, by its extension streamed or whole.
    pub(crate) fn cassette(name: &str) -> Self {
        match name.strip_suffix(".sse") {
            Some(_) => Self::stream(cassette(name)),
            None => Self::new(200, "application/json", cassette(name)),
        }
    }

    pub(crate) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    pub(crate) fn response(self) -> Response<Body> {
        let mut headers = HeaderMap::new();
        for (name, value) in self.headers {
            headers.insert(name, value.parse().unwrap());
        }
        let mut response = Response::new(Body::from(self.body));
        *response.status_mut() = StatusCode::from_u16(self.status).unwrap();
        *response.headers_mut() = headers;
        response
    }
}

/// Serves responses one after the other; the last one is repeated.
pub(crate) async fn serve(responses: impl IntoIterator<Item = Canned>) -> Upstream {
    let responses: Arc<Mutex<VecDeque<Canned>>> = Arc::new(Mutex::new(responses.into_iter().collect()));
    let router = Router::new().fallback(move || {
        let responses = Arc::clone(&responses);
        async move {
            let mut responses = responses.lock().unwrap();
            let next = responses.pop_front().unwrap();
            if responses.is_empty() {
                responses.push_back(next.clone());
            }
            next.response()
        }
    });
    Upstream::serve(router).await.unwrap()
}

/// Returns the settings of a model at a server, without retries.
pub(crate) fn settings(server: &Upstream, provider: Provider) -> ModelSettings {
    let mut settings = ModelSettings::new("the-model");
    settings.provider = Some(provider);
    settings.base_url = Some(server.url("/v1"));
    settings.credential = Some(Secret::new(KEY.to_owned()));
    settings.configured_by = ConfiguredBy::Platform;
    settings.retries =
        RetryPolicy { attempts: 0, backoff: Duration::from_millis(1), ..RetryPolicy::default() };
    settings
}

/// Connects to a server that the platform lists.
pub(crate) fn connected(server: &Upstream, settings: &ModelSettings) -> Arc<dyn Model> {
    let egress = ModelEgress::new(&EgressRules::default(), &[server.url("")], Arc::new(SystemClock));
    connect(settings, &egress.unwrap()).unwrap()
}

/// Returns a model at a server.
pub(crate) fn model(server: &Upstream, provider: Provider) -> Arc<dyn Model> {
    connected(server, &settings(server, provider))
}

/// Returns a request with a tool.
pub(crate) fn request() -> ModelRequest {
    let mut request = ModelRequest::user("Weather in Oslo and Rome?");
    request.system = Some("Be short.".to_owned());
    request.tools = vec![ToolDefinition {
        name: "get_weather".to_owned(),
        description: "Current weather".to_owned(),
        input_schema: json!({"type": "object", "properties": {"city": {"type": "string"}}}),
    }];
    request
}

/// Plays one response to a model.
pub(crate) async fn play(provider: Provider, response: Canned) -> Result<ModelResponse, ModelError> {
    let server = serve([response]).await;
    collect(model(&server, provider).stream(&request())).await
}

/// Returns what matters of an answer, with ids that haft made replaced.
pub(crate) fn brief(answer: &ModelResponse) -> Value {
    let content: Vec<Value> = answer
        .content
        .iter()
        .map(|part| match part {
            ContentPart::Text { text } => json!({"text": text}),
            ContentPart::Reasoning { text, proof } => json!({
                "reasoning": text,
                "proof": proof.as_ref().map(|proof| json!([proof.provider, proof.data, proof.redacted])),
            }),
            ContentPart::ToolCall(call) => {
                let made = call.id.len() == 37 && call.id.starts_with("call_");
                let id = if made { "made" } else { call.id.as_str() };
                json!({"call": [id, call.name, call.arguments]})
            }
            ContentPart::Image { source } => json!({"image": source.to_url()}),
            ContentPart::ToolResult(result) => panic!("{result:?}"),
        })
        .collect();
    let usage = answer.usage;
    json!({
        "content": content,
        "usage": [usage.input, usage.output, usage.cached, usage.cache_written, usage.reasoning],
        "finish": answer.finish,
    })
}

/// Returns the kind and the message of an error, which must not contain the key.
pub(crate) fn shown(error: &ModelError) -> String {
    let text = format!("{}: {error}", error.kind.as_str());
    assert!(!format!("{text} {error:?}").contains(KEY), "{text}");
    text
}

/// Returns the body of the first request that a server got.
pub(crate) fn seen_body(server: &Upstream) -> Value {
    serde_json::from_str(&server.seen()[0].body).unwrap()
}

/// The name of a header, as the server records it.
pub(crate) const AUTHORIZATION: &str = "authorization";
