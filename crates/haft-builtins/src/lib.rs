//! The tools that come with haft: files, commands, mail, web, data and time.
//!
//! Each tool is a definition like any other and, where no executor does its work, a function that the definition
//! names. They live in a crate of their own because a mailer and a reader of HTML must not weigh on every program that
//! embeds haft. [`built_ins`] makes all of them from what they may use; who serves them registers both parts.
//!
//! Tools that work on the catalog itself, such as `create_tool`, are the server's.

mod bash;
mod datetime;
mod files;
mod http_request;
mod json_transform;
mod mail;
mod parts;
mod settings;
mod tool;
mod web_fetch;
mod web_search;

pub use parts::{BuiltInParts, BuiltIns, EMAILS_PER_MINUTE, built_ins};
pub use settings::{PlatformSettings, VARIABLES};
pub use tool::{BuiltIn, Describe, describe, function};
