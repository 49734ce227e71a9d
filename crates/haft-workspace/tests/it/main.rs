//! Workspaces in real folders.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "tests may fail loudly"
)]

mod model;
mod states;
