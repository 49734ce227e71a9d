//! Postman collections.

use serde_json::{Value, json};

use super::read;
use crate::api::{ApiImport, ImportOptions, OperationFilter};
use haft_core::implementation::{Auth, Http, Implementation};
use haft_definition::check;

fn collection(items: &Value) -> Value {
    json!({
        "info": {"name": "Shop", "schema": "https://schema.getpostman.com/json/collection/v2.1.0/collection.json"},
        "variable": [
            {"key": "baseUrl", "value": "https://{{host}}/v1"}, {"key": "host", "value": "shop.example"},
            {"key": "region", "value": "eu"}, {"key": "apiToken", "value": "sk_live_1", "type": "secret"},
        ],
        "auth": {"type": "bearer", "bearer": [{"key": "token", "value": "{{apiToken}}", "type": "string"}]},
        "item": items,
    })
}

fn import(document: &Value) -> ApiImport {
    let import = read(&document.to_string(), &ImportOptions::default()).unwrap();
    for tool in &import.tools {
        assert_eq!(check::definition(&tool.spec).errors, [], "{:#?}", tool.spec);
        let text = format!("{:?}", tool.spec);
        assert!(!text.contains("sk_live"), "{text}");
    }
    import
}

fn http(import: &ApiImport, index: usize) -> &Http {
    let Implementation::Http(http) = &import.tools[index].spec.implementation else { panic!("not http") };
    http
}

#[test]
fn requests_become_tools() {
    let import = import(&collection(&json!([{"name": "Orders", "item": [
        {"name": "Find orders", "request": {
            "method": "GET",
            "description": "<p>Finds <b>orders</b>.</p>",
            "header": [{"key": "X-Region", "value": "{{region}}"}, {"key": "X-Off", "value": "1", "disabled": true}],
            "url": {"raw": "{{baseUrl}}/users/:user/orders?limit=10&page={{page}}", "query": [
                {"key": "limit", "value": "10", "description": "How many"}, {"key": "page", "value": "{{page}}"},
                {"key": "sort", "value": "asc", "disabled": true}],
                "variable": [{"key": "user", "value": "me"}]},
        }},
        {"name": "Create order", "request": {
            "method": "POST", "url": "{{baseUrl}}/orders",
            "body": {"mode": "raw", "raw": "{\"item\": \"book\", \"count\": 2, \"note\": \"${SECRET} {{region}}\"}",
                "options": {"raw": {"language": "json"}}},
            "auth": {"type": "noauth"},
        }, "event": [{"listen": "test", "script": {"exec": ["pm.test('x')"]}}]},
    ]}])));
    let find = http(&import, 0);
    assert_eq!(find.request.url, "https://shop.example/v1/users/${user}/orders");
    assert_eq!(
        Value::Object(find.request.query.clone()),
        json!({"limit": "${limit}", "page": "${page}", "sort": "${sort}"})
    );
    assert_eq!(find.request.headers["X-Region"], "${region}");
    assert_eq!(find.auth, Some(Auth::Bearer { token: "${SHOP_API_TOKEN}".into() }));
    let spec = &import.tools[0].spec;
    let schema = spec.input_schema.value();
    assert_eq!(schema["required"], json!(["user", "page"]));
    assert_eq!(
        schema["properties"]["limit"],
        json!({"type": "integer", "default": 10, "description": "How many"})
    );
    assert_eq!(schema["properties"]["region"], json!({"type": "string", "default": "eu"}));
    assert_eq!(
        (spec.name.as_str(), spec.description.as_str()),
        ("Find-orders", "Find orders\n\nFinds orders.")
    );
    assert_eq!(spec.tags, ["Orders"]);
    let create = http(&import, 1);
    // A reference to a secret in the file is text.
    assert_eq!(
        create.request.body,
        Some(json!({"item": "${item}", "count": "${count}", "note": "$${SECRET} ${region}"}))
    );
    assert_eq!(create.auth, None);
    assert_eq!(import.warnings.len(), 1);
    assert!(
        import.warnings[0].message.starts_with("scripts are not run: 1 requests"),
        "{}",
        import.warnings[0]
    );
    assert_eq!(import.secrets().into_iter().collect::<Vec<_>>(), ["SHOP_API_TOKEN"]);
}

#[test]
fn bodies_of_every_mode_are_converted() {
    let request = |body: Value| json!({"name": "r", "request": {"method": "POST", "url": "http://a.example/x", "body": body}});
    let import = import(&collection(&json!([
        request(
            json!({"mode": "urlencoded", "urlencoded": [{"key": "a", "value": "1"}, {"key": "password", "value": "p"}]})
        ),
        request(
            json!({"mode": "formdata", "formdata": [{"key": "doc", "type": "file", "src": "/etc/passwd"}, {"key": "n", "value": "x"}]})
        ),
        request(
            json!({"mode": "graphql", "graphql": {"query": "query($id: ID!) { pet(id: $id) { name } }", "variables": "{\"id\": 1}"}})
        ),
        request(
            json!({"mode": "raw", "raw": "{\"n\": {{count}}}", "options": {"raw": {"language": "json"}}})
        ),
        request(json!({"mode": "raw", "raw": "<a>{{count}}</a>", "options": {"raw": {"language": "xml"}}})),
        request(json!({"mode": "file", "file": {"src": "/etc/passwd"}})),
    ])));
    let bodies: Vec<String> = (0..import.tools.len())
        .map(|index| {
            let request = &http(&import, index).request;
            let media = request.headers.get("Content-Type").map_or("", String::as_str);
            format!("{media} {} {:?}", request.body.clone().unwrap_or_default(), request.files)
        })
        .collect();
    insta::assert_snapshot!(bodies.join("\n"), @r#"
    application/x-www-form-urlencoded {"a":"${a}","password":"${SHOP_PASSWORD}"} []
    multipart/form-data {"doc":"${doc}","n":"${n}"} ["doc"]
     {"query":"query($id: ID!) { pet(id: $id) { name } }","variables":{"id":"${id}"}} []
    application/json "{\"n\": ${count}}" []
    application/xml "<a>${count}</a>" []
    application/octet-stream {"file":"${file}"} ["file"]
    "#);
}

#[test]
fn credentials_in_the_file_are_not_stored() {
    let import = import(&collection(&json!([
        {"name": "basic", "request": {"method": "GET", "url": "http://a.example",
            "auth": {"type": "basic", "basic": {"username": "bob", "password": "sk_live_2"}}}},
        {"name": "key", "request": {"method": "GET", "url": "http://a.example?api_key=sk_live_3", "header": "Authorization: Token sk_live_4"}},
        {"name": "aws", "request": {"method": "GET", "url": "http://a.example", "auth": {"type": "awsv4"}}},
    ])));
    assert_eq!(
        http(&import, 0).auth,
        Some(Auth::Basic { username: "bob".into(), password: "${SHOP_PASSWORD}".into() })
    );
    assert_eq!(http(&import, 1).request.query["api_key"], "${SHOP_API_KEY}");
    assert!(import.tools[2].warnings.iter().any(|warning| warning.code == "unsupported_security"));
}

#[test]
fn a_server_without_a_value_needs_a_base_url() {
    let document = json!({"info": {"name": "x"}, "item": [{"name": "a", "request": "{{unknown}}/a"}]});
    let import = import(&document);
    assert_eq!((import.tools.len(), import.skipped.len()), (0, 1));
    assert!(import.skipped[0].reason.contains("--base-url"), "{}", import.skipped[0].reason);
    let options = ImportOptions { base_url: Some("https://b.example/v1".into()), ..ImportOptions::default() };
    let import = read(&document.to_string(), &options).unwrap();
    assert_eq!(http(&import, 0).request.url, "https://b.example/v1/a");
}

#[test]
fn filters_select_requests() {
    let document = collection(&json!([
        {"name": "A", "item": [{"name": "one", "request": "http://a.example/one"}]},
        {"name": "two", "request": "http://a.example/two"},
    ]));
    let select = |selection: OperationFilter| {
        let options = ImportOptions { selection, ..ImportOptions::default() };
        let import = read(&document.to_string(), &options).unwrap();
        import.tools.iter().map(|tool| tool.spec.name.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(select(OperationFilter { tags: vec!["A".into()], ..OperationFilter::default() }), ["one"]);
    assert_eq!(
        select(OperationFilter { include: vec!["*two".into()], ..OperationFilter::default() }),
        ["two"]
    );
}

#[test]
fn hostile_collections_are_bounded() {
    let mut deep = json!([]);
    for _ in 0..40 {
        deep = json!([{"name": "f", "item": deep}]);
    }
    assert_eq!(read(&collection(&deep).to_string(), &ImportOptions::default()).unwrap_err().code, "too_deep");
    // Variables that refer to one another, twice each.
    let mut document = collection(
        &json!([{"name": "a", "request": "{{v0}}/x"}, {"name": "b", "request": {"url": {"raw": "http://a.example/{{v0}}"}}}]),
    );
    document["variable"] =
        (0..60).map(|n| json!({"key": format!("v{n}"), "value": format!("{{{{v{}}}}}{{{{v{}}}}}", (n + 1) % 60, (n + 1) % 60)})).collect();
    let import = import(&document);
    assert_eq!(import.tools.len() + import.skipped.len(), 2);
    for item in [
        json!({"name": 1, "request": {"url": {"host": [1, {}], "path": {"a": 1}}, "header": 7, "auth": {"type": 1}}}),
        json!({"name": "{{x", "request": {"url": "{{a", "method": "GET\r\n", "body": {"mode": "raw"}}}),
        json!({"request": {"url": "http://a.example/${HOME}/{{x}}{{}}", "header": [{"key": "a b", "value": "c\r\nd"}]}}),
    ] {
        let import = self::import(&collection(&json!([item])));
        assert_eq!(import.tools.len() + import.skipped.len(), 1, "{item}");
        let text = format!("{:?}", import.tools);
        assert!(!text.replace("GET /${HOME}", "").contains("${HOME}"), "{text}");
    }
}
