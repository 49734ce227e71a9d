use super::*;
use crate::name::ToolName;
use serde_json::json;

fn spec(implementation: Value) -> ToolSpec {
    ToolSpec::new(ToolName::new("t").unwrap(), serde_json::from_value(implementation).unwrap())
}

#[test]
fn literals_are_masked_and_references_shown() {
    let before = spec(json!({
        "type": "http", "url": "https://api.example.com/v1?q=${q}", "method": "POST",
        "headers": {"Authorization": "Bearer ${KEY}", "X-Api-Key": "abc123", "Accept": "text/plain"},
        "auth": {"type": "api_key", "name": "key", "value": "literal", "in": "query"},
    }));
    let shown = serde_json::to_value(&masked(&before).implementation).unwrap();
    assert_eq!(
        shown,
        json!({
            "type": "http", "url": "https://api.example.com/v1?q=${q}", "method": "POST",
            "headers": {"Authorization": "Bearer ${KEY}", "X-Api-Key": "***", "Accept": "text/plain"},
            "auth": {"type": "api_key", "name": "key", "value": "***", "in": "query"},
        })
    );
    assert!(has_literal_secret(&before));
    let mut written_back = masked(&before);
    assert_eq!(restore(&mut written_back, Some(&before)), Vec::<String>::new());
    assert_eq!(written_back, before);
    assert_eq!(
        restore(&mut masked(&before), None),
        ["implementation.headers.X-Api-Key", "implementation.auth.value"]
    );
}

#[test]
fn specs_without_secrets_are_unchanged() {
    let before = spec(json!({
        "type": "http", "url": "https://x.example",
        "auth": {"type": "oauth2", "token_url": "https://x.example/token", "client_id": "me",
                 "client_secret": "${SECRET}"},
    }));
    assert_eq!(masked(&before), before);
    assert!(!has_literal_secret(&before));
}

/// A tool with secrets in every place, and the same as it is shown.
fn everywhere() -> (ToolSpec, Value) {
    let before = json!({
        "type": "http", "url": "https://a.example/?api_key=k1&q=x#key=f", "templates": "braces",
        "headers": {"X-Signature": "s1", "X-Session": "s2", "X-Auth": "s3", "X-Key": "s4", "Accept": "text/csv"},
        "query": {"sig": "s5", "page": "1"},
        "auth": {"type": "oauth2", "token_url": "https://id.example/t?client_key=k2", "client_id": "me",
                 "client_secret": "s6"},
        "steps": [
            {"name": "one", "headers": {"Authorization": "Basic ${USER}:hunter2"}},
            {"name": "two", "url": "https://b.example/x", "headers": {"Cookie": "s7", "X-Token": "Bearer {{t}}"}},
        ],
    });
    let shown = json!({
        "type": "http", "url": "https://a.example/?api_key=***&q=x#key=f", "templates": "braces",
        "headers": {"X-Signature": "***", "X-Session": "***", "X-Auth": "***", "X-Key": "***", "Accept": "text/csv"},
        "query": {"sig": "***", "page": "1"},
        "auth": {"type": "oauth2", "token_url": "https://id.example/t?client_key=***", "client_id": "me",
                 "client_secret": "***"},
        "steps": [
            {"name": "one", "headers": {"Authorization": "***"}},
            {"name": "two", "url": "https://b.example/x", "headers": {"Cookie": "***", "X-Token": "Bearer {{t}}"}},
        ],
    });
    (spec(before), shown)
}

#[test]
fn secrets_are_masked_everywhere_and_restored() {
    let (before, shown) = everywhere();
    let masked = masked(&before);
    assert_eq!(serde_json::to_value(&masked.implementation).unwrap(), shown);
    let mut written_back = masked;
    assert_eq!(restore(&mut written_back, Some(&before)), Vec::<String>::new());
    assert_eq!(written_back, before);
}

#[test]
fn a_mask_does_not_follow_to_another_server() {
    let (before, shown) = everywhere();
    let lost = |change: &dyn Fn(&mut Value)| {
        let mut now = shown.clone();
        change(&mut now);
        restore(&mut spec(now), Some(&before)).join(" ").replace("implementation.", "")
    };
    assert_eq!(lost(&|now| now["url"] = json!("HTTPS://A.example:443/y?api_key=***")), "");
    let shared = "headers.X-Auth headers.X-Key headers.X-Session headers.X-Signature query.sig";
    for url in [
        "https://evil.example/?api_key=***",
        "http://a.example/?api_key=***",
        "https://a.example:444/?api_key=***",
        "https://a.example.evil.example/?api_key=***",
        "https://a.example${x}/?api_key=***",
        "https:///evil.example/?api_key=***",
        "https://a.example\\@evil.example/?api_key=***",
    ] {
        let found = lost(&|now| now["url"] = json!(url));
        let same = url.contains('\\');
        for place in shared.split(' ').chain(["auth.client_secret", "steps[0].headers.Authorization", "url"])
        {
            // A backslash ends the host as a slash does, so that URL still leads to the same server.
            assert_eq!(found.split(' ').any(|other| other == place), !same, "{url} {place}");
        }
        assert!(!found.contains("steps[1]"), "{url} {found}");
    }
    let added = lost(&|now| now["steps"][0]["url"] = json!("https://evil.example"));
    assert!(added.contains("headers.X-Key") && added.contains("auth.client_secret"), "{added}");
    assert_eq!(
        lost(&|now| now["auth"]["token_url"] = json!("https://evil.example/t?client_key=***")),
        "auth.token_url auth.client_secret"
    );
    // Steps are known by their names, not by their places.
    assert_eq!(lost(&|now| now["steps"].as_array_mut().unwrap().reverse()), "");
    assert_eq!(lost(&|now| now["steps"][1]["name"] = json!("other")), "steps[1].headers.Cookie");
    assert_eq!(lost(&|now| now["steps"][1]["url"] = json!("https://a.example/")), "steps[1].headers.Cookie");
}

#[test]
fn a_mask_does_not_follow_to_another_mcp_server() {
    let mcp = |url: &str, token: &str| json!({"type": "mcp", "tool_name": "t", "server_url": url, "headers": {"Authorization": token}});
    let before = spec(mcp("https://a.example/mcp", "s"));
    let lost = |url: &str| restore(&mut spec(mcp(url, "***")), Some(&before));
    assert_eq!(lost("https://a.example/other"), Vec::<String>::new());
    assert_eq!(lost("https://b.example/mcp"), ["implementation.headers.Authorization"]);
    let mut http =
        spec(json!({"type": "http", "url": "https://a.example/mcp", "headers": {"Authorization": "***"}}));
    assert_eq!(restore(&mut http, Some(&before)), ["implementation.headers.Authorization"]);
}

#[test]
fn what_counts_as_literal() {
    for (text, expected) in [
        ("", false),
        ("Bearer ${KEY}", false),
        ("Token {{key}}", false),
        ("${USER}:${PASS}", false),
        ("session=${S}; id={{id}}", false),
        ("hunter2", true),
        ("Bearer abc", true),
        ("Basic ${USER}:hunter2", true),
        ("session=${S}; theme=dark", true),
        ("dXNlcjpwYXNz=", true),
        ("${OPEN", true),
    ] {
        assert_eq!(is_literal(text), expected, "{text}");
    }
}

#[test]
fn keys_are_told_from_names_of_credentials() {
    for name in [
        "ANTHROPIC_API_KEY",
        "openai",
        "team-1.key_2",
        "sk",
        "AIza",
        "a1b2c3",
        "production-europe-west-key-2",
    ] {
        assert!(!looks_like_key(name), "{name}");
    }
    for key in [
        "sk-ant-api03-abc",
        " ghp_0123456789",
        "Bearer abc",
        "a1b2c3d4e5f6a1b2c3d4e5f6a1b2",
        "x.a1b2c3d4e5f6a1b2c3d4e5f6a1b2",
    ] {
        assert!(looks_like_key(key), "{key}");
    }
}
