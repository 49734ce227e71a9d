//! Python bodies: `${name}` in string literals.
//!
//! A body is scanned once. Each `${name}` of a declared argument in a string literal becomes a slot;
//! a call writes the value there as escapes (`\x22`, `\u20ac`), which can neither end the literal nor start a
//! field of an f-string. In a bytes literal the slot receives the UTF-8 bytes of the value.
//!
//! Where that is impossible the body is rejected when the tool is saved: outside of literals, in raw literals,
//! after a backslash, and in the expressions of f-strings. Comments are ignored. `${NAME}` in upper case that
//! is not an argument is a secret, except in raw literals and f-strings, where it is Python's own.

mod escape;
mod scan;
mod template;

pub use template::PythonTemplate;

#[cfg(test)]
mod python_tests;
