//! The code that `#[tool]` generates passes strict lints and is not affected by names in scope.
#![deny(warnings, missing_docs, clippy::pedantic, clippy::nursery, elided_lifetimes_in_paths)]
#![allow(
    non_camel_case_types,
    dead_code,
    clippy::unused_async,
    clippy::missing_const_for_fn,
    clippy::allow_attributes,
    reason = "these lints are about the functions of this file"
)]

use haft::Tools;

/// Names that could shadow those in the generated code.
mod shadows {
    pub(super) struct Option;
    pub(super) struct Result;
    pub(super) struct String;
    pub(super) struct Vec;
    pub(super) struct Box;
    pub(super) trait Into {}
    pub(super) mod std {}
    pub(super) mod core {}
    pub(super) mod haft {}
    pub(super) mod serde {}
    pub(super) mod schemars {}
}

mod tools {
    #![expect(unused_imports, reason = "they shadow the standard names")]

    use super::shadows::{Box, Into, Option, Result, String, Vec, core, haft, schemars, serde, std};

    /// Does nothing.
    #[::haft::tool(pure, elevated, timeout = "1s", retry(attempts = 1), max_parallel = 1)]
    pub(super) async fn everything(
        _context: &::haft::Context,
        /// A text
        #[arg(default = "x", one_of("x", "y"))]
        text: ::std::string::String,
        #[arg(range = 0..10)] mut number: ::std::option::Option<u64>,
        #[arg(default = 0.5, range = 0.0..=1.0)] ratio: f64,
        borrowed: &str,
    ) -> ::std::result::Result<u64, ::std::string::String> {
        number = number.filter(|number| *number > 1 && ratio > 0.1);
        number.ok_or_else(|| ::std::format!("{text}{borrowed}"))
    }

    /// Does nothing either.
    #[::haft::tool]
    pub(super) fn returned(given: u8, call: u8, returned: u8, generator: u8, properties: u8) -> u8 {
        given + call + returned + generator + properties
    }

    /// Is old.
    #[::haft::tool]
    #[deprecated = "a deprecated function is a tool, too"]
    pub(super) fn old() {}

    /// Is not used.
    #[::haft::tool]
    fn unused() {}
}

#[test]
fn all_functions_are_tools() {
    let set = Tools::new();
    for def in [tools::everything::tool(), tools::returned::tool(), tools::old::tool()] {
        assert!(set.register(def).is_ok());
    }
}
