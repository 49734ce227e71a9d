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
    `implementation.url`: expected a URL that starts with `http://` or `https://` (invalid_url)
    `implementation.method`: is not one of GET, POST, PUT, PATCH, DELETE, HEAD, OPTIONS, QUERY (invalid_value)
    `implementation.headers.Bad Name`: invalid header name; use letters, digits and `-` (invalid_header)
    `implementation.headers.Host`: is set by the HTTP client; remove it (invalid_header)
    `implementation.headers.x-a`: duplicate header; names are case-insensitive (duplicate_name)
    `implementation.success_codes[0]`: invalid status code 99; expected 100 to 599 (invalid_value)
    `implementation.auth.algorithm`: is not one of sha256, sha512 (invalid_value)
    `implementation.auth.encoding`: is not one of hex, base64 (invalid_value)
    `implementation.timeout_ms`: must be longer than zero; remove it to use the default (invalid_value)
    `implementation.auth.sign`: unknown placeholder; use `{method}`, `{path}`, `{query}`, `{timestamp}` and `{body}` (invalid_value)
    `implementation.query.q`: at character 1: no earlier step is named `x` (invalid_template)
    `implementation.headers.X-A`: a header value must consist of visible ASCII characters (invalid_header)
    `implementation.body.deep[0].v`: at character 1: missing name between the braces (invalid_template)
    `implementation.extract`: invalid JSONPath: at character 3: expected `*` or a name (invalid_extract)
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
    `implementation.url`: expected a URL that starts with `http://` or `https://` (missing_field)
    `implementation.url`: expected a URL that starts with `http://` or `https://` (invalid_url)
    `implementation.url`: expected a URL that starts with `http://` or `https://` (invalid_url)
    `implementation.url`: contains a user name; use `auth` with `type: basic`, `username` and `password` (invalid_url)
    `implementation.url`: expected a URL that starts with `http://` or `https://` (invalid_url)
    `implementation.url`: at character 16: `city` is not a declared argument; declare it, or write `${city}` for a secret (invalid_template)
    `implementation.body`: a structured body is sent as `application/json`, or an object as `application/x-www-form-urlencoded` or `multipart/form-data`; for other content types use a text body, or one field that is listed in `files` (invalid_body)
    `implementation.body`: a `multipart/form-data` body is an object of its fields; list those that are files in `files` (invalid_body)
    `implementation.url`: the URL contains a line break or another control character (invalid_url)
    `implementation.extract`: a JSONPath needs a JSON response, but `response` is `text` (invalid_extract)
    `implementation.steps[0].name`: must not contain dots, braces, `$`, `|` or spaces, because later steps refer to it (invalid_name)
    `implementation.steps[1].url`: expected a URL that starts with `http://` or `https://` (missing_field)
    `implementation.steps[2].name`: duplicate step name `c` (duplicate_name)
    `implementation.steps[2].url`: at character 16: no earlier step is named `d` (invalid_template)
    `implementation.auth.client_id`: is empty (missing_field)
    `implementation.auth.token_url`: expected a URL that starts with `http://` or `https://` (invalid_url)
    ");
}

#[test]
fn valid_definitions_have_no_problems() {
    let world = World::new();
    let step = |index: usize| json!({"name": format!("s{index}"), "url": "https://x.test"});
    let steps = |count| json!({"steps": (0..count).map(step).collect::<Vec<_>>()});
    assert_eq!(world.tool(steps(20)).problems(), Vec::<String>::new());
    assert_eq!(
        world.tool(steps(21)).problems(),
        ["`implementation.steps`: the limit is 20 steps (too_large)"]
    );
    let spaced = json!({"type": "api_key", "name": "my key", "value": "v", "in": "query"});
    assert_eq!(world.tool(json!({"url": "https://x.test", "auth": spaced})).problems(), Vec::<String>::new());
    // A problem is reported once.
    let dotted =
        json!({"url": "https://x.test/{{.a}}", "body": ["{{.a}}"], "templates": "braces", "method": "PUT"});
    let problems = world.tool(dotted).args(&["a"]).problems();
    assert_eq!(problems.len(), 2, "{problems:?}");
}
