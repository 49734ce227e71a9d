//! Retries, and a second model.

use std::sync::Arc;
use std::time::{Duration, Instant};

use haft_agent::model::{Fallback, Model, ModelErrorKind, Provider, RetryPolicy, Retrying, collect};

use crate::harness::{Canned, brief, connected, model, request, serve, settings, shown};

fn limited() -> Canned {
    Canned::new(429, "application/json", r#"{"error":{"message":"slow down"}}"#)
}

fn policy(attempts: u32) -> RetryPolicy {
    RetryPolicy { attempts, backoff: Duration::from_millis(5), max_wait: Duration::from_secs(2) }
}

/// Returns the outcome of one request and the number of requests that the server saw.
async fn attempt(attempts: u32, responses: Vec<Canned>) -> (String, usize) {
    let server = serve(responses).await;
    let mut settings = settings(&server, Provider::OpenAiChat);
    settings.retries = policy(attempts);
    let answer = collect(connected(&server, &settings).stream(&request())).await;
    let outcome = answer.map_or_else(|error| error.kind.as_str().to_owned(), |answer| answer.text());
    (outcome, server.seen().len())
}

#[tokio::test]
async fn temporary_errors_are_retried() {
    let good = Canned::cassette("chat_stream.sse");
    let text = "I will look – “twice”.";
    let overloaded = Canned::new(503, "text/plain", "");
    assert_eq!(attempt(2, vec![limited(), overloaded.clone(), good.clone()]).await, (text.to_owned(), 3));
    assert_eq!(
        attempt(2, vec![Canned::new(500, "text/html", "<html>"), good.clone()]).await,
        (text.to_owned(), 2)
    );
    assert_eq!(
        attempt(1, vec![overloaded.clone(), overloaded, good.clone()]).await,
        ("overloaded".to_owned(), 2)
    );
    assert_eq!(attempt(0, vec![limited(), good.clone()]).await, ("rate_limited".to_owned(), 1));
    assert_eq!(attempt(2, vec![Canned::stream(""), good.clone()]).await, (text.to_owned(), 2));
    // Errors that stay are not retried.
    let refused = Canned::new(401, "application/json", "{}");
    assert_eq!(attempt(2, vec![refused, good.clone()]).await, ("auth".to_owned(), 1));
    // Neither is an answer that has begun.
    let half = Canned::stream("data: {\"choices\":[{\"delta\":{\"content\":\"Hel\"}}]}\n\n");
    assert_eq!(attempt(2, vec![half, good]).await, ("broken_stream".to_owned(), 1));
}

#[tokio::test]
async fn the_requested_wait_is_respected_and_bounded() {
    let good = Canned::cassette("chat_stream.sse");
    let before = Instant::now();
    let (_, requests) = attempt(1, vec![limited().header("retry-after", "1"), good.clone()]).await;
    assert_eq!(requests, 2);
    assert!(before.elapsed() >= Duration::from_secs(1));
    let before = Instant::now();
    let (outcome, requests) = attempt(1, vec![limited().header("retry-after", "60"), good]).await;
    assert_eq!((outcome.as_str(), requests), ("rate_limited", 1));
    assert!(before.elapsed() < Duration::from_secs(1));
}

#[tokio::test]
async fn a_second_model_answers_if_the_first_fails() {
    let bad = serve([Canned::new(401, "application/json", "{}")]).await;
    let good = serve([Canned::cassette("anthropic_stream.sse")]).await;
    let mut second = settings(&good, Provider::Anthropic);
    second.name = "second".to_owned();
    let fallback = Fallback::new(model(&bad, Provider::OpenAi), connected(&good, &second));
    assert_eq!(fallback.name(), "the-model");
    let answer = collect(fallback.stream(&request())).await.unwrap();
    assert_eq!(answer.model, "second");
    assert_eq!(brief(&answer)["finish"], "tool_calls");
    // The error of the second model is the last one.
    let both = Fallback::new(connected(&bad, &second), model(&bad, Provider::OpenAi));
    let error = collect(both.stream(&request())).await.unwrap_err();
    assert!(shown(&error).starts_with("auth: the-model: "), "{error}");
    // An answer that has begun is not given again by another model.
    let half = serve([Canned::stream("data: {\"choices\":[{\"delta\":{\"content\":\"Hel\"}}]}\n\n")]).await;
    let fallback = Fallback::new(model(&half, Provider::OpenAiChat), connected(&good, &second));
    let error = collect(fallback.stream(&request())).await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::BrokenStream);
    assert_eq!(good.seen().len(), 1);
}

#[tokio::test]
async fn wrappers_combine() {
    let server = serve([limited(), limited(), limited(), Canned::cassette("chat_stream.sse")]).await;
    let first: Arc<dyn Model> = Arc::new(Retrying::new(model(&server, Provider::OpenAiChat), policy(1)));
    let second: Arc<dyn Model> = Arc::new(Retrying::new(model(&server, Provider::OpenAiChat), policy(1)));
    collect(Fallback::new(first, second).stream(&request())).await.unwrap();
    assert_eq!(server.seen().len(), 4);
}
