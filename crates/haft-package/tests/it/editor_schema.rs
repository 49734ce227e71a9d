//! The schema for editors accepts the manifests that the reader accepts, and rejects mistakes.

use std::path::Path;

use haft_definition::dialect::{UNKNOWN_FIELD, YamlDocument};
use haft_definition::editor_schema::SchemaKind;
use haft_package::manifest::{self, LIMITS};
use jsonschema::{Draft, Validator};
use serde_json::json;

fn validator() -> Validator {
    jsonschema::options().with_draft(Draft::Draft7).build(&SchemaKind::Toolset.schema()).unwrap()
}

/// Returns the manifests in `examples/`, in the documentation, and of new toolsets.
fn manifests() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut found = Vec::new();
    for entry in std::fs::read_dir(root.join("examples/toolsets")).unwrap() {
        let path = entry.unwrap().path().join("toolset.yaml");
        if let Ok(text) = std::fs::read_to_string(&path) {
            found.push((path.display().to_string(), text));
        }
    }
    for entry in std::fs::read_dir(root.join("docs")).unwrap() {
        let path = entry.unwrap().path();
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        let blocks = text.split("\n```yaml\n").skip(1).filter_map(|block| block.split("\n```").next());
        let manifests = blocks.filter(|block| block.contains("manifest_version"));
        found.extend(manifests.map(|block| (path.display().to_string(), block.to_owned())));
    }
    let skeleton = haft_package::skeleton::skeleton("reports").unwrap();
    found.push(("skeleton".to_owned(), skeleton.text("toolset.yaml").unwrap().to_owned()));
    found
}

#[test]
fn manifests_are_valid() {
    let validator = validator();
    let mut count = 0;
    for (place, text) in manifests() {
        let Ok(reading) = manifest::parse(&text) else { continue };
        if reading.warnings.iter().any(|warning| warning.code == UNKNOWN_FIELD) {
            continue;
        }
        count += 1;
        let value = YamlDocument::parse(&text, LIMITS).unwrap().take_value();
        let errors: Vec<String> = validator
            .iter_errors(&value)
            .map(|error| format!("{}: {error}", error.instance_path().as_str()))
            .collect();
        assert_eq!(errors, [""; 0], "{place}");
    }
    assert!(count >= 4, "{count}");
}

#[test]
fn mistakes_are_not_valid() {
    let validator = validator();
    let head = json!({"manifest_version": "1", "id": "a", "version": "1.0.0"});
    for (key, value) in [
        ("tools", json!([{"id": "a", "entrypont": "tools.a:run"}])),
        ("tools", json!([{"id": "a", "entrypoint": "tools.a:run", "permissions": {"net": true}}])),
        ("mcp_servers", json!([{"id": "a", "comand": "x"}])),
        ("dependencies", json!("requests")),
    ] {
        let mut manifest = head.clone();
        manifest["tools"] = json!([]);
        assert!(validator.is_valid(&manifest));
        manifest[key] = value;
        assert!(!validator.is_valid(&manifest), "{manifest}");
    }
}
