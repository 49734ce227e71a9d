//! Command templates: a bash command in which no value can become shell syntax.
//!
//! A command is compiled once, when the tool is saved. Every `{{reference}}` becomes a reference to an environment
//! variable (`HAFT_V1`, `HAFT_V2`, …), quoted as its context requires, and the value travels in that variable. The
//! shell has parsed the whole text before it reads a value, so nothing has to be escaped:
//!
//! | context of the reference | text for the shell |
//! | --- | --- |
//! | unquoted | `"${HAFT_V1}"` |
//! | in double quotes or a here-document | `${HAFT_V1}` |
//! | in single quotes or `$'…'` | the quote closed, `"${HAFT_V1}"`, the quote opened again |
//!
//! A few constructs make the shell evaluate a value although it is in a variable: `eval`, arithmetic, array
//! subscripts, a computed command name, the text of `bash -c`. They are rejected, as is syntax that the scanner does
//! not understand. What a program does with its arguments is not checked here. `{{if}}` selects between whole texts,
//! each of which was compiled.
//!
//! `$NAME` and `${NAME}` are shell variables. Those that the command does not set are secrets
//! ([`CommandTemplate::secrets`]) and are passed in the environment under their own names.

mod builtins;
mod commands;
mod compile;
mod heredoc;
mod scanner;
mod symbols;
mod words;

pub(super) use builtins::SHELLS;
pub(crate) use compile::CommandTemplate;

#[cfg(test)]
mod command_tests;
#[cfg(test)]
mod real_shell_tests;
#[cfg(test)]
mod rejected_tests;
