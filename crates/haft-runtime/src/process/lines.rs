//! Output as it comes, line by line, for those who watch a call.

use haft_core::executor::{CallContext, CallEvent};
use haft_core::secret::scrub_text;

/// The longest line that is told in one piece.
const LONGEST: usize = 8 * 1024;

/// Cuts a stream into lines and tells them; no secret of the call stands in them.
pub(crate) struct Lines<'a> {
    call: &'a CallContext,
    pending: Vec<u8>,
}

impl<'a> Lines<'a> {
    pub(crate) fn new(call: &'a CallContext) -> Self {
        Self { call, pending: Vec::new() }
    }

    /// Takes a piece of output.
    pub(crate) fn take(&mut self, chunk: &[u8]) {
        if self.call.events.is_none() {
            return;
        }
        for piece in chunk.split_inclusive(|byte| *byte == b'\n') {
            self.pending.extend_from_slice(piece);
            if piece.ends_with(b"\n") || self.pending.len() > LONGEST {
                self.flush();
            }
        }
    }

    /// Tells what came after the last line's end.
    pub(crate) fn flush(&mut self) {
        if self.pending.is_empty() {
            return;
        }
        let mut line = String::from_utf8_lossy(&self.pending).into_owned();
        self.pending.clear();
        line.truncate(line.trim_end_matches(['\n', '\r']).len());
        scrub_text(&mut line, &self.call.exposed());
        self.call.emit(CallEvent::Output(line));
    }
}
