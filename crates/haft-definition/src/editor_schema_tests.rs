use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use haft_core::catalog::FileForm;
use jsonschema::{Draft, Validator};
use serde_json::json;

use super::*;
use crate::dialect::test_support::value_of;
use crate::dialect::{Defaults, UNKNOWN_FIELD, form_of_extension, read};

/// Returns the violations of the schema of a kind.
pub(crate) fn violations(kind: SchemaKind, value: &Value) -> Vec<String> {
    static VALIDATORS: OnceLock<Vec<Validator>> = OnceLock::new();
    let build =
        |kind: SchemaKind| jsonschema::options().with_draft(Draft::Draft7).build(&kind.schema()).unwrap();
    let validators = VALIDATORS.get_or_init(|| SchemaKind::ALL.map(build).into_iter().collect());
    let index = SchemaKind::ALL.iter().position(|one| *one == kind).unwrap();
    let errors = validators[index].iter_errors(value);
    errors.map(|error| format!("{}: {error}", error.instance_path().as_str())).collect()
}

/// Returns the files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found
}

/// Returns every definition in `examples/`, and every block of YAML or JSON in the documentation.
fn written_definitions() -> Vec<(String, FileForm, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut found = Vec::new();
    for path in files(&root.join("examples")) {
        let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        if let Some(form) = form_of_extension(extension) {
            found.push((path.display().to_string(), form, std::fs::read_to_string(&path).unwrap()));
        }
    }
    for path in files(&root.join("docs")) {
        if path.extension().is_none_or(|extension| extension != "md") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        for (index, block) in text.split("\n```").enumerate().skip(1).step_by(2) {
            let (language, content) = block.split_once('\n').unwrap_or((block, ""));
            let form = match language.trim() {
                "yaml" => FileForm::Yaml,
                "json" => FileForm::Json,
                _ => continue,
            };
            found.push((format!("{} block {index}", path.display()), form, content.to_owned()));
        }
    }
    found
}

fn has_unknown_field(warnings: &[haft_core::problem::Problem]) -> bool {
    warnings.iter().any(|warning| warning.code == UNKNOWN_FIELD)
}

/// Returns the kinds whose readers accept a text without an unknown key.
fn kinds_that_accept(text: &str, form: FileForm) -> Vec<SchemaKind> {
    let mut kinds = Vec::new();
    if read(text, form, &Defaults { name: Some("x".to_owned()), version: None })
        .is_ok_and(|parsed| !has_unknown_field(&parsed.warnings))
    {
        kinds.push(SchemaKind::Tool);
    }
    if form != FileForm::Skill {
        let is_agent = text.contains("model") || text.contains("instructions") || text.contains("agents");
        let agents = crate::agent::read(text, "x");
        if is_agent && agents.is_ok_and(|found| found.iter().all(|one| !has_unknown_field(&one.warnings))) {
            kinds.push(SchemaKind::Agent);
        }
        if crate::pipeline::read(text, "x").is_ok_and(|found| !has_unknown_field(&found.warnings)) {
            kinds.push(SchemaKind::Pipeline);
        }
        let artifact = crate::code_artifact::read(text, "x", |_| Some(b"echo 1\n".as_slice().into()));
        if artifact.is_ok_and(|found| !has_unknown_field(&found.warnings)) {
            kinds.push(SchemaKind::Artifact);
        }
        if crate::policy::read(text).is_ok() {
            kinds.push(SchemaKind::Policy);
        }
    }
    kinds
}

#[test]
fn what_the_readers_accept_is_valid() {
    let mut counts = [0; SchemaKind::ALL.len()];
    let mut failures = Vec::new();
    for (place, form, text) in written_definitions() {
        for kind in kinds_that_accept(&text, form) {
            let Some(value) = value_of(&text, form).filter(|value| !value.is_null()) else { continue };
            counts[SchemaKind::ALL.iter().position(|one| *one == kind).unwrap()] += 1;
            failures.extend(
                violations(kind, &value).into_iter().map(|error| format!("{place}: {kind:?}: {error}")),
            );
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    let [tools, agents, pipelines, artifacts, _, _, policies, _] = counts;
    assert!(tools > 20 && agents > 3 && pipelines > 0 && artifacts > 0 && policies > 0, "{counts:?}");
}

#[test]
fn every_spelling_is_valid() {
    let request =
        json!({"method": "GET", "urlTemplate": "https://example.com/${city}", "extractExpr": "$.a"});
    let tools = [
        json!({"name": "a", "type": "http", "argSchema": {"type": "object"}, "impl": request, "displayName": "A"}),
        json!({"slug": "a", "name": "A b", "implementation_type": "go", "implementation_config": {"goFunc": "now"}}),
        json!({"name": "a", "parameters": {}, "runtime": "bash", "body": "echo", "requiresConfirmation": true}),
        json!({"name": "a", "artifact_id": "count", "artifact_version": 3, "execution_config": {"timeout": "3s"}}),
        json!({"name": "a", "implementation": {"type": "steps", "steps": {"one": {"tool": "x", "needs": "y"}}}}),
        json!({"name": "a", "version": 1.5, "params": [{"name": "p", "required": true, "items": {"type": "string"}}],
               "implementation": {"type": "exec", "argv": ["echo", 1], "timeout": 3}}),
    ];
    for tool in tools {
        assert_eq!(violations(SchemaKind::Tool, &tool), [""; 0], "{tool}");
    }
    let agents = [
        json!({"slug": "a", "model": "m", "maxIterations": 3, "tools": ["a", "!b", {"name": "c"}]}),
        json!({"agents": {"a": {"model": {"name": "m", "baseUrl": "http://x"}}}, "model": "m", "budget": {"calls": 3}}),
        json!([{"slug": "a", "model": "m"}]),
    ];
    for agent in agents {
        assert_eq!(violations(SchemaKind::Agent, &agent), [""; 0], "{agent}");
    }
    assert_eq!(violations(SchemaKind::Bundle, &json!({"description": "d", "enabled": true})), [""; 0]);
}

#[test]
fn mistakes_are_not_valid() {
    let http = json!({"type": "http", "url": "https://example.com"});
    for (kind, value, part) in [
        (SchemaKind::Tool, json!({"name": "a", "implementation": http, "descripton": "d"}), "descripton"),
        (SchemaKind::Tool, json!({"name": "a", "implementation": {"type": "http", "urll": "x"}}), "urll"),
        (SchemaKind::Tool, json!({"name": "a", "implementation": {"type": "htpp"}}), "htpp"),
        (SchemaKind::Tool, json!({"name": "a", "implementation": http, "tags": "x"}), "/tags"),
        (SchemaKind::Tool, json!({"name": "a", "implementation": http, "policy": "ask"}), "ask"),
        (
            SchemaKind::Tool,
            json!({"name": "a", "params": [{"name": "p", "tpye": "string"}], "implementation": http}),
            "/params",
        ),
        (SchemaKind::Tool, json!({"name": "a"}), "under any of the"),
        (SchemaKind::Agent, json!({"slug": "a", "model": "m", "instructons": "x"}), "instructons"),
        (SchemaKind::Agent, json!({"agents": {"a": {"tolls": []}}}), "/agents"),
        (SchemaKind::Agent, json!({"slug": "a", "budget": {"calls": "many"}}), "/budget/calls"),
        (SchemaKind::Pipeline, json!({"slug": "a", "chunking": {"size": 1}}), "/chunking/size"),
        (SchemaKind::Pipeline, json!({"slug": "a", "chunkin": {}}), "chunkin"),
        (SchemaKind::Artifact, json!({"runtime": "cobol", "source": "x"}), "cobol"),
        (SchemaKind::Artifact, json!({"runtime": "bash"}), "under any of the"),
        (SchemaKind::Bundle, json!({"enabled": "yes"}), "/enabled"),
        (SchemaKind::Bundle, json!({"name": "x"}), "name"),
        (SchemaKind::Policy, json!({"rules": [{"name": "a", "effect": "ask"}]}), "ask"),
        (
            SchemaKind::Policy,
            json!({"rules": [{"name": "a", "effect": "deny", "match": {"tols": []}}]}),
            "tols",
        ),
        (
            SchemaKind::Toolset,
            json!({"manifest_version": "1", "id": "a", "version": "1.0.0", "tool": []}),
            "tool",
        ),
        (SchemaKind::Config, json!({"server": {"max_bdy_bytes": 1}}), "max_bdy_bytes"),
        (SchemaKind::Config, json!({"addr": 1}), "/addr"),
    ] {
        let found = violations(kind, &value).join("\n");
        assert!(found.contains(part), "{value}: {found}");
    }
}

#[test]
fn schemas_have_a_title_and_no_dangling_reference() {
    for kind in SchemaKind::ALL {
        let schema = kind.schema();
        assert_eq!(schema["$schema"], "http://json-schema.org/draft-07/schema#");
        assert_eq!(SchemaKind::parse(kind.as_str()), Some(kind));
        let mut references = Vec::new();
        collect(&schema, &mut references);
        for reference in references {
            assert!(schema.pointer(reference.trim_start_matches('#')).is_some(), "{kind:?}: {reference}");
        }
    }
}

fn collect<'a>(value: &'a Value, into: &mut Vec<&'a str>) {
    match value {
        Value::Object(map) => {
            into.extend(map.get("$ref").and_then(Value::as_str));
            map.values().for_each(|value| collect(value, into));
        }
        Value::Array(items) => items.iter().for_each(|value| collect(value, into)),
        _ => {}
    }
}
