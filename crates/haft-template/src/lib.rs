//! Templates: compiled once, rendered per call, never expanded twice.
//!
//! A text ([`Template`]) or a structure whose strings are templates ([`ValueTemplate`]) is parsed against a
//! [`Scope`], which has the declared arguments and the earlier steps. Rendering is pure: the caller fetches
//! the secrets that [`Template::secrets`] names, and passes an [`EscapeContext`]. The context alone decides how values are escaped;
//! the content of a value is never read as a template or as syntax of the context.
//!
//! | notation | means |
//! | --- | --- |
//! | `${name}`, `${a.b}` ([`Notation::Dollar`]) | a declared argument, else a secret; `${version}` last |
//! | `${steps.NAME.path}` | the value of an earlier step |
//! | `{{name}}`, `{{a.b}}`, `{{x \| default:10}}` ([`Notation::Braces`]) | a declared argument |
//! | `{{if x}}…{{else}}…{{end}}` (`Braces`) | a choice, in text and as a key of a map or list item |
//! | `${NAME}` (`Braces`) | a secret |
//! | `$${` and `{{"{{"}}` | a literal `${` and `{{` |
//!
//! A missing required value is an error that names it. A missing optional value takes the default of the
//! template, then the default of the schema; otherwise it is empty in text and left out of a structure.

mod argv;
mod command;
mod error;
mod escape_context;
mod exec;
mod json_text;
mod parse;
mod python;
mod reference;
mod scripts;
mod structure;
mod text;
mod url_text;
mod variables;
mod xml_text;

pub use error::{RenderError, SyntaxError};
pub use escape_context::EscapeContext;
pub use exec::{ExecInvocation, ExecTemplate};
pub use haft_core::implementation::Notation;
pub use parse::template_defaults;
pub use python::PythonTemplate;
pub use reference::{Scope, Values};
pub use scripts::script_secrets;
pub use structure::{FieldError, ValueTemplate};
pub use text::{Rendered, Template};
pub use variables::{SecretName, is_variable, reserved_variable};

#[cfg(test)]
mod exec_tests;
#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod template_tests;
