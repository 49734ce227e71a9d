//! The attribute `#[tool]` of haft.
