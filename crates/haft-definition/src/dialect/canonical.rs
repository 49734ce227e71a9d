//! The canonical dialect: responses of the API and `.json` files.

use super::draft::{self, Draft, Finished};
use super::fields::Fields;
use super::implementation::Reader;
use super::reading::Defaults;
use haft_core::implementation::{Implementation, Notation};

pub(super) fn read(mut fields: Fields<'_>, defaults: &Defaults) -> Option<Finished> {
    let mut draft = Draft {
        name: draft::name(&mut fields, "name", defaults),
        input_schema: draft::schema(&mut fields, "input_schema"),
        output_schema: draft::schema(&mut fields, "output_schema"),
        ..Draft::default()
    };
    implementation(&mut fields, &mut draft, Notation::Dollar);
    // Both are derived from the implementation.
    fields.ignore(&["implementation_type", "runtime"]);
    repeated_script(&mut fields, &draft);
    draft.finish(fields, defaults)
}

/// Ignores `body` and `parameters` if they repeat the canonical fields: the API returns them in addition, with the names
/// of the skill dialect.
fn repeated_script(fields: &mut Fields<'_>, draft: &Draft) {
    let Some(Implementation::Script(script)) = &draft.implementation else { return };
    if fields.peek("body").is_some_and(|body| *body == script.body) {
        fields.ignore(&["body"]);
    }
    if fields.peek("parameters") == draft.input_schema.as_ref() {
        fields.ignore(&["parameters"]);
    }
}

/// Reads the `implementation` block.
pub(super) fn implementation(fields: &mut Fields<'_>, draft: &mut Draft, notation: Notation) {
    if !fields.has("implementation") {
        fields.missing("implementation", "a map with a `type`, such as `http`");
    }
    if let Some(mut block) = fields.nested("implementation") {
        draft.take(Reader::with(notation).tagged(&mut block));
    }
}
