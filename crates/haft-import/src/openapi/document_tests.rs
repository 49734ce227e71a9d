//! Which documents are read, what tools are called, where they send their requests.

use serde_json::{Value, json};

use super::read;
use super::test_support::{document, http, import, only};
use crate::api::{ImportOptions, Limits, OperationFilter};

fn refusal(text: &str) -> String {
    read(text, &ImportOptions::default()).unwrap_err().to_string()
}

#[test]
fn other_documents_are_rejected_with_a_fix() {
    let cases = [
        ("", "not an OpenAPI document: expected a map with `openapi`, `info` and `paths`"),
        ("[]", "not an OpenAPI document: expected a map with `openapi`, `info` and `paths`"),
        ("{}", "`openapi`: not an OpenAPI document: missing field `openapi`, such as `openapi: 3.1.0`"),
        (
            "swagger: '1.2'\npaths: {}\n",
            "`swagger`: Swagger 1.2 is not supported; supported are Swagger 2.0 and OpenAPI 3",
        ),
        ("swagger: 2.0\n", "`paths`: missing `paths`: the document has no operations"),
        (
            "openapi: 4.0.0\npaths: {}",
            "`openapi`: unsupported OpenAPI version `4.0.0`; supported are 3.0, 3.1, 3.2 and Swagger 2.0",
        ),
        ("openapi: 3.1.0\n", "`paths`: missing `paths`: the document has no operations"),
        ("openapi: 3.0.0\npaths: {}", "`paths`: the document has no operations"),
        ("{\"openapi\": \"3.0.0\",", "line 1, column 20: invalid JSON: EOF while parsing a value"),
        (
            "openapi: 3.0.0\n bad: [",
            "line 2, column 5: invalid YAML: mapping values are not allowed in this context",
        ),
        (
            r#"{"openapi": "3.0.0", "paths": {}, "paths": {}}"#,
            "line 1, column 41: invalid JSON: duplicate key `paths`",
        ),
        (
            "openapi: 3.0.0\npaths: {/a: {get: {}}}",
            "`servers`: the document has no server; set the base URL (`base_url`, `--base-url`)",
        ),
        (
            "openapi: 3.0.0\nservers: [{url: /api}]\npaths: {/a: {get: {}}}",
            "`servers`: the server `/api` is relative, and the URL of the document is unknown; set the base URL (`base_url`, \
             `--base-url`)",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(refusal(text), expected, "{text}");
    }
    let small =
        ImportOptions { limits: Limits { bytes: 10, ..Limits::default() }, ..ImportOptions::default() };
    assert_eq!(
        read("openapi: 3.0.0", &small).unwrap_err().to_string(),
        "the document has 14 bytes; the limit is 10 (`import.max_document_bytes`)"
    );
}

#[test]
fn yaml_and_json_of_both_versions_are_read() {
    for text in [
        "openapi: 3.0\ninfo: {title: Pets, version: 1.0}\nservers: [{url: https://a.example}]\npaths:\n  /a:\n    get:\n      responses:\n        200: {description: ok}\n      parameters:\n        - {name: code, in: query, example: 007, schema: {type: string}}\n",
        r#"{"openapi":"3.1.0","info":{"title":"Pets"},"servers":[{"url":"https://a.example/"}],"paths":{"/a":{"get":{}}}}"#,
    ] {
        let import = read(text, &ImportOptions::default()).unwrap();
        assert_eq!(http(&import.tools[0]).request.url, "https://a.example/a");
    }
}

#[test]
fn tools_are_named_after_operations() {
    let operation = |id: &str| json!({"operationId": id});
    let long = "x".repeat(80);
    let paths = json!({
        "/pets/{petId}/toys.json": {"get": {}, "delete": operation("pets/remove-toy")},
        "/": {"get": {}},
        "/a": {"get": operation("listPets"), "post": operation("list.pets"), "put": operation("search")},
        "/b": {"get": operation("list pets"), "post": operation("///"), "put": operation(&long)},
        "/c": {"get": operation("Größe_holen")},
        "x-internal": {"get": {}},
    });
    let import = import(&document("3.0.3", &paths, &json!({})), &ImportOptions::default());
    let names: Vec<String> = import.tools.iter().map(|tool| tool.spec.name.to_string()).collect();
    assert_eq!(
        names,
        [
            "get-pets-petId-toys-json",
            "pets-remove-toy",
            "get-root",
            "listPets",
            // Two are `list-pets`: method and path distinguish them.
            "list-pets-2b9647",
            "search",
            "list-pets-db789e",
            "post-b",
            &format!("{}-843e62", "x".repeat(57)),
            "Größe_holen",
        ]
    );
}

#[test]
fn words_category_and_origin_come_from_the_document() {
    let operation = json!({
        "operationId": "getPet", "summary": "Find a pet\u{7}", "description": "By its <b>id</b>.\n\n* quick",
        "tags": ["pets", "pets", "store"], "deprecated": true,
    });
    let tool = only(&document("3.1.0", &json!({"/pets": {"get": operation}}), &json!({})));
    let spec = &tool.spec;
    assert_eq!(spec.description, "Deprecated.\n\nFind a pet\n\nBy its id.\n\n* quick");
    assert_eq!((spec.display_name.as_str(), spec.category.as_str()), ("Find a pet", "pets"));
    assert_eq!(spec.tags, ["pets", "store"]);
    let origin = spec.origin.as_ref().unwrap();
    assert_eq!(
        (origin.document.as_str(), origin.operation.as_str(), origin.operation_id.as_deref()),
        ("Pets", "GET /pets", Some("getPet"))
    );
    assert_eq!(tool.warnings.iter().map(|w| w.code.as_str()).collect::<Vec<_>>(), ["deprecated"]);
    let bare = only(&document("3.1.0", &json!({"/pets": {"get": {}}}), &json!({})));
    assert_eq!(bare.spec.description, "`GET /pets` of Pets");
}

#[test]
fn operations_are_selected_by_tag_path_and_pattern() {
    let paths = json!({
        "/pets": {"get": {"operationId": "listPets", "tags": ["pets"]}, "post": {"operationId": "addPet", "tags": ["pets", "write"]}},
        "/petstores": {"get": {"operationId": "listStores"}},
        "/pets/{id}": {"get": {"operationId": "getPet", "tags": ["pets"]}},
    });
    let document = document("3.0.0", &paths, &json!({}));
    let all = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let cases: [[&[&str]; 5]; 6] = [
        [&[], &[], &[], &[], &["listPets", "addPet", "listStores", "getPet"]],
        [&["write"], &[], &[], &[], &["addPet"]],
        [&[], &["/pets"], &[], &[], &["listPets", "addPet", "getPet"]],
        [&[], &[], &["get /*", "add*"], &[], &["listPets", "addPet", "listStores", "getPet"]],
        [&[], &[], &["GET *"], &["*/{id}"], &["listPets", "listStores"]],
        [&["pets"], &["/pets"], &["list*"], &[], &["listPets"]],
    ];
    for [tags, starts, include, exclude, expected] in cases {
        let selection = OperationFilter {
            tags: all(tags),
            paths: all(starts),
            include: all(include),
            exclude: all(exclude),
        };
        let options = ImportOptions { selection: selection.clone(), ..ImportOptions::default() };
        let names: Vec<String> =
            import(&document, &options).tools.iter().map(|t| t.spec.name.to_string()).collect();
        assert_eq!(names, expected, "{selection:?}");
    }
    let options = |selection, operations| ImportOptions {
        selection,
        limits: Limits { operations, ..Limits::default() },
        ..ImportOptions::default()
    };
    let none = options(OperationFilter { tags: all(&["cats"]), ..OperationFilter::default() }, 10);
    insta::assert_snapshot!(read(&document.to_string(), &none).unwrap_err(), @"`tags`: no tools were imported: none of the 4 operations matches the filters; available tags: `pets`, `write`");
    let many = options(OperationFilter::default(), 3);
    insta::assert_snapshot!(read(&document.to_string(), &many).unwrap_err(), @"`paths`: 4 operations are selected; the limit is 3. Select fewer by tag, path or pattern");
}

#[test]
fn servers_have_variables_and_an_override() {
    let url = |servers: Value, given: Option<&str>, fetched: Option<&str>| {
        let mut document = document("3.0.3", &json!({"/a": {"get": {}}}), &json!({}));
        document["servers"] = servers;
        let options = ImportOptions {
            base_url: given.map(str::to_owned),
            document_url: fetched.map(str::to_owned),
            ..ImportOptions::default()
        };
        match read(&document.to_string(), &options) {
            Ok(import) => http(&import.tools[0]).request.url.clone(),
            Err(error) => error.message,
        }
    };
    let variables = json!([{
        "url": "https://{host}:{port}/{base}/",
        "variables": {"host": {"default": "api.example"}, "port": {"default": 8443}, "base": {"default": "v2"}},
    }]);
    for (servers, given, fetched, expected) in [
        (json!([{"url": "https://a.example/v1/"}]), None, None, "https://a.example/v1/a"),
        (variables.clone(), None, None, "https://api.example:8443/v2/a"),
        (variables, Some("http://localhost:9/x"), None, "http://localhost:9/x/a"),
        (
            json!([{"url": "/api"}]),
            None,
            Some("https://d.example/docs/openapi.yaml"),
            "https://d.example/api/a",
        ),
        (
            json!([{"url": "../v3"}]),
            None,
            Some("https://d.example/docs/x/openapi.yaml"),
            "https://d.example/docs/v3/a",
        ),
        (json!([]), None, Some("https://d.example/docs/openapi.yaml"), "https://d.example/a"),
        (
            json!([{"url": "https://{tenant}.example"}]),
            None,
            None,
            "the server `https://{tenant}.example` has the variable `tenant` without a default; set the base URL (`base_url`, `--base-url`)",
        ),
        (
            json!([{"url": "https://user:pass@a.example"}]),
            None,
            None,
            "the server `https://user:pass@a.example` is not an `http` or `https` URL without user name; set the base URL (`base_url`, `--base-url`)",
        ),
        (
            json!([{"url": "https://a.example"}]),
            Some("ftp://x"),
            None,
            "`ftp://x` is not an `http` or `https` URL without user name",
        ),
        // What a document says is never read as a template.
        (
            json!([{"url": "https://a.example/${SECRET}/$"}]),
            None,
            None,
            "the server `https://a.example/${SECRET}/$` has the variable `SECRET` without a default; set the base URL (`base_url`, `--base-url`)",
        ),
        (
            json!([{"url": "https://a.example/{x}", "variables": {"x": {"default": "${SECRET}"}}}]),
            None,
            None,
            "https://a.example/%24%7BSECRET%7D/a",
        ),
    ] {
        assert_eq!(url(servers.clone(), given, fetched), expected, "{servers}");
    }
    let paths = json!({"/a": {
        "servers": [{"url": "https://path.example"}],
        "get": {}, "put": {"servers": [{"url": "https://operation.example"}]},
    }});
    let import = import(&document("3.0.3", &paths, &json!({})), &ImportOptions::default());
    let urls: Vec<&str> = import.tools.iter().map(|tool| http(tool).request.url.as_str()).collect();
    assert_eq!(urls, ["https://path.example/a", "https://operation.example/a"]);
    assert_eq!(
        import.servers().into_iter().collect::<Vec<_>>(),
        ["https://operation.example", "https://path.example"]
    );
}
