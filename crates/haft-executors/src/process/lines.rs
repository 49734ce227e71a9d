//! Streams the output of a process as events, line by line.

use haft_core::executor::{CallContext, CallEvent};
use haft_core::secret::{partial_secret_at_end, scrub_text};

/// The maximum length of a line in one event.
const MAX_LINE_BYTES: usize = 8 * 1024;

/// Splits a stream into lines and emits them as events, with secrets redacted.
pub(crate) struct OutputLines<'a> {
    call: &'a CallContext,
    event: fn(String) -> CallEvent,
    pending: Vec<u8>,
}

impl<'a> OutputLines<'a> {
    /// Emits each line as this event.
    pub(crate) fn new(call: &'a CallContext, event: fn(String) -> CallEvent) -> Self {
        Self { call, event, pending: Vec::new() }
    }

    /// Adds a chunk of output.
    pub(crate) fn take(&mut self, chunk: &[u8]) {
        if self.call.events.is_none() {
            return;
        }
        for piece in chunk.split_inclusive(|byte| *byte == b'\n') {
            self.pending.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                self.flush();
            } else if self.pending.len() > MAX_LINE_BYTES {
                self.flush_part();
            }
        }
    }

    /// Emits what follows the last line break.
    pub(crate) fn flush(&mut self) {
        if self.pending.is_empty() {
            return;
        }
        let mut line = String::from_utf8_lossy(&self.pending).into_owned();
        self.pending.clear();
        line.truncate(line.trim_end_matches(['\n', '\r']).len());
        scrub_text(&mut line, &self.call.exposed());
        self.call.emit((self.event)(line));
    }

    /// Emits a part of a long line; what may be the beginning of a secret waits for the rest.
    fn flush_part(&mut self) {
        let secrets = self.call.exposed();
        let mut line = String::from_utf8_lossy(&self.pending).into_owned();
        scrub_text(&mut line, &secrets);
        let rest = line.split_off(line.len() - partial_secret_at_end(&line, &secrets));
        self.pending = rest.into_bytes();
        if !line.is_empty() {
            self.call.emit((self.event)(line));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};
    use std::time::Instant;

    use haft_core::BoxFuture;
    use haft_core::executor::EventSink;
    use haft_core::id::CallId;
    use haft_core::name::TenantId;
    use haft_core::secret::{Secret, SecretError, SecretSource};

    use super::*;

    struct NoSecrets;

    impl SecretSource for NoSecrets {
        fn secret<'a>(
            &'a self,
            _: &'a TenantId,
            _: &'a str,
        ) -> BoxFuture<'a, Result<Option<Secret>, SecretError>> {
            Box::pin(std::future::ready(Ok(None)))
        }
    }

    #[derive(Default)]
    struct RecordedLines(Mutex<Vec<String>>);

    impl EventSink for RecordedLines {
        fn emit(&self, event: CallEvent) {
            if let CallEvent::Output(line) = event {
                self.0.lock().unwrap().push(line);
            }
        }
    }

    fn emitted(secret: &str, chunks: &[&str]) -> Vec<String> {
        let (id, tenant) = (CallId(uuid::Uuid::nil()), TenantId::new("default").unwrap());
        let mut call = CallContext::new(id, tenant, Instant::now(), Arc::new(NoSecrets));
        let sink = Arc::new(RecordedLines::default());
        call.events = Some(Arc::clone(&sink) as Arc<dyn EventSink>);
        call.hide(Secret::new(secret.to_owned()));
        let mut lines = OutputLines::new(&call, CallEvent::Output);
        for chunk in chunks {
            lines.take(chunk.as_bytes());
        }
        lines.flush();
        drop(lines);
        std::mem::take(&mut *sink.0.lock().unwrap())
    }

    #[test]
    fn no_line_of_a_secret_is_emitted() {
        let secret = "-----BEGIN KEY-----\nMIIEvQIBADANBg\n-----END KEY-----\n";
        let lines =
            emitted(secret, &["key:\n-----BEGIN KEY-----\nMIIEvQIB", "ADANBg\n-----END KEY-----\nend"]);
        assert_eq!(lines, ["key:", "***", "***", "***", "end"]);
    }

    #[test]
    fn a_secret_across_two_parts_of_a_line_is_not_emitted() {
        let long = "x".repeat(MAX_LINE_BYTES);
        let lines = emitted("hunter2-key", &[&format!("{long}hunter2"), "-key and more\n"]);
        assert_eq!(lines, [long.as_str(), "*** and more"]);
    }

    #[test]
    fn an_encoded_secret_across_two_parts_of_a_line_is_not_emitted() {
        let long = "x".repeat(MAX_LINE_BYTES);
        for (first, second) in
            [("hunter%3", "2%2Dkey"), (r"h\u0075nter2\u00", "2dkey"), ("hunter2&#4", "5;key")]
        {
            let lines = emitted("hunter2-key", &[&format!("{long}{first}"), &format!("{second} and more\n")]);
            assert_eq!(lines, [long.as_str(), "*** and more"], "{first}");
        }
    }
}
