//! Policy rules: storing, rejecting and explaining them.

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Server, code, function_tool, send};

async fn token_of(server: &Server, body: Value) -> String {
    let (status, answer) = server.post("/api/tokens", body).await;
    assert_eq!(status, 201, "{answer}");
    answer["data"]["token"].as_str().unwrap().to_owned()
}

fn large_payments() -> Value {
    json!({"rules": [{
        "name": "large-payments",
        "match": {"tools": ["pay"], "roles": ["caller"]},
        "when": "has(args.amount) && args.amount > 100",
        "effect": "approve",
        "reason": "payments above 100 need a second person",
        "examples": [
            {"tool": "pay", "args": {"amount": 250}, "expect": "match"},
            {"tool": "pay", "args": {"amount": 5}, "expect": "no_match"},
        ],
    }]})
}

#[tokio::test]
async fn rules_are_stored_and_survive_a_restart() {
    let server = Server::start().await;
    assert_eq!(server.get("/api/policy").await, (200, json!({"status": "success", "data": {"rules": []}})));
    let (status, answer) = server.put("/api/policy", large_payments()).await;
    assert_eq!((status, &answer["data"]), (200, &large_payments()));
    let yaml = "rules:\n  # no shell\n  - name: no-exec\n    match: {tools: [exec]}\n    effect: deny\n";
    let request = server.request(Method::PUT, "/api/policy?scope=platform");
    let (status, answer) = send(request.header("content-type", "application/yaml").body(yaml)).await;
    assert_eq!(status, 200, "{answer}");
    let server = server.restart().await;
    assert_eq!(server.get("/api/policy").await.1["data"], large_payments());
    let (_, platform) = server.get("/api/policy?scope=platform").await;
    assert_eq!(platform["data"]["rules"][0]["name"], "no-exec");
    let (_, changes) = server.get("/api/audit?action=policy.put").await;
    let targets: Vec<_> =
        changes["data"]["records"].as_array().unwrap().iter().map(|one| &one["target"]).collect();
    assert_eq!(targets, ["platform", "default"], "{changes}");
    assert_eq!(server.put("/api/policy", json!({"rules": []})).await.0, 200);
    assert_eq!(server.get("/api/policy").await.1["data"], json!({"rules": []}));
}

#[tokio::test]
async fn invalid_rules_are_rejected_as_a_whole_and_the_old_ones_stay() {
    let server = Server::start().await;
    server.put("/api/policy", large_payments()).await;
    let mut failing = large_payments();
    failing["rules"][0]["examples"][1]["expect"] = json!("match");
    let nested = format!("{}1{}", "[".repeat(2000), "]".repeat(2000));
    let rule = |when: String| json!({"rules": [{"name": "r", "when": when, "effect": "deny"}]});
    for (body, expected) in [
        (
            failing,
            "`rules[0].examples[1]`: rule `large-payments`, example 2: expected `match`, got `no_match`: `when` is false",
        ),
        (
            json!({"rules": [{"name": "r", "efect": "deny"}]}),
            "`rules[0].efect`: unknown field; did you mean `effect`?",
        ),
        (
            json!({"rules": [{"name": "r", "effect": "forbid"}]}),
            "`rules[0].effect`: unknown variant `forbid`",
        ),
        (rule("args.".to_owned()), "`rules[0].when`: rule `r`: syntax error at line 1, column 6"),
        (rule("true || arg.x".to_owned()), "unknown variable `arg`; did you mean `args`?"),
        (rule("1".repeat(1_000_000)), "the limit is 262144"),
        (rule("1".repeat(5000)), "the limit is 4096"),
        (rule(nested), "brackets are nested deeper than 32 levels"),
        (
            rule("args.a.all(x, x.all(y, y.all(z, z)))".to_owned()),
            "`all`, `exists` and `filter` are nested deeper than 2 levels",
        ),
        (json!([]), "expected an object such as"),
        (json!({}), "expected an object such as"),
    ] {
        let (status, answer) = server.put("/api/policy", body).await;
        assert_eq!((status, code(&answer)), (400, "invalid_request"), "{answer}");
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.contains(expected), "{message}");
        assert!(!answer["error"]["details"]["problems"].as_array().unwrap().is_empty());
    }
    let twice = r#"{"rules": [], "rules": []}"#;
    let (status, answer) = send(server.request(Method::PUT, "/api/policy").body(twice)).await;
    assert_eq!(status, 400, "{answer}");
    assert_eq!(server.get("/api/policy").await.1["data"], large_payments());
    let (status, _) = server.put("/api/policy?dry_run=true", json!({"rules": []})).await;
    assert_eq!((status, &server.get("/api/policy").await.1["data"]), (200, &large_payments()));
}

#[tokio::test]
async fn editors_explain_and_admins_change() {
    let server = Server::start().await;
    server.create(function_tool("pay", "echo")).await;
    let requests = [
        ("editor", Method::GET, "/api/policy", json!({})),
        ("editor", Method::POST, "/api/policy/explain", json!({"tool": "pay"})),
        ("editor", Method::PUT, "/api/policy?dry_run=true", large_payments()),
        ("admin", Method::PUT, "/api/policy", large_payments()),
        ("admin", Method::GET, "/api/policy?scope=platform", json!({})),
        ("admin", Method::PUT, "/api/policy?scope=platform", json!({"rules": []})),
    ];
    let roles = ["viewer", "caller", "editor", "admin"];
    for (rank, role) in roles.iter().enumerate() {
        let token =
            token_of(&server, json!({"name": role, "role": role, "platform": *role == "admin"})).await;
        for (needed, method, path, body) in &requests {
            let allowed = rank >= roles.iter().position(|role| role == needed).unwrap();
            let request = server.bare(method.clone(), path).bearer_auth(&token).body(body.to_string());
            let (status, answer) = send(request).await;
            assert_eq!(status, if allowed { 200 } else { 403 }, "{role} {method} {path} {answer}");
        }
    }
    assert_eq!(server.get("/api/policy?scope=world").await.0, 400);
}

/// Returns the effect, the rule, and why a rule was considered.
async fn explain(server: &Server, body: Value, rule: &str) -> (String, Value, String) {
    let (status, answer) = server.post("/api/policy/explain", body).await;
    assert_eq!(status, 200, "{answer}");
    let data = &answer["data"];
    let considered = data["considered"].as_array().unwrap();
    let why =
        considered.iter().find(|one| one["rule"] == rule).map_or("", |one| one["why"].as_str().unwrap());
    (data["effect"].as_str().unwrap().to_owned(), data["rule"].clone(), why.to_owned())
}

#[tokio::test]
async fn an_explanation_names_the_rule_and_why_others_do_not_match() {
    let server = Server::start().await;
    server.create(function_tool("pay", "echo")).await;
    server.put("/api/policy", large_payments()).await;
    let call =
        |amount: Value, role: &str| json!({"tool": "pay", "args": {"amount": amount}, "as": {"role": role}});
    let rule = "large-payments";
    assert_eq!(
        explain(&server, call(json!(250), "caller"), rule).await,
        ("approve".to_owned(), json!(rule), "`match` matches and `when` is true".to_owned())
    );
    assert_eq!(
        explain(&server, call(json!(5), "caller"), rule).await,
        ("allow".to_owned(), Value::Null, "`when` is false".to_owned())
    );
    assert_eq!(
        explain(&server, call(json!("x"), "caller"), rule).await,
        (
            "approve".to_owned(),
            json!(rule),
            "`when` failed: found no matching overload for '_>_' applied to '(string, int)'; for effect `approve` this \
             counts as a match"
                .to_owned()
        )
    );
    assert_eq!(
        explain(&server, call(json!(250), "editor"), rule).await,
        ("allow".to_owned(), Value::Null, "`match.roles` does not match the role `editor`".to_owned())
    );
    let (_, answer) = server.post("/api/policy/explain", call(json!(250), "caller")).await;
    assert_eq!(answer["data"]["reason"], "payments above 100 need a second person");
    // Without `as`, it is about the caller itself: an admin.
    assert_eq!(explain(&server, json!({"tool": "pay", "args": {"amount": 250}}), rule).await.0, "allow");
    let platform = json!({"rules": [{"name": "no", "match": {"surfaces": ["mcp"]}, "effect": "deny"}]});
    server.put("/api/policy?scope=platform", platform).await;
    let from_mcp =
        json!({"tool": "pay", "args": {"amount": 250}, "as": {"role": "caller", "surface": "mcp"}});
    assert_eq!(explain(&server, from_mcp, rule).await.1, "platform:no");
}

#[tokio::test]
async fn an_explanation_includes_the_checks_besides_the_rules() {
    let server = Server::start().await;
    let mut risky = function_tool("risky", "echo");
    risky["requires_confirmation"] = json!(true);
    server.create(risky).await;
    server.create(function_tool("off", "echo")).await;
    server.patch("/api/tools/off", json!({"enabled": false})).await;
    token_of(&server, json!({"name": "raised", "elevated": true})).await;
    let of = |tool: &str, caller: Value| json!({"tool": tool, "as": caller});
    for (body, effect, rule, why) in [
        (
            of("risky", json!({"role": "viewer"})),
            "deny",
            "built-in:role",
            "the role `viewer` may not call tools",
        ),
        (
            of("off", json!({"role": "caller"})),
            "deny",
            "built-in:state",
            "`user-created:off@1.0.0` is disabled",
        ),
        (
            of("risky", json!({"role": "caller"})),
            "approve",
            "built-in:tool",
            "the tool has `requires_confirmation: true`, and the caller is not elevated",
        ),
    ] {
        let expected = (effect.to_owned(), json!(rule), why.to_owned());
        assert_eq!(explain(&server, body, rule).await, expected);
    }
    let elevated = "the tool has `requires_confirmation: true`, and the caller is elevated";
    for caller in [json!({"token": "raised"}), json!({"role": "caller", "elevated": true})] {
        let found = explain(&server, of("risky", caller), "built-in:tool").await;
        assert_eq!(found, ("allow".to_owned(), Value::Null, elevated.to_owned()));
    }
    let allow = json!({"rules": [{"name": "trusted", "match": {"tokens": ["ci"]}, "effect": "allow"}]});
    server.put("/api/policy", allow).await;
    let trusted = of("risky", json!({"token": "ci", "role": "caller"}));
    let (effect, rule, why) = explain(&server, trusted, "built-in:tool").await;
    assert_eq!((effect.as_str(), rule), ("allow", json!("trusted")));
    assert_eq!(why, "the tool has `requires_confirmation: true`, but the rule `trusted` allows the call");
}

#[tokio::test]
async fn bad_requests_for_an_explanation_name_the_problem() {
    let server = Server::start().await;
    server.create(function_tool("pay", "echo")).await;
    for (body, status, expected) in [
        (json!({}), 400, "missing field `tool`"),
        (json!({"tool": "nope"}), 404, "tool `nope` not found"),
        (json!({"tool": "pay", "as": {"token": "nope"}}), 404, "add `role` to explain"),
        (json!({"tool": "pay", "as": {"role": "king"}}), 400, "`as.role`: unknown variant `king`"),
        (json!({"tool": "pay", "as": {"rol": "caller"}}), 400, "unknown field `rol`"),
        (json!({"tool": "pay", "args": []}), 400, "`args`"),
        (json!({"tool": "pay", "as": {"tenant": "a b"}}), 400, "tenant `a b` contains ' '"),
        (json!({"tool": "pay", "as": {"tenant": "other"}}), 404, "tool `pay` not found"),
    ] {
        let (found, answer) = server.post("/api/policy/explain", body.clone()).await;
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(found == status && message.contains(expected), "{body}: {found} {message}");
    }
}
