//! The registry form: `implementation_type`, `implementation_config`, `execution_config`.

use serde_json::{Map, Value};

use super::canonical;
use super::draft::{self, Draft, Finished};
use super::execution;
use super::fields::{Fields, conflict, unknown};
use super::implementation::{DEPENDENCIES, Reader};
use super::reading::Defaults;
use haft_core::implementation::{Kind, Notation};

/// The types of this dialect; the other types of haft are accepted, too.
const TYPES: [&str; 9] =
    ["internal", "http", "rag_retrieval", "agent_call", "function", "custom", "artifact", "mcp", "steps"];

pub(super) fn read(mut fields: Fields<'_>, defaults: &Defaults) -> Option<Finished> {
    let mut draft = Draft::default();
    draft::names(&mut fields, &mut draft, "slug", defaults);
    schemas(&mut fields, &mut draft);
    let mut blocks = blocks(&mut fields);
    let kind = kind(&mut fields, &mut blocks.implementation);
    let is_built_in = kind == Some(Kind::Function) && fields.has("builtin_key");
    top_level_settings(&mut fields, &mut blocks.implementation, kind);
    if let Some(kind) = kind {
        let reader = Reader {
            notation: Notation::Dollar,
            inline_config: is_built_in || matches!(kind, Kind::Artifact | Kind::RagRetrieval),
        };
        required(&blocks.implementation, kind);
        draft.take(reader.read(&mut blocks.implementation, kind));
    } else {
        blocks.implementation.rest();
    }
    draft.execution = blocks.execution.map(|mut block| execution::read(&mut block));
    drop(blocks.implementation);
    draft.finish(fields, defaults)
}

/// `schema` contains both schemas, or is the input schema.
fn schemas(fields: &mut Fields<'_>, draft: &mut Draft) {
    draft.input_schema = draft::input_schema(fields);
    draft.output_schema = draft::output_schema(fields);
    let Some(map) = fields.object("schema") else { return };
    let both = map.contains_key("input") || map.contains_key("output");
    let (input, output) = if both {
        let mut schema = Fields::new("schema", map, fields.report());
        (draft::schema(&mut schema, "input"), draft::schema(&mut schema, "output"))
    } else {
        ((!map.is_empty()).then_some(Value::Object(map)), None)
    };
    for (slot, found) in [(&mut draft.input_schema, input), (&mut draft.output_schema, output)] {
        let Some(found) = found else { continue };
        if slot.as_ref().is_some_and(|own| *own != found) {
            fields.error(
                "schema",
                "conflicting_fields",
                "conflicts with `input_schema` or `output_schema`; remove one",
            );
        }
        *slot = Some(found);
    }
}

struct Blocks<'r> {
    implementation: Fields<'r>,
    execution: Option<Fields<'r>>,
}

/// Returns the two blocks, from the top level or from `config_schema`, where the registry stores them.
fn blocks<'r>(fields: &mut Fields<'r>) -> Blocks<'r> {
    let report = fields.report();
    let mut implementation = fields.nested("implementation_config");
    let mut execution = fields.nested("execution_config");
    if let Some(mut stored) = fields.nested("config_schema") {
        for (key, slot) in [("implementation", &mut implementation), ("execution", &mut execution)] {
            let Some(block) = stored.nested(key) else { continue };
            if slot.is_some() {
                stored.error(
                    key,
                    "conflicting_fields",
                    format!("conflicts with `{key}_config`; remove one of them"),
                );
            }
            *slot = Some(block);
        }
    }
    let implementation =
        implementation.unwrap_or_else(|| Fields::new("implementation_config", Map::new(), report));
    Blocks { implementation, execution }
}

/// `implementation_type` takes precedence; the `type` of the configuration is the fallback, also for `custom`.
fn kind(fields: &mut Fields<'_>, config: &mut Fields<'_>) -> Option<Kind> {
    let outer = fields.alias(&["implementation_type", "type"]).and_then(|key| fields.text(key));
    let inner = config.text("type");
    let (word, field) = match (outer.as_deref(), inner) {
        (Some("custom"), Some(inner)) if inner != "custom" => (inner, "implementation_config.type"),
        (Some(outer), _) => (outer.to_owned(), "implementation_type"),
        (None, Some(inner)) => (inner, "implementation_config.type"),
        (None, None) if fields.has("artifact_id") => return Some(Kind::Artifact),
        (None, None) if fields.has("builtin_key") => return Some(Kind::Function),
        (None, None) => {
            fields.missing("implementation_type", &format!("one of {}", TYPES.join(", ")));
            return None;
        }
    };
    if word == "custom" {
        let message = "`custom` is not an implementation; set `type` in `implementation_config`";
        fields.error("implementation_type", "missing_field", message);
        return None;
    }
    let kind = Kind::parse(&word);
    if kind.is_none() {
        fields.report().error(field, "unknown_type", unknown("implementation type", &word, &TYPES));
    }
    kind
}

/// Moves settings of the top level to the configuration; those of another kind are reported as unknown.
fn top_level_settings(fields: &mut Fields<'_>, config: &mut Fields<'_>, kind: Option<Kind>) {
    let keys: &[(&str, &str)] = match kind {
        Some(Kind::Artifact) => &[("artifact_id", "artifact_id"), ("artifact_version", "artifact_version")],
        Some(Kind::Function) => &[("builtin_key", "function")],
        Some(Kind::Script) => &[("runtime", "runtime"), ("body", "body"), ("output", "output")],
        Some(Kind::Exec) => &[("output", "output")],
        _ => &[],
    };
    for (key, setting) in keys {
        let Some(text) = fields.text(key) else { continue };
        if config.peek(setting).is_some_and(|own| *own != text) {
            fields.error(key, "conflicting_fields", conflict(&config.path(setting)));
        }
        config.put(setting, text);
    }
    if matches!(kind, Some(Kind::Script | Kind::Python))
        && let Some(key) = fields.alias(&DEPENDENCIES)
        && let Some(dependencies) = fields.value(key)
    {
        canonical::beside(fields, config, dependencies);
    }
}

/// Reports missing fields that are required in this dialect only.
fn required(config: &Fields<'_>, kind: Kind) {
    let lacks = |keys: &[&str]| keys.iter().all(|key| !config.has(key));
    match kind {
        Kind::Mcp if lacks(&["server_url", "server"]) => {
            config.missing("server_url", "the URL of the MCP server");
        }
        Kind::AgentCall if lacks(&["target_agent_slug", "target_agent_id"]) => {
            config.missing("target_agent_slug", "the agent, by `target_agent_slug` or `target_agent_id`");
        }
        Kind::Http if lacks(&["url", "urlTemplate", "url_template", "steps"]) => {
            config.missing("url", "a URL that starts with `http://` or `https://`");
        }
        _ => {}
    }
}

#[cfg(test)]
#[path = "registry_tests.rs"]
mod tests;
