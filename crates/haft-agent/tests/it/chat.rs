//! OpenAI's chat completions, and servers that imitate them.

use haft_agent::model::{Prices, Provider, collect};
use serde_json::json;

use crate::harness::{
    AUTHORIZATION, Canned, KEY, brief, connected, model, play, request, seen_body, serve, settings,
};

#[tokio::test]
async fn streamed_and_whole_answers_are_the_same() {
    let expected = json!({
        "content": [
            {"text": "I will look – “twice”."},
            {"call": ["call_oslo", "get_weather", {"city": "Oslo"}]},
            {"call": ["call_rome", "get_weather", {"city": "Rome"}]},
        ],
        "usage": [82, 34, 64, 0, 10],
        "finish": "tool_calls",
    });
    for name in ["chat_stream.sse", "chat_whole.json"] {
        let answer = play(Provider::OpenAiChat, Canned::cassette(name)).await.unwrap();
        assert_eq!(brief(&answer), expected, "{name}");
        assert_eq!(answer.model, "the-model");
    }
}

#[tokio::test]
async fn ollama_sends_whole_calls_with_one_index() {
    let answer = play(Provider::Ollama, Canned::cassette("chat_ollama.sse")).await.unwrap();
    assert_eq!(
        brief(&answer),
        json!({
            "content": [
                {"reasoning": "Two cities.", "proof": null},
                {"call": ["call_a1", "get_weather", {"city": "Oslo"}]},
                {"call": ["call_b2", "get_weather", {"city": "Rome"}]},
            ],
            "usage": [165, 40, 0, 0, 0],
            "finish": "tool_calls",
        })
    );
}

/// No ids, no indexes, arguments as an object, arguments twice, broken arguments, two calls with one id, no `[DONE]`.
#[tokio::test]
async fn odd_servers_are_tolerated() {
    let answer = play(Provider::OpenAiCompatible, Canned::cassette("chat_odd.sse")).await.unwrap();
    assert_eq!(
        brief(&answer),
        json!({
            "content": [
                {"text": "Parts."},
                {"call": ["made", "first", {"city": "Oslo"}]},
                {"call": ["made", "second", {"n": 1}]},
                {"call": ["same", "third", "{\"broken\":"]},
                {"call": ["made", "fourth", {}]},
            ],
            "usage": [5, 6, 0, 0, 0],
            "finish": "tool_calls",
        })
    );
}

/// Several whole calls have one index and no ids.
#[tokio::test]
async fn calls_without_ids_are_told_apart_by_their_names() {
    let call = |city: &str| {
        let arguments = format!("{{\\\"city\\\":\\\"{city}\\\"}}");
        let function = format!(r#"{{"name":"get_weather","arguments":"{arguments}"}}"#);
        format!(
            "data: {{\"choices\":[{{\"delta\":{{\"tool_calls\":[{{\"index\":0,\"function\":{function}}}]}}}}]}}\n\n"
        )
    };
    let end = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\n";
    let stream = format!("{}{}{end}", call("Oslo"), call("Rome"));
    let answer = play(Provider::LlamaCpp, Canned::stream(stream)).await.unwrap();
    let cities: Vec<_> = answer.tool_calls().map(|call| call.arguments["city"].clone()).collect();
    assert_eq!(cities, ["Oslo", "Rome"]);
}

#[tokio::test]
async fn openrouter_sends_comments_reasoning_and_images() {
    let answer = play(Provider::OpenRouter, Canned::cassette("chat_openrouter.sse")).await.unwrap();
    assert_eq!(
        brief(&answer),
        json!({
            "content": [
                {"reasoning": "Thinking.", "proof": null},
                {"text": "A dot."},
                {"image": "data:image/png;base64,iVBORw0KGgo="},
            ],
            "usage": [7, 1300, 0, 0, 0],
            "finish": "stop",
        })
    );
}

#[tokio::test]
async fn requests_carry_the_key_the_tools_and_the_options() {
    let server = serve([Canned::cassette("chat_stream.sse")]).await;
    let mut request = request();
    (request.max_tokens, request.temperature) = (Some(100), Some(0.5));
    collect(model(&server, Provider::OpenAiCompatible).stream(&request)).await.unwrap();
    let seen = &server.seen()[0];
    assert_eq!((seen.method.as_str(), seen.target.as_str()), ("POST", "/v1/chat/completions"));
    assert_eq!(seen.headers[AUTHORIZATION], format!("Bearer {KEY}"));
    assert_eq!(
        seen_body(&server),
        json!({
            "model": "the-model",
            "messages": [
                {"role": "system", "content": "Be short."},
                {"role": "user", "content": "Weather in Oslo and Rome?"},
            ],
            "tools": [{
                "type": "function",
                "function": {
                    "name": "get_weather",
                    "description": "Current weather",
                    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
                },
            }],
            "tool_choice": "auto",
            "max_tokens": 100,
            "temperature": 0.5,
            "stream": true,
            "stream_options": {"include_usage": true},
        })
    );
}

#[tokio::test]
async fn configured_prices_give_a_cost() {
    let server = serve([Canned::cassette("chat_stream.sse")]).await;
    let mut settings = settings(&server, Provider::OpenAiChat);
    settings.prices = Some(Prices { cached: Some(0.5), ..Prices::new(2.0, 8.0) });
    let answer = collect(connected(&server, &settings).stream(&request())).await.unwrap();
    let cost = answer.cost.unwrap();
    assert!((cost.amount - (18.0 * 2.0 + 64.0 * 0.5 + 34.0 * 8.0) / 1e6).abs() < 1e-12, "{cost:?}");
}

#[tokio::test]
async fn an_empty_answer_is_an_answer() {
    let body = r#"{"choices":[{"message":{"role":"assistant","content":null},"finish_reason":"stop"}]}"#;
    let answer = play(Provider::Vllm, Canned::new(200, "application/json", body)).await.unwrap();
    assert!(answer.is_empty());
    let stream = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
    assert!(play(Provider::Vllm, Canned::stream(stream)).await.unwrap().is_empty());
}
