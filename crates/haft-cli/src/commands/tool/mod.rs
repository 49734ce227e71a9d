//! `haft tool`: manages and calls tools.

mod add;
mod arguments;
mod call;
mod command;
mod definition;
mod deprecate;
mod diff;
mod edit;
mod filter;
mod list;
mod restore;
mod revisions;
mod rm;
mod search;
mod show;
mod switch;
mod test;
mod undelete;
mod usage;
mod validate;
mod version;

pub(crate) use arguments::{CallArguments, parse_mode};
pub(crate) use command::Command;
pub(crate) use usage::resource_rows;
