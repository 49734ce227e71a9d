//! MCP for haft.
