//! Providers that refuse, fail, or answer something else.

use std::sync::Arc;

use futures_util::StreamExt as _;
use haft_agent::model::{ConfiguredBy, FinishReason, ModelEgress, Provider, collect, connect};
use haft_executors::egress::EgressRules;
use haft_runtime::clock::SystemClock;
use haft_testkit::upstream::{Upstream, read_head};
use serde_json::json;
use tokio::io::AsyncWriteExt as _;

use crate::harness::{Canned, KEY, cassette, model, play, request, serve, settings, shown};

async fn fail(provider: Provider, response: Canned) -> String {
    shown(&play(provider, response).await.unwrap_err())
}

#[tokio::test]
async fn statuses_become_kinds() {
    let json = "application/json";
    let echoed =
        format!(r#"{{"error":{{"message":"Incorrect API key provided: {KEY}.","code":"invalid_api_key"}}}}"#);
    let overloaded = r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
    for (provider, response, expected) in [
        (
            Provider::OpenAi,
            Canned::new(401, json, echoed),
            "auth: the-model: the provider rejected the API key; check the credential: Incorrect API key provided: ***.",
        ),
        (
            Provider::OpenAiChat,
            Canned::new(429, json, "{}").header("retry-after", "7"),
            "rate_limited: the-model: the rate limit of the provider is exceeded; retry in 7s: status 429: {}",
        ),
        (
            Provider::OpenAiChat,
            Canned::new(429, json, ""),
            "rate_limited: the-model: the rate limit of the provider is exceeded: status 429",
        ),
        (
            Provider::Anthropic,
            Canned::new(529, json, overloaded),
            "overloaded: the-model: the provider is overloaded: Overloaded",
        ),
        (
            Provider::Gemini,
            Canned::new(500, json, r#"{"error":{"code":500,"message":"Internal","status":"INTERNAL"}}"#),
            "server: the-model: the provider failed with status 500: Internal",
        ),
        (
            Provider::Ollama,
            Canned::new(404, json, r#"{"error":{"message":"model \"x\" not found, try pulling it first"}}"#),
            "not_found: the-model: not found; check the name of the model and `base_url`: model \"x\" not found, try pulling it first",
        ),
        (
            Provider::OpenAi,
            Canned::new(404, json, r#"{"error":{"message":"Not Found"}}"#),
            "not_found: the-model: not found; check the name of the model and `base_url`: Not Found; a server of chat completions needs `provider: openai_compatible`",
        ),
        (
            Provider::Ollama,
            Canned::new(502, "text/html", "<html><h1>Bad gateway</h1>"),
            "server: the-model: the provider failed with status 502: an HTML page with status 502",
        ),
        (
            Provider::Ollama,
            Canned::new(200, "text/html; charset=utf-8", "<html>Welcome</html>"),
            "invalid_response: the-model: the response is not in the format of the provider; check `provider` and `base_url`: an HTML page",
        ),
        (
            Provider::Ollama,
            Canned::new(200, json, r#"{"hello": "world"}"#),
            "invalid_response: the-model: the response is not in the format of the provider; check `provider` and `base_url`: no `choices`",
        ),
        (
            Provider::Anthropic,
            Canned::new(200, json, "not json"),
            "invalid_response: the-model: the response is not in the format of the provider; check `provider` and `base_url`: not valid JSON: expected ident at line 1 column 2",
        ),
    ] {
        assert_eq!(fail(provider, response).await, expected);
    }
}

#[tokio::test]
async fn errors_in_a_stream_end_it() {
    let start = "data: {\"choices\":[{\"delta\":{\"content\":\"Hel\"}}]}\n\n";
    let chat =
        format!("{start}data: {{\"error\":{{\"code\":502,\"message\":\"Provider disconnected\"}}}}\n\n");
    let server = serve([Canned::stream(chat)]).await;
    let mut events = model(&server, Provider::OpenRouter).stream(&request());
    let mut seen = Vec::new();
    while let Some(event) = events.next().await {
        seen.push(event.map_or_else(|error| shown(&error), |event| serde_json::to_string(&event).unwrap()));
    }
    assert_eq!(
        seen,
        [
            r#"{"type":"start","model":"the-model"}"#,
            r#"{"type":"text_delta","text":"Hel"}"#,
            "server: the-model: the provider failed with status 502: Provider disconnected",
        ]
    );
    let failed = r#"{"type":"response.failed","response":{"status":"failed","error":{"code":"server_error","message":"Sorry"}}}"#;
    assert_eq!(
        fail(Provider::OpenAi, Canned::stream(format!("event: response.failed\ndata: {failed}\n\n"))).await,
        "server: the-model: the provider failed with status 500: Sorry"
    );
}

#[tokio::test]
async fn a_blocked_prompt_is_a_refusal() {
    let blocked = json!({
        "promptFeedback": {"blockReason": "PROHIBITED_CONTENT"},
        "usageMetadata": {"promptTokenCount": 7, "totalTokenCount": 7},
    });
    for answer in [
        Canned::stream(format!("data: {blocked}\n\n")),
        Canned::new(200, "application/json", blocked.to_string()),
    ] {
        let answer = play(Provider::Gemini, answer).await.unwrap();
        assert_eq!(answer.text(), "the prompt was blocked: PROHIBITED_CONTENT");
        assert_eq!((answer.finish, answer.usage.input), (FinishReason::Refusal, 7));
    }
}

#[tokio::test]
async fn refusals_and_malformed_calls_are_not_normal_ends() {
    let event = |value: serde_json::Value| format!("data: {value}\n\n");
    let chat = |delta: serde_json::Value, reason: serde_json::Value| {
        event(json!({"choices": [{"delta": delta, "finish_reason": reason}]}))
    };
    let openai = chat(json!({"refusal": "I can't"}), json!(null)) + &chat(json!({}), json!("stop"));
    let responses = event(json!({"type": "response.refusal.delta", "output_index": 0, "delta": "I can't"}))
        + &event(json!({"type": "response.completed", "response": {"status": "completed"}}));
    let anthropic = event(
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "I can't"}}),
    ) + &event(json!({"type": "message_delta", "delta": {"stop_reason": "refusal"}}))
        + &event(json!({"type": "message_stop"}));
    let gemini = |reason: &str| {
        let parts = json!([{"text": "I can't"}]);
        event(json!({"candidates": [{"content": {"parts": parts}, "finishReason": reason}]}))
    };
    for (provider, stream, expected) in [
        (Provider::OpenAiChat, openai, FinishReason::Refusal),
        (Provider::OpenAi, responses, FinishReason::Refusal),
        (Provider::Anthropic, anthropic, FinishReason::Refusal),
        (Provider::Gemini, gemini("SAFETY"), FinishReason::ContentFilter),
        (Provider::Gemini, gemini("MALFORMED_FUNCTION_CALL"), FinishReason::MalformedCall),
    ] {
        let answer = play(provider, Canned::stream(stream)).await.unwrap();
        assert_eq!((answer.text().as_str(), answer.finish), ("I can't", expected), "{provider:?}");
    }
}

/// Cuts every cassette at many places: the answer is complete or the error says that it was cut off.
#[tokio::test]
async fn half_a_stream_is_an_error() {
    for (provider, name) in [
        (Provider::OpenAiChat, "chat_stream.sse"),
        (Provider::OpenAi, "responses_stream.sse"),
        (Provider::Anthropic, "anthropic_stream.sse"),
        (Provider::Gemini, "gemini_stream.sse"),
    ] {
        let whole = cassette(name);
        // The end of a stream may be missing where the reason is known already.
        for cut in (0..whole.len() * 3 / 4).step_by(whole.len() / 9) {
            let body = &whole[..whole.floor_char_boundary(cut)];
            let error = play(provider, Canned::stream(body)).await.unwrap_err();
            assert_eq!(error.kind.as_str(), "broken_stream", "{name} at {cut}: {error}");
        }
    }
}

#[tokio::test]
async fn a_lost_connection_is_an_error() {
    let server = Upstream::raw(|mut stream| async move {
        read_head(&mut stream).await;
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
        let event = "data: {\"choices\":[{\"delta\":{\"content\":\"Hel\"}}]}\n\n";
        let _ = stream.write_all(format!("{head}{:x}\r\n{event}\r\n", event.len()).as_bytes()).await;
        // Dropped before the last chunk.
    })
    .await
    .unwrap();
    let error = collect(model(&server, Provider::Ollama).stream(&request())).await.unwrap_err();
    assert_eq!(error.kind.as_str(), "broken_stream", "{error}");
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let other = serve([Canned::cassette("chat_whole.json")]).await;
    let server = serve([Canned::new(307, "text/plain", "").header("location", other.url("/v1"))]).await;
    let error = collect(model(&server, Provider::OpenAiChat).stream(&request())).await.unwrap_err();
    assert_eq!(
        shown(&error),
        "redirected: the-model: the provider redirected the request, and the key is not sent elsewhere; correct `base_url`: status 307"
    );
    assert_eq!(other.seen(), []);
}

#[tokio::test]
async fn private_addresses_are_for_models_of_the_platform() {
    let server = serve([Canned::cassette("chat_whole.json")]).await;
    let listed = [server.url("/v1")];
    let rules = EgressRules::default();
    let outcome = async |listed: &[String], by: ConfiguredBy| {
        let egress = ModelEgress::new(&rules, listed, Arc::new(SystemClock)).unwrap();
        let mut settings = settings(&server, Provider::OpenAiCompatible);
        settings.configured_by = by;
        let model = connect(&settings, &egress).unwrap();
        collect(model.stream(&request())).await.map_or_else(|error| error.kind.as_str(), |_| "answered")
    };
    assert_eq!(outcome(&listed, ConfiguredBy::Platform).await, "answered");
    assert_eq!(outcome(&listed, ConfiguredBy::Tenant).await, "refused_address");
    assert_eq!(outcome(&[], ConfiguredBy::Platform).await, "refused_address");
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn nobody_listens() {
    let server = serve([Canned::cassette("chat_whole.json")]).await;
    let ollama = model(&server, Provider::Ollama);
    let model = model(&server, Provider::OpenAiCompatible);
    drop(server);
    // The port is closed once the task of the server has ended.
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    let error = collect(model.stream(&request())).await.unwrap_err();
    assert!(
        shown(&error).starts_with("connect: the-model: connection failed; check `base_url`: "),
        "{error}"
    );
    assert!(error.to_string().contains("; no server responds at http://127.0.0.1:"), "{error}");
    let error = collect(ollama.stream(&request())).await.unwrap_err();
    assert!(error.to_string().ends_with("; start it with `ollama serve`"), "{error}");
}
