//! `web_fetch`: a page as text that a model can read.

mod element;
mod page;
mod tool;
mod writer;

pub(crate) use page::plain_text;
pub(crate) use tool::{WebFetch, spec};
