//! The YAML definition: a `params` list and an `implementation`, with `{{name}}` templates.

use serde_json::Value;

use super::canonical;
use super::draft::{self, Draft, Finished};
use super::fields::Fields;
use super::params;
use super::reading::Defaults;
use haft_core::implementation::Notation;

pub(super) fn read(mut fields: Fields<'_>, defaults: &Defaults) -> Option<Finished> {
    let mut draft = Draft {
        name: draft::name(&mut fields, "name", defaults),
        output_schema: draft::schema(&mut fields, "output_schema"),
        ..Draft::default()
    };
    draft.input_schema = match fields.alias(&["params", "input_schema"]) {
        Some("params") if fields.peek("params").is_some_and(Value::is_object) => {
            fields.raw("params");
            let message =
                "expected a list, found a map; write each parameter as a list item such as `- name: city`";
            fields.error("params", "wrong_type", message);
            None
        }
        Some("params") => fields.nested_list("params").map(params::to_schema),
        Some(key) => draft::schema(&mut fields, key),
        None => None,
    };
    canonical::implementation(&mut fields, &mut draft, Notation::Braces);
    fields.ignore(&["implementation_type", "runtime", "tool_type"]);
    draft.finish(fields, defaults)
}

#[cfg(test)]
#[path = "slips_tests.rs"]
mod slips;

#[cfg(test)]
#[path = "definition_tests.rs"]
mod tests;
