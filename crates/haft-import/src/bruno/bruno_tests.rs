//! Bruno collections.

use std::collections::BTreeMap;

use serde_json::json;

use super::read;
use crate::api::{ApiImport, ImportOptions};
use haft_core::implementation::{Auth, Http, Implementation};

fn files(list: &[(&str, &str)]) -> BTreeMap<String, String> {
    list.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect()
}

fn http(import: &ApiImport, index: usize) -> &Http {
    let Implementation::Http(http) = &import.tools[index].spec.implementation else { panic!("not http") };
    http
}

const REQUEST: &str = r#"meta {
  name: Create order
  type: http
  seq: 1
}

post {
  url: {{baseUrl}}/users/:user/orders?dry=true
  body: json
  auth: inherit
}

params:query {
  dry: true
  ~page: 2
}

params:path {
  user: me
}

headers {
  X-Trace: on
  ~X-Off: 1
}

body:json {
  {
    "item": "book",
    "note": "{{region}}"
  }
}

script:pre-request {
  bru.setVar("a", 1);
}

docs {
  Creates an order.
}
"#;

#[test]
fn a_folder_becomes_tools() {
    let files = files(&[
        ("shop/bruno.json", r#"{"version": "1", "name": "Shop", "type": "collection"}"#),
        ("shop/collection.bru", "auth {\n  mode: bearer\n}\n\nauth:bearer {\n  token: {{token}}\n}\n"),
        (
            "shop/environments/prod.bru",
            "vars {\n  baseUrl: https://shop.example\n  region: eu\n}\nvars:secret [\n  token\n]\n",
        ),
        ("shop/Orders/create.bru", REQUEST),
        (
            "shop/Orders/upload.bru",
            "post {\n  url: https://shop.example/files\n  body: multipartForm\n}\n\nbody:multipart-form {\n  doc: @file(/etc/passwd)\n  n: 1\n}\n",
        ),
        ("shop/broken.bru", "get {\n  url: https://shop.example\n"),
        ("shop/readme.md", "# Shop"),
    ]);
    let import = read(&files, &ImportOptions::default()).unwrap();
    assert_eq!((import.title.as_str(), import.tools.len()), ("Shop", 2));
    let create = http(&import, 0);
    assert_eq!(create.request.url, "https://shop.example/users/${user}/orders");
    assert_eq!(create.request.body, Some(json!({"item": "${item}", "note": "${region}"})));
    assert_eq!(create.auth, Some(Auth::Bearer { token: "${SHOP_TOKEN}".into() }));
    assert_eq!(create.request.headers.keys().collect::<Vec<_>>(), ["Content-Type", "X-Trace"]);
    let spec = &import.tools[0].spec;
    assert_eq!(
        (spec.name.as_str(), spec.description.as_str()),
        ("Create-order", "Create order\n\nCreates an order.")
    );
    assert_eq!(spec.tags, ["Orders"]);
    assert_eq!(http(&import, 1).request.files, ["doc"]);
    let codes: Vec<&str> = import.warnings.iter().map(|warning| warning.code.as_str()).collect();
    assert_eq!(codes, ["scripts_ignored", "syntax"]);
}

#[test]
fn hostile_files_are_bounded() {
    for text in [
        "get {\n}\n".repeat(200),
        format!("get {{\n{}\n}}\n", "  url: x\n".repeat(100_000)),
        "get {\n  url: ${HOME}\n  \"a: b\n  '''\n}\nvars:secret [\n  a\n]\n".to_owned(),
        "{\n}\n[\n]\n".repeat(1000),
    ] {
        let import = read(&files(&[("a.bru", &text)]), &ImportOptions::default());
        assert!(import.is_err() || import.is_ok_and(|import| import.tools.len() <= 1));
    }
}
