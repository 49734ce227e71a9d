//! `tool.json`: camelCase, `type` and `impl`.

use super::draft::{self, Draft, Finished};
use super::fields::{Fields, unknown};
use super::implementation::Reader;
use super::reading::Defaults;
use haft_core::implementation::{Kind, Notation};

pub(super) fn read(mut fields: Fields<'_>, defaults: &Defaults) -> Option<Finished> {
    let key = fields.alias(&["slug", "name"]).unwrap_or("slug");
    let mut draft = Draft {
        name: draft::name(&mut fields, key, defaults),
        display_name: fields.text("displayName").unwrap_or_default(),
        enabled: fields.flag("isEnabled"),
        ..Draft::default()
    };
    if let Some(key) = fields.alias(&["argSchema", "input_schema"]) {
        draft.input_schema = draft::schema(&mut fields, key);
    }
    if let Some(key) = fields.alias(&["outputSchema", "output_schema"]) {
        draft.output_schema = draft::schema(&mut fields, key);
    }
    let kind = kind(&mut fields);
    if !fields.has("impl") {
        fields.missing("impl", "a map with `goFunc`, or with `method` and `urlTemplate`");
    }
    if let Some(mut block) = fields.nested("impl") {
        match kind {
            Some(kind) => draft.take(Reader::with(Notation::Dollar).read(&mut block, kind)),
            None => drop(block.rest()),
        }
    }
    fields.ignore(&["schemaVersion", "toolID", "isBuiltIn", "createdAt", "modifiedAt", "softDeletedAt"]);
    draft.finish(fields, defaults)
}

fn kind(fields: &mut Fields<'_>) -> Option<Kind> {
    let word = fields.required_text("type", "`go` or `http`")?;
    let kind = Kind::parse(&word).filter(|kind| matches!(kind, Kind::Function | Kind::Http));
    if kind.is_none() {
        fields.error("type", "unknown_type", unknown("type", &word, &["go", "http"]));
    }
    kind
}

#[cfg(test)]
#[path = "tool_json_tests.rs"]
mod tests;
