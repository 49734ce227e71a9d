//! Which dialect a definition is written in.

use serde_json::{Map, Value};

use haft_core::catalog::FileForm;

/// The forms in which a tool may be defined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// What the API returns, in `snake_case`.
    Canonical,
    /// `tool.json`: camelCase, `type`, `argSchema`, `impl`.
    ToolJson,
    /// `.skill`: `runtime`, `parameters`, and a body.
    Skill,
    /// The registry form: `implementation_type`, `implementation_config`.
    Registry,
    /// The YAML definition: a `params` list and `implementation`.
    Definition,
}

/// Tells the dialect by its keys; `None` where nothing says how the tool runs.
///
/// The first rule that fits wins. Keys of another dialect that are left over are then named in a
/// warning, so that a mixture is never resolved silently.
///
/// 1. A `.skill` file is a skill.
/// 2. `params` is a YAML definition.
/// 3. `impl` or `argSchema` is a `tool.json`.
/// 4. `implementation` beside `tool_type` or `implementation_type` is the canonical form, as the API
///    returns it; without them it is a YAML definition in YAML and the canonical form in JSON.
/// 5. `implementation_type`, `implementation_config` or `config_schema` is the registry form.
/// 6. `runtime` or `body` is a skill.
pub fn detect(map: &Map<String, Value>, form: FileForm) -> Option<Dialect> {
    let has = |key: &str| map.get(key).is_some_and(|value| !value.is_null());
    if form == FileForm::Skill {
        return Some(Dialect::Skill);
    }
    if has("params") {
        return Some(Dialect::Definition);
    }
    if has("impl") || has("argSchema") {
        return Some(Dialect::ToolJson);
    }
    if has("implementation") {
        let answered = has("tool_type") || has("implementation_type");
        let definition = form == FileForm::Yaml && !answered;
        return Some(if definition { Dialect::Definition } else { Dialect::Canonical });
    }
    if has("implementation_type") || has("implementation_config") || has("config_schema") {
        return Some(Dialect::Registry);
    }
    (has("runtime") || has("body")).then_some(Dialect::Skill)
}
