//! Ranks tools by a query: prefix, then whole word, then fuzzy, then recency.
//!
//! In memory rather than in SQL: one implementation for both engines, updated with every change, and a query needs
//! neither disk nor database.

mod index;
mod words;

pub use index::{SearchHit, SearchIndex};
