//! The attribute `#[tool]` of haft: reads a function's signature and writes the tool beside it.
//!
//! The crate knows nothing of haft but the paths of what the written code calls (`haft::__private`). Its guide is at
//! `haft::tool`.

mod argument;
mod docs;
mod duration;
mod expand;
mod faults;
mod name;
mod number;
mod options;
mod signature;
mod types;

use proc_macro::TokenStream;

/// Makes a tool of a function. See `haft::tool`.
#[proc_macro_attribute]
pub fn tool(options: TokenStream, item: TokenStream) -> TokenStream {
    expand::tool(options.into(), &item.into()).into()
}
