//! Ranking tools for a query.
//!
//! An agent asks "convert time between time zones"; the catalogue has `convert_time`. [`Index`] ranks by the sum of a
//! lexical score (BM25F over name, description, parameters and tags, with typo correction) and the cosine of a static
//! embedding. The index lives in memory; a change costs what changed. No I/O and no clock.

mod document;
mod embedding;
mod fuzzy;
mod highlight;
mod index;
mod keywords;
mod lexicon;
mod tokens;
mod union;

pub use document::{Document, PreparedDocument};
pub use highlight::Matcher;
pub use index::{Hit, Index};
pub use union::{MAX_QUERY, MAX_RANKED, Union};
