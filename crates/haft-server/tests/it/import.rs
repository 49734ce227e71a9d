//! `POST /api/import/openapi`: from a document to tools that are called.

use haft_testkit::prerequisite::{Prerequisite, skip};
use haft_testkit::upstream::Upstream;
use haft_testkit::upstream::axum::http::{Method, StatusCode, Uri};
use haft_testkit::upstream::axum::response::{IntoResponse, Response};
use haft_testkit::upstream::axum::{Json, Router, routing};
use serde_json::{Value, json};

use crate::harness::{Server, code, send};

const ROUTE: &str = "/api/import/openapi";

/// An API that answers anything: lists at paths that end in `s`, nothing to `DELETE`.
async fn anything() -> Upstream {
    let answer = |method: Method, uri: Uri| async move {
        if method == Method::DELETE { StatusCode::NO_CONTENT.into_response() } else { said(&uri) }
    };
    Upstream::serve(Router::new().fallback(answer)).await.unwrap()
}

fn said(uri: &Uri) -> Response {
    if uri.path().ends_with('s') && !uri.path().starts_with("/search") {
        Json(json!([])).into_response()
    } else {
        Json(json!({"id": 7})).into_response()
    }
}

/// The last request, as one line.
fn last(upstream: &Upstream) -> String {
    let seen = upstream.seen().pop().unwrap();
    let sent: Vec<String> = ["authorization", "cookie", "x-trace", "content-type", "accept"]
        .iter()
        .filter_map(|name| Some(format!("{name}: {}", seen.headers.get(*name)?)))
        .collect();
    format!("{} {} | {} | {}", seen.method, seen.target, sent.join(", "), seen.body)
}

fn petstore(version: &str, server: &str) -> Value {
    let pet = json!({"$ref": "#/components/schemas/Pet"});
    let one = |schema: &Value| json!({"200": {"description": "ok", "content": {"application/json": {"schema": schema}}}});
    json!({
        "openapi": version,
        "info": {"title": "Pet Store", "version": "1.0.0"},
        "servers": [{"url": server}],
        "security": [{"api": []}],
        "paths": {
            "/pets": {
                "get": {
                    "operationId": "listPets", "summary": "Lists pets", "tags": ["pets"],
                    "parameters": [
                        {"name": "tags", "in": "query", "explode": false, "schema": {"type": "array", "items": {"type": "string"}}},
                        {"name": "filter", "in": "query", "style": "deepObject", "schema": {"type": "object"}},
                        {"name": "limit", "in": "query", "schema": {"type": "integer", "default": 20, "maximum": 100}},
                        {"name": "X-Trace", "in": "header", "schema": {"type": "string"}},
                    ],
                    "responses": one(&json!({"type": "array", "items": pet})),
                },
                "post": {
                    "operationId": "addPet", "summary": "Adds a pet", "tags": ["pets", "write"],
                    "requestBody": {"required": true, "content": {"application/json": {"schema": pet}}},
                    "responses": one(&pet),
                },
            },
            "/pets/{id}": {
                "parameters": [{"name": "id", "in": "path", "required": true, "schema": {"type": "string"}}],
                "put": {
                    "operationId": "changePet", "tags": ["pets", "write"],
                    "requestBody": {"required": true, "content": {"application/x-www-form-urlencoded": {"schema": {
                        "type": "object", "properties": {"id": {"type": "string"}, "tags": {"type": "array", "items": {"type": "string"}}},
                    }}}},
                },
                "delete": {"operationId": "removePet", "tags": ["pets", "write"], "deprecated": true},
            },
            "/pets/{id}/photo": {"post": {
                "operationId": "addPhoto",
                "parameters": [{"name": "id", "in": "path", "required": true, "schema": {"type": "string"}}],
                "requestBody": {"required": true, "content": {"multipart/form-data": {}}},
            }},
            "/note": {"post": {"operationId": "addNote", "security": [], "requestBody": {"required": true, "content": {"text/plain": {}}}}},
        },
        "components": {
            "securitySchemes": {"api": {"type": "http", "scheme": "bearer"}},
            "schemas": {"Pet": {
                "type": "object", "required": ["name"],
                "properties": {
                    "id": {"type": "integer", "readOnly": true}, "name": {"type": "string"},
                    "parent": {"$ref": "#/components/schemas/Pet"}, "vaccinated": {"type": "boolean", "default": false},
                },
            }},
        },
    })
}

/// The actions of a report, by operation.
fn actions(report: &Value) -> Vec<String> {
    let word = |tool: &Value, key: &str| tool[key].as_str().unwrap_or("-").to_owned();
    let tools = report["data"]["tools"].as_array().unwrap_or_else(|| panic!("{report}"));
    tools
        .iter()
        .map(|tool| format!("{} {} {}", word(tool, "operation"), word(tool, "name"), word(tool, "action")))
        .collect()
}

#[tokio::test]
async fn a_document_becomes_callable_tools() {
    let api = anything().await;
    for version in ["3.0.3", "3.1.0"] {
        let server = Server::start().await;
        let document = petstore(version, &api.url("/v1"));
        let (status, report) = server.post(ROUTE, json!({"document": document, "bundle": "pets"})).await;
        assert_eq!(status, 200, "{report}");
        assert_eq!(
            actions(&report),
            [
                "POST /pets/{id}/photo - skipped",
                "GET /pets listPets created",
                "POST /pets addPet created",
                "PUT /pets/{id} changePet created",
                "DELETE /pets/{id} removePet created",
                "POST /note addNote created",
            ]
        );
        let data = &report["data"];
        assert_eq!((&data["created"], &data["skipped"]), (&json!(5), &json!(1)));
        assert_eq!((&data["secrets"], &data["servers"]), (&json!(["PETS_API"]), &json!([api.url("/v1")])));
        server.put("/api/credentials/PETS_API", json!({"value": "s3cret-token"})).await;
        for (tool, args, expected) in [
            (
                "listPets",
                json!({"tags": ["a b", "c"], "filter": {"age": {"min": 2}}, "X-Trace": "t1"}),
                "GET /v1/pets?tags=a%20b,c&filter%5Bage%5D%5Bmin%5D=2 | authorization: Bearer s3cret-token, x-trace: t1, accept: application/json | ",
            ),
            (
                "listPets",
                json!({"limit": 5}),
                "GET /v1/pets?limit=5 | authorization: Bearer s3cret-token, accept: application/json | ",
            ),
            (
                "pets:addPet",
                json!({"name": "Rex", "parent": {"name": "Max"}}),
                r#"POST /v1/pets | authorization: Bearer s3cret-token, content-type: application/json, accept: application/json | {"name":"Rex","parent":{"name":"Max"}}"#,
            ),
            (
                "changePet",
                json!({"id": "a/b", "body_id": "x", "tags": ["p", "q"]}),
                "PUT /v1/pets/a%2Fb | authorization: Bearer s3cret-token, content-type: application/x-www-form-urlencoded, accept: */* | id=x&tags=p&tags=q",
            ),
            (
                "removePet",
                json!({"id": "7"}),
                "DELETE /v1/pets/7 | authorization: Bearer s3cret-token, accept: */* | ",
            ),
            (
                "addNote",
                json!({"body": "plain ${words}"}),
                "POST /v1/note | content-type: text/plain, accept: */* | plain ${words}",
            ),
        ] {
            let (status, answer) = server.invoke(tool, args).await;
            assert_eq!((status, &answer["ok"]), (200, &json!(true)), "{tool} {answer}");
            assert_eq!(last(&api), expected, "{tool}");
        }
        for args in [json!({}), json!({"id": ""}), json!({"id": "1", "more": 1})] {
            let (status, answer) = server.invoke("removePet", args).await;
            assert_eq!((status, code(&answer)), (400, "invalid_arguments"), "{answer}");
        }
    }
}

#[tokio::test]
async fn a_second_import_keeps_what_people_changed() {
    let server = Server::start().await;
    let mut document = petstore("3.0.3", "https://pets.example");
    let send = async |document: &Value, more: Value| {
        let mut body = json!({"document": document});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let (status, report) = server.post(ROUTE, body).await;
        assert_eq!(status, 200, "{report}");
        report
    };
    let dry = send(&document, json!({"dry_run": true})).await;
    assert_eq!((&dry["data"]["created"], &dry["data"]["bundle"]), (&json!(5), &json!("pet-store")));
    assert_eq!(server.get("/api/tools?bundle_ids=pet-store").await.1["data"]["total"], 0);
    send(&document, json!({})).await;
    let again = send(&document, json!({})).await;
    assert_eq!(again["data"]["unchanged"], 5, "{again}");

    let (_, tool) = server.get("/api/tools/addPet").await;
    let mut edited = tool["data"].clone();
    edited["description"] = json!("Adds an animal to our own store");
    edited["policy"] = json!("elevated");
    edited["execution"]["timeout_ms"] = json!(4321);
    let (status, answer) = server.put("/api/tools/addPet", edited).await;
    assert_eq!(status, 200, "{answer}");
    server.patch("/api/tools/addPet", json!({"enabled": false})).await;

    document["paths"]["/pets"]["post"]["summary"] = json!("Adds one pet");
    document["paths"]["/pets"]["post"]["parameters"] =
        json!([{"name": "notify", "in": "query", "schema": {"type": "boolean"}}]);
    document["paths"].as_object_mut().unwrap().remove("/note");
    let third = send(&document, json!({})).await;
    assert_eq!(
        actions(&third),
        [
            "POST /pets/{id}/photo - skipped",
            "GET /pets listPets unchanged",
            "POST /pets addPet updated",
            "PUT /pets/{id} changePet unchanged",
            "DELETE /pets/{id} removePet unchanged",
            "POST /note addNote missing",
        ]
    );
    assert_eq!(third["data"]["tools"][2]["kept"], json!(["description"]));
    let (_, tool) = server.get("/api/tools/addPet").await;
    let tool = &tool["data"];
    assert_eq!(
        (
            &tool["description"],
            &tool["policy"],
            &tool["enabled"],
            &tool["execution"]["timeout_ms"],
            &tool["display_name"]
        ),
        (
            &json!("Adds an animal to our own store"),
            &json!("elevated"),
            &json!(false),
            &json!(4321),
            &json!("Adds one pet")
        )
    );
    assert_eq!(tool["implementation"]["query"], json!({"notify": "${notify}"}));
    assert_eq!((&tool["revision"], &tool["origin"]["operation"]), (&json!(3), &json!("POST /pets")));
    assert_eq!(server.get("/api/tools/addNote").await.0, 200);
    let last = send(&document, json!({"delete_missing": true})).await;
    assert_eq!(last["data"]["deleted"], 1, "{last}");
    assert_eq!(server.get("/api/tools/addNote").await.0, 404);
    let (_, audit) = server.get("/api/audit").await;
    let reported: Vec<&str> = audit["data"]["records"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|r| r["action"] == "import.openapi")
        .filter_map(|r| r["target"].as_str())
        .collect();
    assert_eq!(reported.first(), Some(&"pet-store: 0 created, 0 updated, 1 deleted"), "{audit}");
}

#[tokio::test]
async fn an_import_that_skips_every_operation_deletes_nothing() {
    let server = Server::start().await;
    let import = |paths: Value| {
        let document = json!({
            "openapi": "3.1.0", "info": {"title": "Tiny"}, "servers": [{"url": "https://a.example"}], "paths": paths,
        });
        server.post(ROUTE, json!({"document": document, "delete_missing": true}))
    };
    let (status, first) = import(json!({"/a": {"get": {"operationId": "getA"}}})).await;
    assert_eq!((status, &first["data"]["created"]), (200, &json!(1)), "{first}");
    let content = json!({"multipart/form-data": {"schema": {"type": "object"}}});
    let (_, second) =
        import(json!({"/b": {"post": {"requestBody": {"required": true, "content": content}}}})).await;
    let counts = ["skipped", "deleted", "missing"].map(|key| second["data"][key].clone());
    assert_eq!(counts, [json!(1), json!(0), json!(1)], "{second}");
    assert_eq!(server.get("/api/tools/getA").await.0, 200);
}

#[tokio::test]
async fn invalid_requests_are_reported() {
    let server = Server::start().await;
    let document = "openapi: 3.1.0\ninfo: {title: Tiny}\npaths:\n  /a: {get: {tags: [x]}}\n";
    for (body, expected) in [
        (json!({"bundle": "q"}), "missing document: set `url` or `document`"),
        (json!({"document": document, "base_url": "ftp://x"}), "`base_url`: `ftp://x` is not an `http`"),
        (
            json!({"document": document, "base_url": "https://a.example", "tags": ["y"]}),
            "`tags`: no tools were imported: none of the 1 operations matches the filters; available tags: `x`",
        ),
    ] {
        let (status, answer) = server.post(ROUTE, body).await;
        assert_eq!(status, 400, "{answer}");
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.starts_with(expected), "{message}");
    }
}

#[tokio::test]
async fn a_document_is_a_body_or_is_fetched() {
    let yaml = "openapi: 3.1.0\ninfo: {title: Tiny}\nservers: [{url: ./api}]\npaths:\n  /a: {get: {tags: [x]}}\n  /b: {get: {tags: [y]}}\n";
    let site = Upstream::serve(
        Router::new()
            .route("/docs/openapi.yaml", routing::get(move || async move { yaml }))
            .route("/large", routing::get(|| async { "x".repeat(5000) }))
            .route(
                "/away",
                routing::get(|| async { (StatusCode::FOUND, [("location", "http://169.254.169.254/x")]) }),
            )
            .fallback(|| async { StatusCode::NOT_FOUND }),
    )
    .await
    .unwrap();
    let server = Server::start_with(|settings| {
        settings.egress.private_hosts = vec!["127.0.0.1".to_owned()];
        settings.import.max_document_bytes = 4096;
    })
    .await;
    let (status, report) =
        server.post(ROUTE, json!({"url": site.url("/docs/openapi.yaml"), "tags": ["x"]})).await;
    assert_eq!((status, actions(&report)), (200, vec!["GET /a get-a created".to_owned()]), "{report}");
    assert_eq!(report["data"]["servers"], json!([site.url("/docs/api")]));
    let bare = server.request(
        reqwest::Method::POST,
        &format!("{ROUTE}?bundle=mine&base_url=https://b.example&include=GET%20/b"),
    );
    let (status, report) = send(bare.header("content-type", "application/yaml").body(yaml)).await;
    assert_eq!((status, actions(&report)), (200, vec!["GET /b get-b created".to_owned()]), "{report}");
    assert_eq!(
        (&report["data"]["bundle"], &report["data"]["servers"]),
        (&json!("mine"), &json!(["https://b.example"]))
    );

    for (body, expected) in [
        (json!({"url": site.url("/gone")}), (400, "the server responded with status 404 Not Found")),
        (
            json!({"url": site.url("/large")}),
            (413, "the document exceeds the limit of 4096 bytes (`import.max_document_bytes`)"),
        ),
        (json!({"url": site.url("/away")}), (400, "add it to `egress.private_hosts` to allow it")),
        (json!({"url": "http://10.0.0.1/x"}), (400, "add it to `egress.private_hosts` to allow it")),
        (json!({"url": "file:///etc/passwd"}), (400, "the scheme `file` is not supported")),
        (json!({"url": "nothing"}), (400, "invalid URL")),
        (json!({"url": "http://a", "document": {}}), (400, "set either `url` or `document`, not both")),
        (json!({"document": {}, "tag": "x"}), (400, "unknown field `tag`")),
        (json!({"document": {}, "bundle": "a b"}), (400, "bundle name `a b` contains ' '")),
        (json!({"document": "swagger: '2.0'"}), (400, "missing `paths`")),
        (json!({"document": "x".repeat(5000)}), (413, "the document has 5000 bytes; the limit is 4096")),
        (json!({"document": "x".repeat(90_000)}), (413, "`import.max_document_bytes`")),
        (json!({"openapi": "3.0.0", "paths": {"/a": {"get": {}}}}), (400, "the document has no server")),
        (json!({"paths": {}}), (400, "missing field `openapi`")),
    ] {
        let (status, answer) = server.post(ROUTE, body.clone()).await;
        let message = answer["error"]["message"].as_str().unwrap_or_default();
        assert!(status == expected.0 && message.contains(expected.1), "{body}: {status} {answer}");
    }
}

#[tokio::test]
async fn only_editors_import_and_only_into_open_bundles() {
    let server = Server::start().await;
    let body = json!({"document": petstore("3.0.3", "https://pets.example"), "bundle": "pets"});
    let (_, token) = server.post("/api/tokens", json!({"name": "reader", "role": "caller"})).await;
    let reader =
        server.bare(reqwest::Method::POST, ROUTE).bearer_auth(token["data"]["token"].as_str().unwrap());
    assert_eq!(send(reader.body(body.to_string())).await.0, 403);
    assert_eq!(server.post(ROUTE, body.clone()).await.0, 200);
    server.patch("/api/tools/bundles/pets", json!({"enabled": false})).await;
    let (status, answer) = server.post(ROUTE, body).await;
    assert_eq!((status, code(&answer)), (409, "disabled"), "{answer}");
}

/// Ten operations of GitHub's description, which `tools/setup test` fetches.
#[tokio::test]
async fn operations_of_github_are_called() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/test-data/github-openapi.json");
    let Ok(text) = std::fs::read_to_string(path) else {
        skip(Prerequisite::GithubDescription, "the description of GitHub's API has not been fetched");
        return;
    };
    let api = anything().await;
    let server = Server::start().await;
    server.put("/api/credentials/GITHUB_TOKEN", json!({"value": "gh-token-1"})).await;
    let cases = [
        ("repos/get", json!({"owner": "o", "repo": "r"}), "GET /repos/o/r", ""),
        (
            "issues/list-for-repo",
            json!({"owner": "o", "repo": "r", "labels": "bug,ui", "per_page": 5}),
            "GET /repos/o/r/issues?labels=bug%2Cui&per_page=5",
            "",
        ),
        (
            "issues/create",
            json!({"owner": "o", "repo": "r", "title": "It \"breaks\"", "labels": ["bug"]}),
            "POST /repos/o/r/issues",
            r#"{"title":"It \"breaks\"","labels":["bug"]}"#,
        ),
        // What was not named is not sent: the defaults would make a private repository public.
        (
            "repos/update",
            json!({"owner": "o", "repo": "r", "archived": true}),
            "PATCH /repos/o/r",
            r#"{"archived":true}"#,
        ),
        (
            "issues/add-labels",
            json!({"owner": "o", "repo": "r", "issue_number": 3, "body": {"labels": ["a", "b"]}}),
            "POST /repos/o/r/issues/3/labels",
            r#"{"labels":["a","b"]}"#,
        ),
        (
            "search/repos",
            json!({"q": "haft in:name&sort"}),
            "GET /search/repositories?q=haft%20in%3Aname%26sort",
            "",
        ),
        ("markdown/render-raw", json!({"body": "# Hi"}), "POST /markdown/raw", "# Hi"),
        (
            "pulls/merge",
            json!({"owner": "o", "repo": "r", "pull_number": 9, "merge_method": "squash"}),
            "PUT /repos/o/r/pulls/9/merge",
            r#"{"merge_method":"squash"}"#,
        ),
        ("repos/delete", json!({"owner": "o", "repo": "r"}), "DELETE /repos/o/r", ""),
        (
            "repos/get-content",
            json!({"owner": "o", "repo": "r", "path": "src/main.rs", "ref": "main"}),
            "GET /repos/o/r/contents/src%2Fmain.rs?ref=main",
            "",
        ),
    ];
    let chosen: Vec<&str> = cases.iter().map(|(id, ..)| *id).collect();
    let body = json!({
        "document": text, "bundle": "github", "base_url": api.url(""), "include": chosen,
        "auth": {"type": "bearer", "token": "${GITHUB_TOKEN}"},
    });
    let (status, report) = server.post(ROUTE, body).await;
    assert_eq!((status, &report["data"]["created"]), (200, &json!(10)), "{report}");
    for (id, args, expected, body) in cases {
        let (status, answer) = server.invoke(&format!("github:{}", id.replace('/', "-")), args).await;
        assert_eq!((status, &answer["ok"]), (200, &json!(true)), "{id} {answer}");
        let seen = api.seen().pop().unwrap();
        assert_eq!(
            (format!("{} {}", seen.method, seen.target), seen.body),
            (expected.to_owned(), body.to_owned()),
            "{id}"
        );
        assert_eq!(seen.headers["authorization"], "Bearer gh-token-1", "{id}");
    }
}

#[tokio::test]
async fn multipart_forms_are_rejected() {
    let server = Server::start().await;
    let form = "--x\r\nContent-Disposition: form-data; name=\"file\"\r\n\r\nopenapi: 3.1.0\r\n--x--\r\n";
    let request = server.request(reqwest::Method::POST, ROUTE).body(form);
    let answer = request.header("content-type", "multipart/form-data; boundary=x").send().await.unwrap();
    assert_eq!(answer.status(), 415);
    let text = answer.text().await.unwrap();
    assert!(text.contains("send the document as the request body"), "{text}");
}

/// Every kind of description through one route, with calls of the tools that come of them.
#[tokio::test]
async fn every_kind_of_description_becomes_callable_tools() {
    let api = anything().await;
    let graphql = Upstream::serve(
        Router::new().fallback(|| async { Json(json!({"data": {"pet": {"name": "Rex"}}, "errors": []})) }),
    )
    .await
    .unwrap();
    let server = Server::start().await;
    let host = api.url("").trim_start_matches("http://").to_owned();
    let swagger = json!({
        "swagger": "2.0", "info": {"title": "Swagger", "version": "1"}, "host": host, "basePath": "/v1", "schemes": ["http"],
        "paths": {"/files/{id}": {"post": {"operationId": "upload", "responses": {}, "parameters": [
            {"name": "id", "in": "path", "required": true, "type": "string"},
            {"name": "file", "in": "formData", "type": "file", "required": true},
            {"name": "note", "in": "formData", "type": "string"},
        ]}}},
    });
    let postman = json!({"info": {"name": "Postman", "_postman_id": "1"}, "variable": [{"key": "base", "value": api.url("/v2")}],
        "item": [{"name": "find", "request": {"method": "GET", "url": "{{base}}/users/:user?limit=10"}}]});
    let bruno = json!({"files": {"find.bru": format!("meta {{\n  name: search\n}}\nget {{\n  url: {}/search?q={{{{q}}}}\n}}\n", api.url("/v3"))}});
    for (bundle, document) in [("sw", &swagger), ("po", &postman), ("br", &bruno)] {
        let (status, report) =
            server.post("/api/import/api", json!({"document": document, "bundle": bundle})).await;
        assert_eq!((status, &report["data"]["created"]), (200, &json!(1)), "{report}");
    }
    let schema = "type Query { pet(id: ID!): Pet } type Pet { name: String }";
    let request = json!({"document": schema, "base_url": graphql.url("/graphql"), "bundle": "gq"});
    let (status, report) = server.post("/api/import/api", request).await;
    assert_eq!((status, &report["data"]["created"]), (200, &json!(1)), "{report}");

    let (status, answer) =
        server.invoke("sw:upload", json!({"id": "7", "file": {"base64": "aGVsbG8=", "name": "a.txt"}})).await;
    assert_eq!(status, 200, "{answer}");
    let seen = api.seen().pop().unwrap();
    assert!(
        seen.body.contains("form-data; name=\"file\"; filename=\"a.txt\"") && seen.body.contains("hello"),
        "{}",
        seen.body
    );
    assert_eq!(server.invoke("po:find", json!({"user": "me"})).await.0, 200);
    assert!(last(&api).starts_with("GET /v2/users/me?limit=10 "), "{}", last(&api));
    assert_eq!(server.invoke("br:search", json!({"q": "a b"})).await.0, 200);
    assert!(last(&api).starts_with("GET /v3/search?q=a%20b "), "{}", last(&api));
    let (status, answer) = server.invoke("gq:pet", json!({"id": "1"})).await;
    assert_eq!((status, &answer["value"]), (200, &json!({"pet": {"name": "Rex"}})), "{answer}");
    let sent: Value = serde_json::from_str(&graphql.seen().pop().unwrap().body).unwrap();
    assert_eq!(
        sent,
        json!({"query": "query pet($id: ID!) { pet(id: $id) { name } }", "operationName": "pet", "variables": {"id": "1"}})
    );
    let (status, answer) = server.post("/api/import/api", json!({"document": {}, "kind": "raml"})).await;
    assert_eq!((status, code(&answer)), (400, "invalid_request"), "{answer}");
}

#[tokio::test]
async fn a_graphql_endpoint_is_asked_for_its_schema() {
    let schema = json!({"data": {"__schema": {"queryType": {"name": "Query"}, "types": [
        {"kind": "OBJECT", "name": "Query", "fields": [{"name": "version", "args": [], "type": {"kind": "SCALAR", "name": "String"}}]},
    ]}}});
    let endpoint = Upstream::serve(Router::new().route(
        "/graphql",
        routing::post(move || {
            let schema = schema.clone();
            async move { Json(schema) }
        }),
    ))
    .await
    .unwrap();
    let server = Server::start().await;
    let (status, report) =
        server.post("/api/import/api", json!({"url": endpoint.url("/graphql"), "dry_run": true})).await;
    assert_eq!(status, 200, "{report}");
    assert_eq!(actions(&report), ["query version version created"]);
    assert!(endpoint.seen().pop().unwrap().body.contains("__schema"));
}
