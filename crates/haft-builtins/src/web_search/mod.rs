//! `web_search`: one tool over several services.

mod access;
mod provider;
mod tool;

pub(crate) use tool::{WebSearch, spec};
