//! The canonical form: what the API returns and what `.json` files hold.

use super::draft::{self, Draft, Finished};
use super::fields::Fields;
use super::implementation::Reader;
use super::reading::Defaults;
use crate::implementation::Notation;

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
    draft.finish(fields, defaults)
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
