//! The built-in tools: files, commands, mail, web, data and time.
//!
//! Each tool is a normal definition and, unless an executor runs it, a function that the definition names. They are a
//! separate crate so that programs which embed haft do not have to build an SMTP client and an HTML parser.
//! [`built_ins`] creates all of them; the caller registers the definitions and the functions.
//!
//! Tools that change the catalog, such as `create_tool`, are in the server.

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
mod whatsapp;

pub use parts::{BuiltInParts, BuiltIns, EMAILS_PER_MINUTE, built_ins};
pub use settings::{PlatformSettings, VARIABLES};
pub use tool::{BuiltIn, Describe, describe, function};
