//! `tool.json`: camelCase, `type` and `impl`.

use super::canonical;
use super::draft::{self, Draft, Finished};
use super::fields::Fields;
use super::reading::Defaults;
use haft_core::implementation::Notation;

pub(super) fn read(mut fields: Fields<'_>, defaults: &Defaults) -> Option<Finished> {
    let mut draft = Draft::default();
    draft::names(&mut fields, &mut draft, "slug", defaults);
    draft.input_schema = draft::input_schema(&mut fields);
    draft.output_schema = draft::output_schema(&mut fields);
    if !fields.has("impl") {
        if !fields.has("type") {
            fields.missing("type", "`go` or `http`");
        }
        fields.missing("impl", "a map with `goFunc`, or with `method` and `urlTemplate`");
        fields.ignore(&["type"]);
        return draft.finish(fields, defaults);
    }
    let has_type = fields.has("type") || fields.has("implementation_type");
    if !has_type && fields.peek("impl").is_some_and(|block| block.get("type").is_none()) {
        fields.missing("type", "`go` or `http`");
        fields.ignore(&["impl"]);
    } else {
        canonical::implementation(&mut fields, &mut draft, Notation::Dollar);
    }
    canonical::repeated_script(&mut fields, &draft);
    draft.finish(fields, defaults)
}

#[cfg(test)]
#[path = "tool_json_tests.rs"]
mod tests;
