//! Imports of API descriptions: the request, fetching the document, and storing its tools.

mod apply;
mod fetch;
mod items;
pub(crate) mod registry;
mod request;

pub(crate) use apply::{ImportReport, ImportRun};
pub(crate) use fetch::{fetch_bytes, fetch_document};
pub(crate) use items::{ImportItem, ItemAction, ItemImport, ItemImportReport};
pub(crate) use request::{DocumentSource, ImportBody, parse};
