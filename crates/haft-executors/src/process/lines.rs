//! Streams the output of a process as events, line by line.

use haft_core::executor::{CallContext, CallEvent};
use haft_core::secret::{incomplete_lines, partial_secret_at_end, scrub_lines};

/// The maximum length of a line in one event.
const MAX_LINE_BYTES: usize = 8 * 1024;
/// The maximum number of bytes held back because they may be the beginning of a secret.
const MAX_HELD_BYTES: usize = 128 * 1024;

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
        self.pending.extend_from_slice(chunk);
        if chunk.contains(&b'\n') {
            self.emit_lines();
        }
        let newline = self.pending.iter().rposition(|byte| *byte == b'\n');
        let open = self.pending.len() - newline.map_or(0, |at| at + 1);
        if open > MAX_LINE_BYTES || self.pending.len() > MAX_HELD_BYTES {
            self.emit_part();
        }
    }

    /// Emits the remaining text at the end of the output.
    pub(crate) fn flush(&mut self) {
        let mut text = String::from_utf8_lossy(&std::mem::take(&mut self.pending)).into_owned();
        scrub_lines(&mut text, &self.call.exposed());
        self.emit(&text);
    }

    /// Emits the complete lines; holds back lines that may be the beginning of a multi-line secret.
    fn emit_lines(&mut self) {
        let Some(end) = self.pending.iter().rposition(|byte| *byte == b'\n') else { return };
        let mut text = String::from_utf8_lossy(self.pending.get(..=end).unwrap_or_default()).into_owned();
        let rest = self.pending.split_off(end + 1);
        let secrets = self.call.exposed();
        self.pending = text.split_off(incomplete_lines(&text, &secrets)).into_bytes();
        self.pending.extend(rest);
        scrub_lines(&mut text, &secrets);
        self.emit(&text);
    }

    /// Emits a part of a long line; what may be the beginning of a secret waits for the rest.
    fn emit_part(&mut self) {
        let secrets = self.call.exposed();
        let mut text = String::from_utf8_lossy(&self.pending).into_owned();
        scrub_lines(&mut text, &secrets);
        let rest = text.split_off(text.len() - partial_secret_at_end(&text, &secrets));
        self.pending = rest.into_bytes();
        self.emit(&text);
    }

    fn emit(&self, text: &str) {
        for line in text.split_terminator('\n') {
            self.call.emit((self.event)(line.trim_end_matches('\r').to_owned()));
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
    fn short_lines_of_a_secret_are_not_emitted_either() {
        let secret = "user\np4ss\nend";
        let masked = ["***", "***", "***", "after"];
        assert_eq!(emitted(secret, &["user\np4ss\nend\nafter\n"]), masked);
        assert_eq!(emitted(secret, &["user\n", "p4", "ss\n", "end\nafter\n"]), masked);
        // With CRLF line endings.
        assert_eq!(emitted(secret, &["user\r\np4ss\r\n", "end\r\nafter\r\n"]), masked);
        // The first line is long enough to be masked on its own.
        assert_eq!(emitted("long-line-1\nab\ncd", &["long-line-1\n", "ab\n", "cd\n"]), ["***", "***", "***"]);
        // Lines that only start like the secret are emitted.
        assert_eq!(emitted(secret, &["user\n", "p5\n"]), ["user", "p5"]);
        assert_eq!(emitted(secret, &["a\n", "user\n"]), ["a", "user"]);
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
