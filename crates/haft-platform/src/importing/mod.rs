//! Imports of API descriptions: the request, fetching the document, and storing its tools.

mod apply;
mod fetch;
mod items;
pub mod registry;

pub use apply::{ImportAction, ImportReport, ImportRun, ImportedTool};
pub use fetch::{document_text, fetch_bytes, fetch_document, introspect};
pub use items::{ImportItem, ItemAction, ItemImport, ItemImportReport};
