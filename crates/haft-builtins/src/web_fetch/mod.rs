//! `web_fetch`: fetches a page and converts it to Markdown.

mod element;
mod page;
mod tool;
mod writer;

pub(crate) use page::plain_text;
pub(crate) use tool::{WebFetch, spec};
