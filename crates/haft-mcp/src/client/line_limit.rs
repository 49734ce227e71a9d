//! Reports responses above the size limit.
//!
//! rmcp silently drops a line above the limit, and the call would wait until its timeout. The output passes unchanged, but
//! a dropped line is followed by an error response to the same request.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use serde_json::json;
use tokio::io::{AsyncRead, ReadBuf};

/// How many bytes at both ends of a line are searched for the request id.
const EDGE_BYTES: usize = 128;

/// A line longer than the limit times this factor ends the connection.
const ABORT_FACTOR: usize = 16;

/// The output of a program, line by line.
pub(super) struct LineLimiter<R> {
    inner: R,
    /// The longest line that rmcp accepts, with its newline.
    max_bytes: usize,
    /// The length of the current line so far, and both of its ends.
    length: usize,
    first: Vec<u8>,
    last: Vec<u8>,
    /// An error response to pass first.
    pending: Vec<u8>,
    /// Bytes read after a line above the limit.
    buffered: Vec<u8>,
    /// Counts bytes read, until it is reset.
    pub(super) bytes: Arc<AtomicU64>,
    /// Receives lines that are not messages.
    unexpected: Option<UnexpectedLineHandler>,
}

/// Receives the beginning of a line that is not a message.
pub(super) type UnexpectedLineHandler = Box<dyn Fn(&[u8]) + Send>;

impl<R> LineLimiter<R> {
    pub(super) fn new(inner: R, max_bytes: usize) -> Self {
        Self {
            inner,
            max_bytes,
            length: 0,
            first: Vec::new(),
            last: Vec::new(),
            pending: Vec::new(),
            buffered: Vec::new(),
            bytes: Arc::default(),
            unexpected: None,
        }
    }

    /// Passes lines that are not messages to a handler.
    pub(super) fn with_handler(self, unexpected: UnexpectedLineHandler) -> Self {
        Self { unexpected: Some(unexpected), ..self }
    }

    /// Scans bytes for lines; returns the end of a line above the limit, and the id of its request.
    fn scan(&mut self, bytes: &[u8]) -> Option<(usize, u64)> {
        let mut start = 0;
        while let Some(rest) = bytes.get(start..).filter(|rest| !rest.is_empty()) {
            let Some(end) = rest.iter().position(|byte| *byte == b'\n') else {
                self.grow(rest);
                return None;
            };
            let (line, _) = rest.split_at(end + 1);
            self.grow(line);
            if let Some(unexpected) = &self.unexpected
                && !may_be_message(&self.first)
            {
                unexpected(&self.first);
            }
            let id = (self.length > self.max_bytes).then(|| request_id(&self.first, &self.last)).flatten();
            self.length = 0;
            self.first.clear();
            self.last.clear();
            start += end + 1;
            if let Some(id) = id {
                return Some((start, id));
            }
        }
        None
    }

    fn grow(&mut self, part: &[u8]) {
        self.length = self.length.saturating_add(part.len());
        let room = EDGE_BYTES.saturating_sub(self.first.len());
        self.first.extend(part.iter().take(room));
        // The end is needed only for lines above the limit.
        if self.length > self.max_bytes.saturating_sub(EDGE_BYTES) {
            let tail = part.len().saturating_sub(EDGE_BYTES);
            self.last.extend(part.iter().skip(tail));
            let surplus = self.last.len().saturating_sub(EDGE_BYTES);
            self.last.drain(..surplus);
        }
    }
}

/// Returns whether a line begins like a message. `[INFO] ready` and `{ready}` do not.
fn may_be_message(line: &[u8]) -> bool {
    let mut bytes = line.iter().filter(|byte| !byte.is_ascii_whitespace());
    match (bytes.next(), bytes.next()) {
        (None | Some(0xEF), _) => true,
        (Some(b'{'), then) => matches!(then, Some(b'"' | b'}') | None),
        (Some(b'['), then) => matches!(then, Some(b'{' | b']') | None),
        (Some(_), _) => false,
    }
}

/// Moves as many bytes as fit.
fn pass(bytes: &mut Vec<u8>, buffer: &mut ReadBuf<'_>) {
    let now = bytes.len().min(buffer.remaining());
    buffer.put_slice(bytes.drain(..now).as_slice());
}

/// Returns the id of a response, found at its beginning or its end.
fn request_id(first: &[u8], last: &[u8]) -> Option<u64> {
    let (first, last) = (String::from_utf8_lossy(first), String::from_utf8_lossy(last));
    let number = |text: &str| {
        let digits: String = text.trim_start().chars().take_while(char::is_ascii_digit).collect();
        digits.parse().ok()
    };
    let after = |(_, rest): (&str, &str)| rest.trim_start().strip_prefix(':').and_then(number);
    let at_first =
        first.split_once("\"id\"").filter(|(before, _)| !before.contains("\"result\"")).and_then(after);
    at_first.or_else(|| last.rsplit_once("\"id\"").and_then(after))
}

impl<R: AsyncRead + Unpin> AsyncRead for LineLimiter<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if !this.pending.is_empty() {
            pass(&mut this.pending, buffer);
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        if this.buffered.is_empty() {
            ready!(Pin::new(&mut this.inner).poll_read(context, buffer))?;
        } else {
            pass(&mut this.buffered, buffer);
        }
        let new = buffer.filled().get(before..).unwrap_or_default();
        this.bytes.fetch_add(u64::try_from(new.len()).unwrap_or(u64::MAX), Ordering::Relaxed);
        if this.length > this.max_bytes.saturating_mul(ABORT_FACTOR) {
            return Poll::Ready(Err(io::Error::other("message far above the size limit")));
        }
        if let Some((end, id)) = this.scan(new) {
            let message = format!("response size limit ({} MiB) exceeded", this.max_bytes >> 20);
            let error = json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32603, "message": message}});
            this.pending = format!("{error}\n").into_bytes();
            let rest = new.get(end..).unwrap_or_default();
            this.buffered.splice(..0, rest.iter().copied());
            buffer.set_filled(before + end);
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt as _;

    use super::*;

    /// Reads everything with a buffer of this size and drops long lines, as rmcp does.
    async fn passed(text: &str, max_bytes: usize, buffer: usize) -> String {
        let mut reader =
            tokio::io::BufReader::with_capacity(buffer, LineLimiter::new(text.as_bytes(), max_bytes));
        let mut all = String::new();
        reader.read_to_string(&mut all).await.unwrap();
        all.split_inclusive('\n').filter(|line| line.len() <= max_bytes).collect()
    }

    #[tokio::test]
    async fn a_dropped_line_is_followed_by_an_error() {
        let long = "x".repeat(400);
        let python = format!("{{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{{\"t\":\"{long}\"}}}}\n");
        let node = format!("{{\"result\":{{\"id\": 3, \"t\":\"{long}\"}},\"jsonrpc\":\"2.0\",\"id\": 8}}\n");
        let noise = format!("{long}\n");
        let text = format!("{{\"a\":1}}\n{python}{node}{noise}{{\"b\":2}}\n{python}");
        let error = |id: u64| {
            let message = "response size limit (0 MiB) exceeded";
            json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32603, "message": message}}).to_string()
                + "\n"
        };
        let expected = format!("{{\"a\":1}}\n{}{}{{\"b\":2}}\n{}", error(7), error(8), error(7));
        for buffer in [1, 2, 7, 100, 300, 450, 10_000] {
            assert_eq!(passed(&text, 200, buffer).await, expected, "{buffer}");
        }
        assert_eq!(passed(&text, 10_000, 64).await, text);
        let (sender, receiver) = std::sync::mpsc::channel();
        let handler = Box::new(move |line: &[u8]| sender.send(line.to_vec()).unwrap());
        let output = b"hello\n {\"a\":1}\n\n[INFO] x\n{y}\n[{}]\n3\nhalf";
        let mut reader = LineLimiter::new(&output[..], 100).with_handler(handler);
        reader.read_to_end(&mut Vec::new()).await.unwrap();
        let lines: Vec<_> = receiver.try_iter().map(|line| String::from_utf8(line).unwrap()).collect();
        assert_eq!(lines, ["hello\n", "[INFO] x\n", "{y}\n", "3\n"]);
        assert_eq!(reader.bytes.load(Ordering::Relaxed), 40);
        assert_eq!(passed("no end", 3, 64).await, "");
        let endless = "x".repeat(100);
        let mut reader = LineLimiter::new(endless.as_bytes(), 3);
        assert!(reader.read_exact(&mut [0; 100]).await.is_ok());
        assert!(reader.read(&mut [0; 1]).await.is_err());
    }
}
