//! The examples of the guides in `docs/` are compiled with the documentation tests.

#[doc = include_str!("../../../docs/models.md")]
struct Models;
