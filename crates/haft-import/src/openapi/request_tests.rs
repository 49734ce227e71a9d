//! Parameters, bodies and security to requests.

use serde_json::{Value, json};

use super::test_support::{document, http, import, only, post, warnings_text};
use crate::api::{ImportOptions, ImportedOperation, OperationFilter};
use haft_core::implementation::Auth;
use haft_core::name::BundleSlug;

/// What a request template says, and the arguments.
fn shown(tool: &ImportedOperation) -> Value {
    let mut request = serde_json::to_value(http(tool)).unwrap();
    request.as_object_mut().unwrap().shift_remove("method");
    json!({"request": request, "arguments": tool.spec.input_schema.value()["properties"], "required": tool.spec.input_schema.value()["required"]})
}

#[test]
fn parameters_of_all_locations_become_arguments() {
    let string = json!({"type": "string"});
    let parameters = json!([
        {"name": "id", "in": "path", "required": true, "schema": string, "description": "Whose"},
        {"name": "id", "in": "query", "schema": {"type": "integer"}},
        {"name": "filter[status]", "in": "query", "schema": string},
        {"name": "X-Trace", "in": "header", "required": true, "schema": string, "example": "t1"},
        {"name": "Authorization", "in": "header", "schema": string},
        {"name": "Host", "in": "header", "schema": string},
        {"name": "session", "in": "cookie", "required": true, "schema": string},
        {"name": "where", "in": "query", "content": {"application/json": {"schema": {"type": "object"}}}},
        {"name": "odd", "in": "body"}, {"in": "query"}, {"$ref": "#/components/parameters/Gone"},
    ]);
    let paths = json!({"/pets/{id}/$x/{undeclared}": {
        "parameters": [{"name": "id", "in": "path", "required": true, "schema": {"type": "boolean"}}],
        "get": {"parameters": parameters},
    }});
    let tool = only(&document("3.0.3", &paths, &json!({})));
    insta::assert_json_snapshot!(shown(&tool));
    insta::assert_snapshot!(warnings_text(&tool));
}

#[test]
fn styles_determine_how_lists_are_serialized() {
    let array = json!({"type": "array", "items": {"type": "string"}});
    let object = json!({"type": "object"});
    for (parameter, expected) in [
        (json!({"schema": array}), Value::Null),
        (json!({"schema": array, "explode": false}), json!("comma")),
        (json!({"schema": array, "style": "form", "explode": true}), Value::Null),
        (json!({"schema": array, "style": "spaceDelimited"}), json!("space")),
        (json!({"schema": array, "style": "pipeDelimited"}), json!("pipe")),
        (json!({"schema": array, "style": "pipeDelimited", "explode": true}), Value::Null),
        (json!({"schema": array, "style": "odd"}), Value::Null),
        (json!({"schema": object}), json!("spread")),
        (json!({"schema": object, "explode": false}), json!("comma")),
        (json!({"schema": object, "style": "deepObject", "explode": true}), json!("deep_object")),
        (json!({"schema": {"type": "string"}, "explode": false}), Value::Null),
        (json!({"content": {"application/json": {"schema": object}}}), json!("json")),
    ] {
        let mut parameter = parameter;
        parameter["name"] = json!("q");
        parameter["in"] = json!("query");
        let tool = post("3.0.3", &json!({"parameters": [parameter]}), &json!({}));
        let styles = serde_json::to_value(&http(&tool).request.styles).unwrap();
        assert_eq!(styles.get("q").cloned().unwrap_or_default(), expected, "{parameter}");
        assert_eq!(
            warnings_text(&tool).contains("unsupported_style"),
            parameter["style"] == "odd",
            "{parameter}"
        );
    }
}

#[test]
fn styles_of_paths_headers_and_cookies() {
    let array = json!({"type": "array", "items": {"type": "string"}});
    let object = json!({"type": "object"});
    for (style, explode, schema, expected, spelled) in [
        (json!("simple"), false, &array, "/a/${p}", json!("comma")),
        (json!("simple"), true, &array, "/a/${p}", json!("pairs")),
        (Value::Null, true, &object, "/a/${p}", json!("pairs")),
        (json!("label"), false, &array, "/a/.${p}", json!("comma")),
        (json!("label"), true, &object, "/a/.${p}", json!("dot")),
        (json!("matrix"), false, &object, "/a/;p=${p}", json!("comma")),
        (json!("matrix"), true, &array, "/a/;p=${p}", json!("semicolon")),
        (json!("matrix"), true, &object, "/a/;${p}", json!("semicolon")),
        (json!("matrix"), true, &json!({"type": "integer"}), "/a/;p=${p}", Value::Null),
        (json!("form"), false, &array, "/a/${p}", json!("comma")),
    ] {
        let mut parameter =
            json!({"name": "p", "in": "path", "required": true, "explode": explode, "schema": schema});
        if !style.is_null() {
            parameter["style"] = style;
        }
        let paths = json!({"/a/{p}": {"get": {"parameters": [parameter]}}});
        let tool = only(&document("3.0.3", &paths, &json!({})));
        let request = serde_json::to_value(&http(&tool).request).unwrap();
        assert_eq!(request["url"], format!("https://pets.example/v1{expected}"), "{parameter}");
        assert_eq!(request["text_styles"]["p"], spelled, "{parameter}");
        assert_eq!(
            warnings_text(&tool).contains("unsupported_style"),
            parameter["style"] == "form",
            "{parameter}"
        );
        let least = &tool.spec.input_schema.value()["properties"]["p"];
        assert_eq!(least["minItems"] == 1 || least["minProperties"] == 1, spelled != Value::Null, "{least}");
    }
    let parameters = json!([
        {"name": "X-Ids", "in": "header", "schema": array},
        {"name": "X-Map", "in": "header", "explode": true, "schema": object},
        {"name": "c", "in": "cookie", "schema": array},
        {"name": "q", "in": "query", "allowReserved": true, "schema": {"type": "string"}},
    ]);
    let tool = post("3.1.0", &json!({"parameters": parameters}), &json!({}));
    let request = serde_json::to_value(&http(&tool).request).unwrap();
    assert_eq!(
        json!([request["text_styles"], request["allow_reserved"], request["headers"], warnings_text(&tool)]),
        json!([
            {"X-Ids": "comma", "X-Map": "pairs", "c": "comma"}, ["q"],
            {"X-Ids": "${X-Ids}", "X-Map": "${X-Map}", "Cookie": "c=${c}"}, "",
        ])
    );
}

fn body(content: &Value, required: bool) -> ImportedOperation {
    let components = json!({"schemas": {
        "Base": {"type": "object", "required": ["id"], "properties": {"id": {"type": "integer"}}},
        "Pet": {"allOf": [{"$ref": "#/components/schemas/Base"}, {"type": "object", "properties": {"name": {"type": "string"}}}]},
    }});
    post("3.0.3", &json!({"requestBody": {"required": required, "content": content}}), &components)
}

#[test]
fn bodies_become_arguments_or_one_argument() {
    let plain = json!({"type": "object", "required": ["a b"], "properties": {"a b": {"type": "string"}, "c": {"type": "integer"}}});
    let cases = [
        ("plain", json!({"application/json": {"schema": plain}}), true),
        ("optional", json!({"application/json": {"schema": plain}}), false),
        ("allOf", json!({"application/json": {"schema": {"$ref": "#/components/schemas/Pet"}}}), true),
        ("vendor", json!({"application/merge-patch+json": {"schema": plain}}), true),
        (
            "preferred",
            json!({"multipart/form-data": {}, "text/plain": {}, "application/json; charset=utf-8": {"schema": plain}}),
            true,
        ),
        (
            "list",
            json!({"application/json": {"schema": {"type": "array", "items": {"type": "string"}}}}),
            true,
        ),
        (
            "open map",
            json!({"application/json": {"schema": {"type": "object", "properties": {"a": {}}, "additionalProperties": true}}}),
            true,
        ),
        (
            "choice",
            json!({"application/json": {"schema": {"oneOf": [{"type": "string"}, {"type": "integer"}]}}}),
            false,
        ),
        ("no_schema", json!({"*/*": {}}), true),
        ("text", json!({"text/markdown": {"schema": {"type": "string"}}}), true),
        (
            "form",
            json!({"application/x-www-form-urlencoded": {
                "schema": {"type": "object", "properties": {"tags": {"type": "array", "items": {}}, "deep": {"type": "object"}, "n": {"type": "integer"}}},
                "encoding": {"tags": {"explode": false}, "deep": {"style": "deepObject"}, "n": {"style": "form"}, "gone": {"style": "form"}},
            }}),
            true,
        ),
    ];
    for (name, content, required) in cases {
        let tool = body(&content, required);
        insta::assert_json_snapshot!(format!("body_{name}"), shown(&tool));
        assert_eq!(warnings_text(&tool), "", "{name}");
    }
}

#[test]
fn operations_with_unsupported_bodies_are_skipped() {
    let operation =
        |media: &str, required: bool| json!({"requestBody": {"required": required, "content": {media: {}}}});
    let paths = json!({
        "/a": {"post": operation("multipart/form-data", true), "get": {}},
        "/b": {"put": operation("application/octet-stream", true), "post": operation("application/xml", true)},
        "/c": {"post": operation("image/png", false), "put": {"requestBody": {"$ref": "bodies.yaml#/Pet"}}, "trace": {}},
        "/d": {"post": operation("application/x-www-form-urlencoded", true)},
        "e": {"get": {}}, "/f": 7, "/g": {"get": 7}, "/h": {"$ref": "#/paths/~1h"}, "/i": {"$ref": "#/paths/~1a"},
    });
    let import = import(&document("3.0.3", &paths, &json!({})), &ImportOptions::default());
    let skipped: Vec<String> =
        import.skipped.iter().map(|s| format!("{}: {}", s.operation, s.reason)).collect();
    insta::assert_snapshot!(skipped.join("\n"), @"
    POST /a: unsupported request body `multipart/form-data`
    POST /b: unsupported request body `application/xml`
    PUT /c: invalid request body: the reference `bodies.yaml#/Pet` points to another document, which is not supported; merge all parts into one file
    POST /d: unsupported request body `application/x-www-form-urlencoded`
    POST /i: unsupported request body `multipart/form-data`
    ");
    let tools: Vec<String> =
        import.tools.iter().map(|tool| format!("{} {}", tool.spec.name, warnings_text(tool))).collect();
    insta::assert_snapshot!(tools.join("\n"), @"
    get-a 
    put-b 
    post-c 
    get-i
    ");
    let warnings: Vec<String> = import.warnings.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(warnings.join("\n"), @"
    `paths./c`: skipped: the method `TRACE` is not supported
    `paths.e`: skipped: a path must start with `/`
    `paths./f`: skipped: expected a map of methods
    `paths./g`: skipped: `get` is not a map
    `paths./h`: the reference `#/paths/~1h` refers to itself
    ");
}

#[test]
fn security_schemes_become_auth_with_names_of_secrets() {
    let schemes = json!({
        "bearerAuth": {"type": "http", "scheme": "Bearer"},
        "basic": {"type": "http", "scheme": "basic"},
        "digest": {"type": "http", "scheme": "digest"},
        "key": {"type": "apiKey", "in": "header", "name": "X-Key"},
        "app": {"type": "apiKey", "in": "query", "name": "app id"},
        "cookie": {"type": "apiKey", "in": "cookie", "name": "sid"},
        "machine": {"type": "oauth2", "flows": {"clientCredentials": {"tokenUrl": "https://id.example/token", "scopes": {}}}},
        "person": {"type": "oauth2", "flows": {"authorizationCode": {"tokenUrl": "https://id.example/token"}}},
        "oidc": {"type": "openIdConnect", "openIdConnectUrl": "https://id.example"},
        "mtls": {"type": "mutualTLS"},
    });
    let cases = [
        json!([{"bearerAuth": []}]),
        json!([{"basic": []}]),
        json!([{"key": []}]),
        json!([{"app": []}]),
        json!([{"cookie": []}]),
        json!([{"machine": ["read", "write"]}]),
        json!([{"person": ["read"]}]),
        json!([{"oidc": []}]),
        json!([{"digest": []}, {"mtls": []}, {"key": []}]),
        json!([{"mtls": []}]),
        json!([{"gone": []}]),
        json!([{"key": [], "bearerAuth": [], "app": [], "cookie": []}]),
        json!([{"bearerAuth": [], "basic": []}]),
        json!([{}, {"key": []}]),
        json!([]),
    ];
    let mut all = Vec::new();
    for security in cases {
        let paths = json!({"/a": {"get": {"security": security}}});
        let document = document("3.1.0", &paths, &json!({"securitySchemes": schemes}));
        let options =
            ImportOptions { bundle: Some(BundleSlug::new("pets").unwrap()), ..ImportOptions::default() };
        let tool = import(&document, &options).tools.remove(0);
        let http = http(&tool);
        all.push(json!({
            "security": security, "auth": http.auth, "headers": http.request.headers, "query": http.request.query,
            "secrets": tool.secrets, "warnings": warnings_text(&tool),
        }));
    }
    insta::assert_json_snapshot!(all);
}

#[test]
fn security_of_the_document_holds_for_all_and_can_be_set() {
    let schemes = json!({"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}});
    let parameter = json!({"name": "PETS_TOKEN", "in": "query", "schema": {"type": "string"}});
    let mut document = document(
        "3.0.3",
        &json!({"/a": {"get": {"parameters": [parameter]}, "put": {"security": []}}}),
        &schemes,
    );
    document["security"] = json!([{"token": []}]);
    let mut options =
        ImportOptions { bundle: Some(BundleSlug::new("pets").unwrap()), ..ImportOptions::default() };
    let auths = |options: &ImportOptions| -> Vec<Option<Auth>> {
        import(&document, options).tools.iter().map(|tool| http(tool).auth.clone()).collect()
    };
    let bearer = |name: &str| Some(Auth::Bearer { token: format!("${{{name}}}") });
    assert_eq!(auths(&options), [bearer("PETS_TOKEN"), None]);
    // The argument makes room for the secret.
    let query = http(&import(&document, &options).tools[0]).request.query.clone();
    assert_eq!(Value::Object(query), json!({"PETS_TOKEN": "${query_PETS_TOKEN}"}));
    options.auth = bearer("MINE");
    options.selection = OperationFilter::default();
    assert_eq!(auths(&options), [bearer("MINE"), bearer("MINE")]);
    assert_eq!(import(&document, &options).secrets().into_iter().collect::<Vec<_>>(), ["MINE"]);
}
