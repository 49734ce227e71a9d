//! The attribute `#[tool]` of haft, which generates a tool from the signature of a function.
//!
//! This crate does not depend on haft; it only knows the paths that the generated code uses (`haft::__private`). The
//! guide is at `haft::tool`.

mod argument;
mod docs;
mod duration;
mod errors;
mod expand;
mod name;
mod number;
mod options;
mod signature;
mod types;

use proc_macro::TokenStream;

/// Turns a function into a tool. See `haft::tool`.
#[proc_macro_attribute]
pub fn tool(options: TokenStream, item: TokenStream) -> TokenStream {
    expand::tool(options.into(), &item.into()).into()
}
