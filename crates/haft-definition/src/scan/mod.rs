//! Scans the tools of an MCP server for hidden text, instructions to the model, names that shadow other tools, and
//! arguments that ask for secrets.
//!
//! The scan is deterministic, reads only the given definitions, and takes time linear in their size. It reads the text as
//! the server sent it, before [`mcp_import`](crate::mcp_import) sanitizes it. A definition without findings is not proven
//! harmless: the scan knows phrases and characters, not intentions.

mod arguments;
mod encoded;
mod fields;
mod fold;
mod hidden;
mod names;
mod phrase_table;
mod phrases;
mod report;
mod scanner;

pub use scanner::Scanner;

#[cfg(test)]
mod tests;
