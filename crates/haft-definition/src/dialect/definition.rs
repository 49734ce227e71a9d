//! The YAML definition: a `params` list and an `implementation`, with `{{name}}` templates.

use super::canonical;
use super::draft::Finished;
use super::fields::Fields;
use super::reading::Defaults;
use haft_core::implementation::Notation;

pub(super) fn read(fields: Fields<'_>, defaults: &Defaults) -> Option<Finished> {
    canonical::read(fields, Notation::Braces, defaults)
}

#[cfg(test)]
#[path = "slips_tests.rs"]
mod slips;

#[cfg(test)]
#[path = "definition_tests.rs"]
mod tests;
