//! `web_search`: searches the web with one of several providers.

mod access;
mod provider;
mod tool;

pub(crate) use tool::{WebSearch, spec};
