//! The canonical dialect: responses of the API and `.json` files. The YAML definition differs in its notation only.

use super::draft::{self, Draft, Finished};
use super::fields::{Fields, conflict};
use super::implementation::{self, Reader};
use super::reading::Defaults;
use haft_core::implementation::{Implementation, Kind, Notation};
use serde_json::Value;

pub(super) fn read(mut fields: Fields<'_>, notation: Notation, defaults: &Defaults) -> Option<Finished> {
    let mut draft = Draft::default();
    draft::names(&mut fields, &mut draft, "name", defaults);
    draft.input_schema = draft::input_schema(&mut fields);
    draft.output_schema = draft::output_schema(&mut fields);
    implementation(&mut fields, &mut draft, notation);
    repeated_script(&mut fields, &draft);
    draft.finish(fields, defaults)
}

/// Reads `runtime` and `body` at the top level: the API returns them in addition to the implementation, with the names
/// of the skill dialect.
pub(super) fn repeated_script(fields: &mut Fields<'_>, draft: &Draft) {
    let runtime = draft.implementation.as_ref().and_then(Implementation::runtime);
    let is_same = |runtime: &str| fields.peek("runtime").is_none_or(|own| own == runtime || own.is_null());
    if fields.has("tool_type") || runtime.is_some_and(is_same) {
        fields.ignore(&["runtime"]);
    }
    if let Some(Implementation::Script(script)) = &draft.implementation
        && fields.peek("body").is_some_and(|body| *body == script.body)
    {
        fields.ignore(&["body"]);
    }
    for key in ["runtime", "body"] {
        if fields.has(key) && draft.implementation.is_some() {
            let message = "conflicts with the implementation; remove one of them";
            fields.error(key, "conflicting_fields", message);
        }
        fields.ignore(&[key]);
    }
}

/// The spellings of the implementation block.
const BLOCKS: [&str; 3] = ["implementation", "impl", "implementation_config"];

/// Reads the implementation block under any of its spellings.
pub(super) fn implementation(fields: &mut Fields<'_>, draft: &mut Draft, notation: Notation) {
    let outer = outer_type(fields);
    let Some(key) = fields.alias(&BLOCKS) else {
        fields.missing("implementation", "a map with a `type`, such as `http`");
        return;
    };
    let output = fields.text("output");
    let dependencies = fields.alias(&implementation::DEPENDENCIES).and_then(|key| fields.value(key));
    let Some(mut block) = fields.nested(key) else { return };
    if let Some(output) = output {
        block.put("output", output);
    }
    if let Some(dependencies) = dependencies {
        beside(fields, &mut block, dependencies);
    }
    let reader = Reader::with(notation);
    let (outer_key, kind) = match outer {
        OuterType::Missing => return draft.take(reader.tagged(&mut block)),
        OuterType::Invalid => return drop(block.rest()),
        OuterType::Known(key, kind) => (key, kind),
    };
    let inner = block.text("type").and_then(|word| Kind::parse(&word));
    if inner.is_some_and(|inner| inner != kind) {
        fields.error(outer_key, "conflicting_fields", conflict(&block.path("type")));
        return drop(block.rest());
    }
    draft.take(reader.read(&mut block, kind));
}

/// Moves the dependencies that are written beside the block into it.
pub(super) fn beside(fields: &Fields<'_>, block: &mut Fields<'_>, dependencies: Value) {
    let own = block.alias(&implementation::DEPENDENCIES);
    if let Some(own) = own.filter(|own| block.peek(own).is_some_and(|own| *own != dependencies)) {
        fields.error("dependencies", "conflicting_fields", conflict(&block.path(own)));
    }
    if own.is_none() {
        block.put("dependencies", dependencies);
    }
}

/// The type of an implementation that is written beside its block.
enum OuterType {
    Missing,
    /// It was reported as an error.
    Invalid,
    Known(&'static str, Kind),
}

/// Reads the type beside the block: `type` as in `tool.json`, or `implementation_type` as in the registry form. In a
/// response of the API it is derived from the block.
fn outer_type(fields: &mut Fields<'_>) -> OuterType {
    if fields.has("tool_type") {
        fields.ignore(&["implementation_type"]);
    }
    let Some(key) = fields.alias(&["type", "implementation_type"]) else { return OuterType::Missing };
    match fields.text(key) {
        None => OuterType::Invalid,
        // In the registry form it refers to the type in the block.
        Some(word) if word == "custom" => OuterType::Missing,
        Some(word) => match implementation::kind(&word) {
            Ok(kind) => OuterType::Known(key, kind),
            Err(message) => {
                fields.error(key, "unknown_type", message);
                OuterType::Invalid
            }
        },
    }
}
