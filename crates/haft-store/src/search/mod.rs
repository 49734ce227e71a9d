//! Ranks tools by a query: prefix, then whole word, then fuzzy, then recency.
//!
//! In memory rather than in SQL: one implementation serves both engines, follows every change at once, and a
//! query touches neither disk nor database.

mod index;
mod words;

pub use index::{SearchHit, SearchIndex};
