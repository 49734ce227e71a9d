//! What is wrong with a definition is said all at once, with place and remedy.

use serde_json::json;

use super::harness::World;

#[test]
fn every_problem_is_named() {
    let world = World::new();
    let problems = world
        .tool(json!({
            "method": "FETCH", "url": "ftp://x.test/${a", "query": {"q": "${steps.x}"},
            "headers": {"Host": "evil.test", "Bad Name": "x", "X-A": "caf\u{e9}", "x-a": "twice"},
            "body": {"deep": [{"v": "${}"}]}, "success_codes": [99], "extract": "$.[", "timeout_ms": 0,
            "auth": {"type": "hmac", "key": "k", "algorithm": "md5", "encoding": "octal", "sign": "{what}"}
        }))
        .problems();
    insta::assert_snapshot!(problems.join("\n"), @r"
    `implementation.auth.algorithm`: use `sha256` or `sha512` (invalid_value)
    `implementation.auth.encoding`: use `hex` or `base64` (invalid_value)
    `implementation.auth.sign`: use `{method}`, `{path}`, `{query}`, `{timestamp}` and `{body}` (invalid_value)
    `implementation.method`: `FETCH` is not a method; use GET, HEAD, POST, PUT, PATCH, DELETE or OPTIONS (invalid_method)
    `implementation.url`: at character 14: `${` has no `}`; write `$${` for a literal `${` (invalid_template)
    `implementation.query.q`: at character 1: no earlier step is called `x` (invalid_template)
    `implementation.headers.Bad Name`: `Bad Name` is not a header name (invalid_header)
    `implementation.headers.Host`: `host` is set by the connection itself; leave it out (invalid_header)
    `implementation.headers.X-A`: a header takes visible ASCII characters only (invalid_header)
    `implementation.headers.x-a`: the header `x-a` is given twice (duplicate_name)
    `implementation.body.deep[0].v`: at character 1: a name is missing between the braces (invalid_template)
    `implementation.success_codes`: 99 is not an HTTP status (out_of_range)
    `implementation.extract`: not a JSONPath: at character 3: expected wildcard_selector or ALPHA (invalid_extract)
    `implementation.timeout_ms`: the timeout must be longer than 0 (out_of_range)
    ");
}

#[test]
fn urls_and_bodies_and_steps() {
    let world = World::new();
    let mut out = Vec::new();
    for http in [
        json!({}),
        json!({"url": "x.test/path"}),
        json!({"url": "${a}://x.test/"}),
        json!({"url": "https://u:p@x.test/"}),
        json!({"url": "https://"}),
        json!({"url": "https://x.test/{{city}}", "templates": "braces"}),
        json!({"url": "https://x.test/", "body": {"a": 1}, "headers": {"Content-Type": "text/xml"}}),
        json!({"url": "https://x.test/", "body": "--b", "headers": {"Content-Type": "multipart/form-data; boundary=b"}}),
        json!({"url": "https://x.test/\n/y"}),
        json!({"url": "https://x.test/", "response": "text", "extract": "$.a"}),
        json!({"steps": [{"name": "a.b", "url": "https://x.test"}, {"name": "c"}, {"name": "c", "url": "https://x.test/${steps.d}"}]}),
        json!({"url": "https://x.test", "auth": {"type": "oauth2", "token_url": "x", "client_id": ""}}),
    ] {
        out.extend(world.tool(http).problems());
    }
    insta::assert_snapshot!(out.join("\n"), @r"
    `implementation.url`: a URL that starts with `http://` or `https://` is missing (missing_field)
    `implementation.url`: `x.test/path` does not start with `http://` or `https://` (invalid_url)
    `implementation.url`: `${a}://x.test/` does not start with `http://` or `https://` (invalid_url)
    `implementation.url`: credentials do not belong into a URL; use `auth` with type `basic` (invalid_url)
    `implementation.url`: `https://` is not a URL: empty host (invalid_url)
    `implementation.url`: at character 16: `city` is not a declared argument; declare it, or write `${city}` for a secret (invalid_template)
    `implementation.body`: a structured body is sent as `application/json`, or a map as `application/x-www-form-urlencoded`; for other content types write the body as text (invalid_body)
    `implementation.body`: multipart bodies are not supported (invalid_body)
    `implementation.url`: a URL has no line breaks and no other control characters (invalid_url)
    `implementation.extract`: a JSONPath needs an answer in JSON, but `response` is `text` (invalid_extract)
    `implementation.steps[0].name`: a step needs a name without dots, braces and spaces (invalid_name)
    `implementation.steps[1].url`: a URL that starts with `http://` or `https://` is missing (missing_field)
    `implementation.steps[2].name`: two steps are called `c` (duplicate_name)
    `implementation.steps[2].url`: at character 16: no earlier step is called `d` (invalid_template)
    `implementation.auth.token_url`: `x` does not start with `http://` or `https://` (invalid_url)
    `implementation.auth.client_id`: name the client (missing_field)
    ");
}
