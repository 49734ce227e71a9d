//! Command templates: a shell command in which no value can become syntax.
//!
//! A command is compiled once. Every `{{reference}}` becomes a reference to an environment variable (`HAFT_V1`,
//! `HAFT_V2`, …) in the form that its quoting needs, and the value travels in that variable. The shell has
//! parsed the whole text before it looks at a value, so that there is nothing to escape and nothing to forget:
//!
//! | where the reference stands | what the shell reads |
//! | --- | --- |
//! | outside of quotes | `"${HAFT_V1}"` |
//! | in double quotes, in a here-document | `${HAFT_V1}` |
//! | in single quotes, in `$'…'` | the quote closed, `"${HAFT_V1}"`, the quote opened again |
//!
//! What would read a value as a program all the same (`eval`, arithmetic, the text of another interpreter, the
//! name of a program …) is refused when the tool is saved, and so is every construct that the scanner does not
//! understand: it never guesses. `{{if}}` chooses between whole texts, each of which was compiled.
//!
//! `$NAME` and `${NAME}` are variables of the shell. Those that nothing in the command sets are secrets
//! ([`CommandTemplate::secrets`]), and get into the environment under their own name.

mod arguments;
mod compile;
mod grammar;
mod heredoc;
mod pieces;
mod programs;
mod rules;
mod shell;
mod sources;
mod word;

pub use compile::{Command, CommandTemplate, MAX_COMMAND, MAX_VALUE, MAX_VALUES};

#[cfg(test)]
mod arguments_tests;
#[cfg(test)]
mod command_tests;
#[cfg(test)]
mod real_shell_tests;
