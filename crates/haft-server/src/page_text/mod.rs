//! The texts of the pages that work without scripts, such as that of the login, in each language.
//!
//! A catalogue is a value of [`Texts`], so that none can lack a text.

mod english;
mod german;
mod language;
mod texts;

pub(crate) use language::texts;
pub(crate) use texts::{Texts, fill};
