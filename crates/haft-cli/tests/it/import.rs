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
fn a_description_becomes_tools_that_are_called() {
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
            insta::assert_snapshot!(import(&["--dry-run"]), @"");
            insta::assert_snapshot!(import(&[]), @"");
            insta::assert_snapshot!(import(&["--tag", "weather"]), @"");
            insta::assert_snapshot!(import(&["--tag", "none"]), @"");
        }
        assert_eq!(haft.run_with(&["secret", "set", "WEATHER_KEY"], "k1").code, 0);
        let called =
            haft.json(&["tool", "call", "weather:current", "-a", "city=Oslo", "-a", "units:=[\"C\",\"F\"]"]);
        assert_eq!(called["value"]["target"], "/v1/current/Oslo?units=C,F", "{called}");
    }
}

#[test]
fn what_is_no_description_is_told() {
    let haft = Haft::new();
    let file = haft.write("old.yaml", "swagger: '2.0'\npaths: {}\n");
    insta::assert_snapshot!(haft.run(&["import", "openapi", &file]).shown(), @"");
    insta::assert_snapshot!(haft.run(&["import", "openapi", "gone.yaml"]).shown(), @"");
    insta::assert_snapshot!(haft.run(&["import", "openapi", "http://127.0.0.1:9/x.json"]).shown(), @"");
}
