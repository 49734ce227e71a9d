//! The other wire formats: OpenAI's Responses, Anthropic's Messages, Gemini.

use haft_agent::model::{Provider, collect};
use serde_json::json;

use crate::harness::{
    AUTHORIZATION, Canned, KEY, brief, connected, model, play, request, seen_body, serve, settings,
};

#[tokio::test]
async fn responses_streamed_and_whole() {
    let expected = json!({
        "content": [
            {
                "reasoning": "The city is known.\n\nCall the tool.",
                "proof": ["openai", "gAAAAABencrypted", false],
            },
            {"text": "I will look – “twice”."},
            {"call": ["call_oslo", "get_weather", {"city": "Oslo"}]},
        ],
        "usage": [82, 34, 64, 0, 10],
        "finish": "tool_calls",
    });
    for name in ["responses_stream.sse", "responses_whole.json"] {
        let answer = play(Provider::OpenAi, Canned::cassette(name)).await.unwrap();
        assert_eq!(brief(&answer), expected, "{name}");
    }
}

#[tokio::test]
async fn messages_streamed_and_whole() {
    let signature = "EqQBCgIYAhIM1gbcDa9GJwZA2b3hGgxBdjrkzLoky3dl1pk=";
    let expected = json!({
        "content": [
            {"reasoning": "The city is known.", "proof": ["anthropic", signature, false]},
            {"reasoning": "", "proof": ["anthropic", "EmwKAhgBEgy3va3pzix", true]},
            {"text": "I will look – “twice”."},
            {"call": ["toolu_01T1x1fJ34qAmk2tNTrN7Up6", "get_weather", {"city": "Oslo"}]},
            {"call": ["toolu_02NoArguments", "list_cities", {}]},
        ],
        "usage": [82, 89, 50, 20, 0],
        "finish": "tool_calls",
    });
    for name in ["anthropic_stream.sse", "anthropic_whole.json"] {
        let answer = play(Provider::Anthropic, Canned::cassette(name)).await.unwrap();
        assert_eq!(brief(&answer), expected, "{name}");
    }
}

#[tokio::test]
async fn gemini_streamed_and_whole() {
    let expected = json!({
        "content": [
            {"reasoning": "The city is known.", "proof": null},
            {"text": "I will look – “twice”."},
            {"call": ["fc-1", "get_weather", {"city": "Oslo"}]},
            {"call": ["made", "get_weather", {"city": "Rome"}]},
            {"image": "data:image/png;base64,iVBORw0KGgo="},
        ],
        "usage": [82, 34, 64, 0, 10],
        "finish": "tool_calls",
    });
    for name in ["gemini_stream.sse", "gemini_whole.json"] {
        let answer = play(Provider::Gemini, Canned::cassette(name)).await.unwrap();
        assert_eq!(brief(&answer), expected, "{name}");
        let signature = answer.tool_calls().next().unwrap().proof.clone().unwrap().data;
        assert_eq!(signature, "CpQBAVSoXO5");
    }
}

#[tokio::test]
async fn each_provider_has_its_path_and_its_header() {
    for (provider, cassette, streaming, target, header, value) in [
        (
            Provider::OpenAi,
            "responses_stream.sse",
            true,
            "/v1/responses",
            AUTHORIZATION,
            format!("Bearer {KEY}"),
        ),
        (Provider::Anthropic, "anthropic_stream.sse", true, "/v1/messages", "x-api-key", KEY.to_owned()),
        (
            Provider::Anthropic,
            "anthropic_whole.json",
            false,
            "/v1/messages",
            "anthropic-version",
            "2023-06-01".to_owned(),
        ),
        (
            Provider::Gemini,
            "gemini_stream.sse",
            true,
            "/v1/models/the-model:streamGenerateContent?alt=sse",
            "x-goog-api-key",
            KEY.to_owned(),
        ),
        (
            Provider::Gemini,
            "gemini_whole.json",
            false,
            "/v1/models/the-model:generateContent",
            "x-goog-api-key",
            KEY.to_owned(),
        ),
    ] {
        let server = serve([Canned::cassette(cassette)]).await;
        let mut settings = settings(&server, provider);
        settings.streaming = streaming;
        collect(connected(&server, &settings).stream(&request())).await.unwrap();
        let seen = &server.seen()[0];
        assert_eq!((seen.target.as_str(), &seen.headers[header]), (target, &value));
        let is_streamed = seen_body(&server).get("stream").is_some();
        assert_eq!(is_streamed, streaming && provider != Provider::Gemini, "{provider}");
    }
}

/// An answer goes back to the provider that gave it with its proofs, and to others without them.
#[tokio::test]
async fn answers_can_be_sent_back() {
    let answer = play(Provider::Anthropic, Canned::cassette("anthropic_stream.sse")).await.unwrap();
    let mut request = request();
    request.messages.push(answer.into_message());
    for (provider, cassette, has_signature) in [
        (Provider::Anthropic, "anthropic_stream.sse", true),
        (Provider::OpenAi, "responses_stream.sse", false),
        (Provider::OpenAiChat, "chat_stream.sse", false),
        (Provider::Gemini, "gemini_stream.sse", false),
    ] {
        let server = serve([Canned::cassette(cassette)]).await;
        collect(model(&server, provider).stream(&request)).await.unwrap();
        let body = server.seen()[0].body.clone();
        assert_eq!(
            body.contains("EqQBCgIYAhIM1gbcDa9GJwZA2b3hGgxBdjrkzLoky3dl1pk="),
            has_signature,
            "{provider}"
        );
        assert!(body.contains("toolu_01T1x1fJ34qAmk2tNTrN7Up6"), "{provider}");
    }
}
