//! `haft import openapi`: the same with a running server and without one.

use crate::harness::Haft;
use crate::upstream;

const DOCUMENT: &str = "openapi: 3.0.3
info: {title: Weather, version: '2'}
servers: [{url: /v1}]
components:
  securitySchemes:
    key: {type: apiKey, in: header, name: X-Key}
security: [{key: []}]
paths:
  /current/{city}:
    get:
      operationId: current
      summary: Current weather of a city
      tags: [weather]
      parameters:
        - {name: city, in: path, required: true, schema: {type: string}}
        - {name: units, in: query, explode: false, schema: {type: array, items: {type: string}}}
  /photos:
    post:
      operationId: addPhoto
      requestBody: {required: true, content: {multipart/form-data: {}}}
";

#[test]
fn an_openapi_document_becomes_callable_tools() {
    let api = upstream::start();
    for with_server in [false, true] {
        let haft = Haft::new();
        haft.write("home/haft.toml", "[egress]\nprivate_hosts = [\"127.0.0.1\"]\n");
        let _server = with_server.then(|| haft.serve(&[]));
        let file = haft.write("weather.yaml", DOCUMENT);
        let base = format!("http://{api}/v1");
        let import = |more: &[&str]| {
            let run = haft.run(&[&["import", "openapi", &file, "--base-url", &base], more].concat());
            run.shown().replace(&base, "BASE")
        };
        insta::allow_duplicates! {
            insta::assert_snapshot!(import(&["--dry-run"]), @"
            exit code: 0
            ----- stdout
            OPERATION            TOOL     ACTION   NOTE
            POST /photos                  skipped  unsupported request body `multipart/form-data`
            GET /current/{city}  current  created
            ----- stderr
            dry run: 1 created, 1 skipped in bundle `weather`; requests go to `BASE`
            store these secrets with `haft secret set NAME`: `WEATHER_KEY`
            ");
            insta::assert_snapshot!(import(&[]), @"
            exit code: 0
            ----- stdout
            OPERATION            TOOL     ACTION   NOTE
            POST /photos                  skipped  unsupported request body `multipart/form-data`
            GET /current/{city}  current  created
            ----- stderr
            1 created, 1 skipped in bundle `weather`; requests go to `BASE`
            store these secrets with `haft secret set NAME`: `WEATHER_KEY`
            ");
            insta::assert_snapshot!(import(&["--tag", "weather"]), @"
            exit code: 0
            ----- stdout
            OPERATION            TOOL     ACTION     NOTE
            GET /current/{city}  current  unchanged
            ----- stderr
            1 unchanged in bundle `weather`; requests go to `BASE`
            store these secrets with `haft secret set NAME`: `WEATHER_KEY`
            ");
            insta::assert_snapshot!(import(&["--path", "/photos"]), @"
            exit code: 8
            ----- stdout
            OPERATION     TOOL  ACTION   NOTE
            POST /photos        skipped  unsupported request body `multipart/form-data`
            ----- stderr
            1 skipped in bundle `weather`
            error: no tools were imported: the operation was skipped: unsupported request body `multipart/form-data`
            ");
            insta::assert_snapshot!(import(&["--tag", "none"]), @"
            exit code: 8
            ----- stdout
            ----- stderr
            error: `tags`: no tools were imported: none of the 2 operations matches the filters; available tags: `weather`
            ");
        }
        assert_eq!(haft.run_with(&["secret", "set", "WEATHER_KEY"], "k1").code, 0);
        let called =
            haft.json(&["tool", "call", "weather:current", "-a", "city=Oslo", "-a", "units:=[\"C\",\"F\"]"]);
        assert_eq!(called["value"]["target"], "/v1/current/Oslo?units=C,F", "{called}");
    }
}

#[test]
fn an_invalid_document_is_reported() {
    let haft = Haft::new();
    let file = haft.write("old.yaml", "swagger: '1.2'\npaths: {}\n");
    insta::assert_snapshot!(haft.run(&["import", "openapi", &file]).shown(), @"
    exit code: 8
    ----- stdout
    ----- stderr
    error: `swagger`: Swagger 1.2 is not supported; supported are Swagger 2.0 and OpenAPI 3
    ");
    insta::assert_snapshot!(haft.run(&["import", "openapi", "gone.yaml"]).shown(), @"
    exit code: 1
    ----- stdout
    ----- stderr
    error: cannot read `gone.yaml`: No such file or directory (os error 2)
    ");
    insta::assert_snapshot!(haft.run(&["import", "openapi", "http://127.0.0.1:9/x.json"]).shown(), @"
    exit code: 8
    ----- stdout
    ----- stderr
    error: cannot fetch `http://127.0.0.1:9/x.json`: `127.0.0.1` is a loopback address: add it to `egress.private_hosts` to allow it
    ");
}
