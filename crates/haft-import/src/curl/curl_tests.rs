//! Commands as people paste them.

use serde_json::{Value, json};

use super::read;

/// Reads a command; returns the implementation and the properties of the arguments.
fn parts(command: &str) -> (Value, Value) {
    let tool = read(command, None).unwrap();
    tool.parse().unwrap_or_else(|problems| panic!("{command}: {problems:?}"));
    (tool.definition["implementation"].clone(), tool.definition["input_schema"]["properties"].clone())
}

fn codes(command: &str) -> Vec<String> {
    read(command, None).unwrap().warnings.into_iter().map(|warning| warning.code).collect()
}

#[test]
fn a_query_becomes_typed_arguments() {
    let (implementation, arguments) =
        parts("curl -s 'https://api.example.com/v1/users?page=2&active=true&q=a%20b&tag=x&tag=y' | jq .");
    assert_eq!(
        implementation,
        json!({
            "type": "http", "method": "GET", "url": "https://api.example.com/v1/users",
            "query": {"page": "${page}", "active": "${active}", "q": "${q}", "tag": "${tag}"},
        })
    );
    assert_eq!(
        arguments,
        json!({
            "page": {"type": "integer", "default": 2},
            "active": {"type": "boolean", "default": true},
            "q": {"type": "string", "default": "a b"},
            "tag": {"type": "array", "items": {"type": "string"}, "default": ["x", "y"]},
        })
    );
}

#[test]
fn a_json_body_becomes_typed_arguments() {
    let command = r#"curl -X PATCH https://x.test/items/7 -H "Content-Type: application/json" \
        --data '{"title": "A", "count": 2, "price": 1.5, "tags": ["a"], "nested": {"a": 1}, "password": "p"}'"#;
    let (implementation, arguments) = parts(command);
    assert_eq!(implementation["method"], "PATCH");
    assert_eq!(implementation["headers"], json!({"Content-Type": "application/json"}));
    assert_eq!(
        implementation["body"],
        json!({
            "title": "${title}", "count": "${count}", "price": "${price}", "tags": "${tags}", "nested": "${nested}",
            "password": "${X_PASSWORD}",
        })
    );
    assert_eq!(arguments["price"], json!({"type": "number", "default": 1.5}));
    assert_eq!(arguments["nested"], json!({"type": "object", "default": {"a": 1}}));
    assert_eq!(arguments.get("password"), None);
    assert_eq!(codes(command), ["replaced_credential"]);
}

#[test]
fn credentials_become_references_to_secrets() {
    let (implementation, _) = parts("curl https://api.github.com/user -H 'Authorization: Bearer ghp_secret'");
    assert_eq!(implementation["auth"], json!({"type": "bearer", "token": "${GITHUB_TOKEN}"}));
    let (implementation, _) = parts("curl https://api.github.com/user -H \"Authorization: Bearer $TOKEN\"");
    assert_eq!(implementation["auth"], json!({"type": "bearer", "token": "${TOKEN}"}));
    let (implementation, _) = parts("curl -u ada:pw https://api.github.com/user");
    assert_eq!(
        implementation["auth"],
        json!({"type": "basic", "username": "ada", "password": "${GITHUB_PASSWORD}"})
    );
    for command in [
        "curl -u sk_test_4eC39: https://api.stripe.com/v1/charges",
        "curl https://sk_test_4eC39:@api.stripe.com/v1/charges",
    ] {
        let (implementation, _) = parts(command);
        assert_eq!(
            implementation["auth"],
            json!({"type": "basic", "username": "${STRIPE_KEY}", "password": ""}),
            "{command}"
        );
    }
    let (implementation, _) = parts("curl -u $KEY: https://api.stripe.com/v1/charges");
    assert_eq!(implementation["auth"]["username"], "${KEY}");
    let (implementation, _) = parts("curl https://ada:pw@api.github.com/user");
    assert_eq!(implementation["url"], "https://api.github.com/user");
    let (implementation, _) = parts(
        "curl 'https://x.test/?api_key=abc' -H 'X-Api-Key: k' -b 'session=s' -H 'Authorization: Token t'",
    );
    assert_eq!(implementation["query"], json!({"api_key": "${X_API_KEY}"}));
    assert_eq!(
        implementation["headers"],
        json!({"X-Api-Key": "${X_X_API_KEY}", "Cookie": "${X_COOKIE}", "Authorization": "Token ${X_AUTHORIZATION}"})
    );
    for command in [
        "curl https://x.test -H 'Authorization: Bearer SECRET'",
        "curl -u ada:SECRET https://x.test",
        "curl -u SECRET: https://x.test",
        "curl https://ada:SECRET@x.test",
        "curl 'https://x.test/?token=SECRET'",
        "curl https://x.test -d token=SECRET",
        "curl https://x.test --json '{\"secret\": \"SECRET\"}'",
    ] {
        let tool = read(command, None).unwrap();
        assert!(!format!("{tool:?}").contains("SECRET\""), "{command}: {tool:?}");
        assert_eq!(codes(command), ["replaced_credential"], "{command}");
    }
}

#[test]
fn forms_and_other_data() {
    let (implementation, arguments) =
        parts("curl https://x.test -d a=1 -d 'b=two words' --data-urlencode 'c=x&y'");
    assert_eq!(implementation["method"], "POST");
    assert_eq!(implementation["body"], json!({"a": "${a}", "b": "${b}", "c": "${c}"}));
    assert_eq!(arguments["c"], json!({"type": "string", "default": "x&y"}));
    let (implementation, _) = parts("curl -G https://x.test -d a=1");
    assert_eq!((&implementation["method"], &implementation["query"]), (&json!("GET"), &json!({"a": "${a}"})));
    assert_eq!(codes("curl https://x.test -F a=1 -F b=2"), ["multipart_form"]);
    assert_eq!(codes("curl https://x.test -d '{\"a\": 1}'"), ["content_type"]);
    let (implementation, arguments) = parts("curl https://x.test -H 'Content-Type: text/plain' -d hello");
    assert_eq!(implementation["body"], "${body}");
    assert_eq!(arguments["body"], json!({"type": "string", "default": "hello"}));
    let (implementation, _) = parts("curl -XPUT -m 2.5 -A me https://x.test");
    assert_eq!((&implementation["method"], &implementation["timeout_ms"]), (&json!("PUT"), &json!(2500)));
}

#[test]
fn names_come_from_the_url() {
    for (url, name) in [
        ("https://api.github.com/repos/a/b/issues", "github_issues"),
        ("https://www.example.com", "example"),
        ("http://127.0.0.1:8080/items/7.json", "local_items"),
        ("localhost:3000/a-b", "localhost_a_b"),
    ] {
        assert_eq!(read(&format!("curl {url}"), None).unwrap().definition["name"], name, "{url}");
    }
    assert_eq!(read("curl https://x.test", Some("mine")).unwrap().definition["name"], "mine");
}

#[test]
fn what_cannot_be_converted_is_an_error() {
    for (command, error) in [
        ("wget https://x.test", "the command does not start with `curl`"),
        ("", "the command does not start with `curl`"),
        ("curl -s", "the command has no URL"),
        ("curl -X", "the option `-X` has no value"),
        (
            "curl https://x.test -d @file",
            "the option `-d` is unsupported: it reads a file; paste the data itself",
        ),
        (
            "curl https://x.test -F a=@file",
            "the option `-F` is unsupported: uploads of files are not supported",
        ),
        (
            "curl https://x.test --proxy p",
            "the option `--proxy` is unsupported: remove it, or add the tool by hand",
        ),
        ("curl ftp://x.test", "invalid URL `ftp://x.test`: expected `http://` or `https://`"),
        ("curl https://", "invalid URL `https://`: empty host"),
        ("curl -X 'G T' https://x.test", "invalid method `G T`"),
        ("curl -H nonsense https://x.test", "invalid header `nonsense`: expected `Name: value`"),
        ("curl 'https://x.test", "a single quote is not closed"),
    ] {
        assert_eq!(read(command, None).unwrap_err().to_string(), error, "{command}");
    }
}
