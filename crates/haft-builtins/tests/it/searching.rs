//! `web_search` against fake providers.

use haft_core::outcome::ErrorCode;
use haft_testkit::upstream::Upstream;
use haft_testkit::upstream::axum::Router;
use haft_testkit::upstream::axum::http::StatusCode;
use haft_testkit::upstream::axum::routing::{get, post};
use serde_json::{Value, json};

use crate::harness::{Harness, Setup};

const SERPER: &str = r#"{"searchParameters": {"q": "rust", "type": "search"},
 "organic": [{"title": "Rust", "link": "https://rust-lang.org/", "snippet": "A language", "position": 1},
             {"title": "Bad", "link": "javascript:alert(1)", "snippet": "x"}], "credits": 1}"#;
const BRAVE: &str = r#"{"type": "search", "web": {"type": "search", "results": [
 {"title": "Rust &amp; you", "url": "https://rust-lang.org/", "description": "A <strong>language</strong>", "language": "en"}]}}"#;
const SEARXNG: &str = r#"{"query": "rust", "number_of_results": 0, "results": [
 {"url": "https://rust-lang.org/", "title": "Rust", "content": "A language", "engine": "x", "score": 1.0}], "answers": []}"#;

async fn upstream() -> Upstream {
    let json = |text: &'static str| ([("content-type", "application/json")], text);
    let router = Router::new()
        .route("/serper", post(move || async move { json(SERPER) }))
        .route("/brave", get(move || async move { json(BRAVE) }))
        .route("/searx/search", get(move || async move { json(SEARXNG) }))
        .route("/html/search", get(|| async { "<html>" }))
        .route("/denied", post(|| async { (StatusCode::FORBIDDEN, "the key tenant-key is not valid") }));
    Upstream::serve(router).await.unwrap()
}

async fn search(setup: Setup<'_>, args: Value) -> Result<Value, (ErrorCode, String)> {
    Harness::new(&setup).call("web_search", args).await.map_err(|error| (error.code, error.message))
}

#[tokio::test]
async fn all_providers_return_the_same_format() {
    let upstream = upstream().await;
    let result =
        |title: &str| json!({"title": title, "url": "https://rust-lang.org/", "snippet": "A language"});
    let credential = |provider: &str, path: &str| {
        json!({"provider": provider, "api_key": "tenant-key", "endpoint": upstream.url(path)}).to_string()
    };
    let query = json!({"query": " rust ", "count": 3});
    let serper = credential("serper", "/serper");
    assert_eq!(
        search(Setup { stored: &[("web_search", &serper)], ..Setup::default() }, query.clone()).await,
        Ok(json!({"provider": "serper", "results": [result("Rust")]}))
    );
    let brave = credential("brave", "/brave");
    assert_eq!(
        search(Setup { stored: &[("web_search", &brave)], ..Setup::default() }, query.clone()).await,
        Ok(json!({"provider": "brave", "results": [result("Rust & you")]}))
    );
    let searx = upstream.url("/searx/");
    assert_eq!(
        search(Setup { platform: &[("SEARXNG_URL", &searx)], ..Setup::default() }, query).await,
        Ok(json!({"provider": "searxng", "results": [result("Rust")]}))
    );
    let seen = upstream.seen();
    let shown: Vec<Value> = seen
        .iter()
        .map(|seen| {
            json!([
                seen.method,
                seen.target,
                seen.body,
                seen.headers.get("x-api-key"),
                seen.headers.get("x-subscription-token")
            ])
        })
        .collect();
    assert_eq!(
        shown,
        [
            json!(["POST", "/serper", r#"{"q":"rust","num":3}"#, "tenant-key", null]),
            json!(["GET", "/brave?q=rust&count=3", "", null, "tenant-key"]),
            json!(["GET", "/searx/search?q=rust&format=json", "", null, null]),
        ]
    );
}

#[tokio::test]
async fn credentials_have_a_precedence() {
    let upstream = upstream().await;
    let at = |key: &str, path: &str| json!({"token": key, "endpoint": upstream.url(path)}).to_string();
    let (first, second, third) = (at("first", "/serper"), at("second", "/serper"), at("third", "/serper"));
    let brave = at("brave-key", "/brave");
    let searx = upstream.url("/searx");
    let all =
        [("web_search", first.as_str()), ("serper", &second), ("SERPER_API_KEY", &third), ("brave", &brave)];
    let platform = [("SEARXNG_URL", searx.as_str())];
    for (stored, args, key) in [
        (&all[..], json!({"query": "x"}), "first"),
        (&all[1..], json!({"query": "x"}), "second"),
        (&all[2..], json!({"query": "x"}), "third"),
        (&all[3..], json!({"query": "x"}), "brave-key"),
        (&all, json!({"query": "x", "provider": "brave"}), "brave-key"),
        (&all, json!({"query": "x", "provider": "searxng"}), ""),
        (&[], json!({"query": "x"}), ""),
    ] {
        search(Setup { stored, platform: &platform, ..Setup::default() }, args.clone()).await.unwrap();
        let seen = upstream.seen().pop().unwrap();
        let sent = seen.headers.get("x-api-key").or(seen.headers.get("x-subscription-token"));
        assert_eq!(sent.map_or("", String::as_str), key, "{args}");
    }
}

#[tokio::test]
async fn the_key_of_a_definition_comes_first() {
    let upstream = upstream().await;
    let at = |key: &str| json!({"api_key": key, "endpoint": upstream.url("/serper")}).to_string();
    let (stored, company) = (at("stored"), at("company"));
    let harness = Harness::new(&Setup {
        stored: &[("web_search", &stored), ("company_search", &company), ("KEY", &at("of a name"))],
        ..Setup::default()
    });
    for (config, key) in [
        (json!({"api_key": at("literal"), "credentials_ref": "company_search"}), "literal"),
        (json!({"api_key": "${KEY}", "credentials_ref": "company_search"}), "of a name"),
        (json!({"credentials_ref": "company_search"}), "company"),
        (json!({"provider": "serper"}), "stored"),
    ] {
        let outcome = harness.call_configured("web_search", &config, json!({"query": "x"})).await;
        assert!(outcome.is_ok(), "{config}: {outcome:?}");
        let seen = upstream.seen().pop().unwrap();
        assert_eq!(seen.headers.get("x-api-key").map(String::as_str), Some(key), "{config}");
    }
    let config = json!({"credentials_ref": "nobody"});
    let error = harness.call_configured("web_search", &config, json!({"query": "x"})).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::SecretMissing);
    insta::assert_snapshot!(error.message, @"the definition references the credential `nobody`, which is not stored");
}

#[test]
fn the_config_of_a_definition_is_validated() {
    let harness = Harness::new(&Setup::default());
    let error = |name: &str, config: Value| {
        harness.configured(name, &config).err().map(|problem| problem.to_string())
    };
    for (name, config, expected) in [
        ("web_search", json!({"api_key": "k", "provider": "Brave"}), None),
        (
            "web_search",
            json!({"api_key": 7}),
            Some("`implementation.config.api_key`: expected a non-empty string"),
        ),
        (
            "web_search",
            json!({"provider": "altavista"}),
            Some("`implementation.config.provider`: expected `serper`, `brave` or `searxng`"),
        ),
        (
            "web_search",
            json!({"endpoint": "https://a.example"}),
            Some(
                "`implementation.config.endpoint`: unknown key; expected `api_key`, `credentials_ref` or `provider`",
            ),
        ),
        (
            "web_fetch",
            json!({"api_key": "k"}),
            Some("`implementation.config`: this function has no configuration; remove `config`"),
        ),
    ] {
        assert_eq!(error(name, config).as_deref(), expected, "{name}");
    }
}

#[tokio::test]
async fn errors_do_not_contain_the_key() {
    let upstream = upstream().await;
    let denied = json!({"api_key": "tenant-key", "endpoint": upstream.url("/denied")}).to_string();
    let (code, message) =
        search(Setup { stored: &[("serper", &denied)], ..Setup::default() }, json!({"query": "x"}))
            .await
            .unwrap_err();
    assert_eq!((code, message.contains("tenant-key")), (ErrorCode::HttpStatus, false), "{message}");
    let (code, message) = search(Setup::default(), json!({"query": "x"})).await.unwrap_err();
    assert_eq!(code, ErrorCode::SecretMissing);
    insta::assert_snapshot!(message, @"no search provider is configured; store a credential or set an environment variable: `SERPER_API_KEY`, `BRAVE_API_KEY`, `SEARXNG_URL`");
    let html = upstream.url("/html");
    let (code, message) =
        search(Setup { platform: &[("SEARXNG_URL", &html)], ..Setup::default() }, json!({"query": "x"}))
            .await
            .unwrap_err();
    assert_eq!(code, ErrorCode::InvalidResponse);
    assert!(message.contains("search.formats"), "{message}");
    for (stored, part) in [
        (("SEARXNG_URL", "no url"), "is not a valid URL"),
        (("SERPER_API_KEY", "a\nb"), "not allowed in headers"),
        // The key would be sent to another provider.
        (
            ("web_search", r#"{"provider": "google", "api_key": "k"}"#),
            "`provider` of the credential: unknown provider",
        ),
        (("WEB_SEARCH_PROVIDER", "altavista"), "`WEB_SEARCH_PROVIDER`: unknown provider"),
        (("WEB_SEARCH_PROVIDER", "brave"), "variable: `BRAVE_API_KEY`"),
    ] {
        let (_, message) =
            search(Setup { stored: &[stored], ..Setup::default() }, json!({"query": "x"})).await.unwrap_err();
        assert!(message.contains(part), "{message}");
    }
    let (code, _) = search(Setup::default(), json!({"query": "  "})).await.unwrap_err();
    assert_eq!(code, ErrorCode::InvalidArguments);
}
