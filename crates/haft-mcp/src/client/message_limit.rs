//! The size limit of a message from a server.

use haft_core::mcp::McpServer;

/// The default size limit of a message, in bytes. Lists of tools can be larger than any result.
pub(super) const MAX_MESSAGE_BYTES: usize = 16 << 20;
/// What a message needs in addition to the result.
const OVERHEAD_BYTES: u64 = 1 << 20;

/// Returns the size limit of a message from a server.
pub(super) fn max_message_bytes(server: &McpServer) -> usize {
    // A result can contain its value twice: as structured content and as text.
    let needed = server.max_response_bytes.map_or(0, |bytes| bytes.saturating_mul(2) + OVERHEAD_BYTES);
    usize::try_from(needed).unwrap_or(usize::MAX).max(MAX_MESSAGE_BYTES)
}
