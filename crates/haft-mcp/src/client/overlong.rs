//! A program whose answer is too long: rmcp drops the line and says nothing, so whoever asked would wait for the end of
//! their time. The output is passed on as it is, and behind a line that is dropped comes one that says so.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use serde_json::json;
use tokio::io::{AsyncRead, ReadBuf};

/// How much of a line is looked at, from its beginning and before its end: servers name the request there.
const KEPT: usize = 128;

/// How many times the longest line one may have that is dropped: what goes on for longer has no end.
const MAX_TIMES: usize = 16;

/// The output of a program, line by line.
pub(super) struct Overlong<R> {
    inner: R,
    /// The longest line that is not dropped, with its end.
    most: usize,
    /// How much of the current line has come, and its two ends.
    length: usize,
    first: Vec<u8>,
    last: Vec<u8>,
    /// What is to be said before all else.
    due: Vec<u8>,
    /// What came behind a line that was too long, and was not looked at.
    held: Vec<u8>,
    /// How many bytes came since someone asked.
    pub(super) bytes: Arc<AtomicU64>,
    /// Where to say which lines are no messages.
    strange: Option<Strange>,
}

/// Takes the beginning of a line that is no message.
pub(super) type Strange = Box<dyn Fn(&[u8]) + Send>;

impl<R> Overlong<R> {
    pub(super) fn new(inner: R, most: usize) -> Self {
        let empty = Vec::new;
        let (first, last, due, held) = (empty(), empty(), empty(), empty());
        Self { inner, most, length: 0, first, last, due, held, bytes: Arc::default(), strange: None }
    }

    /// Hears of lines that are no messages, as of programs that greet on their standard output.
    pub(super) fn telling(self, strange: Strange) -> Self {
        Self { strange: Some(strange), ..self }
    }

    /// Looks at what has come; returns where a line ends that is too long and which request it answers.
    fn look(&mut self, bytes: &[u8]) -> Option<(usize, u64)> {
        let mut start = 0;
        while let Some(rest) = bytes.get(start..).filter(|rest| !rest.is_empty()) {
            let Some(end) = rest.iter().position(|byte| *byte == b'\n') else {
                self.grow(rest);
                return None;
            };
            let (line, _) = rest.split_at(end + 1);
            self.grow(line);
            if let Some(strange) = &self.strange
                && is_strange(&self.first)
            {
                strange(&self.first);
            }
            let answered = (self.length > self.most).then(|| request(&self.first, &self.last)).flatten();
            self.length = 0;
            self.first.clear();
            self.last.clear();
            start += end + 1;
            if let Some(id) = answered {
                return Some((start, id));
            }
        }
        None
    }

    fn grow(&mut self, part: &[u8]) {
        self.length = self.length.saturating_add(part.len());
        let room = KEPT.saturating_sub(self.first.len());
        self.first.extend(part.iter().take(room));
        // A line that is short by far is never asked for its end.
        if self.length > self.most.saturating_sub(KEPT) {
            let tail = part.len().saturating_sub(KEPT);
            self.last.extend(part.iter().skip(tail));
            let surplus = self.last.len().saturating_sub(KEPT);
            self.last.drain(..surplus);
        }
    }
}

/// Tells whether a line begins as no message does. `[INFO] ready` and `{ready}` are none either.
fn is_strange(line: &[u8]) -> bool {
    let mut bytes = line.iter().filter(|byte| !byte.is_ascii_whitespace());
    match (bytes.next(), bytes.next()) {
        (None | Some(0xEF), _) => false,
        (Some(b'{'), then) => !matches!(then, Some(b'"' | b'}') | None),
        (Some(b'['), then) => !matches!(then, Some(b'{' | b']') | None),
        (Some(_), _) => true,
    }
}

/// Moves as much as there is room for.
fn pass(bytes: &mut Vec<u8>, buffer: &mut ReadBuf<'_>) {
    let now = bytes.len().min(buffer.remaining());
    buffer.put_slice(bytes.drain(..now).as_slice());
}

/// Returns the request that an answer names at its beginning or its end.
fn request(first: &[u8], last: &[u8]) -> Option<u64> {
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

impl<R: AsyncRead + Unpin> AsyncRead for Overlong<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if !this.due.is_empty() {
            pass(&mut this.due, buffer);
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        if this.held.is_empty() {
            ready!(Pin::new(&mut this.inner).poll_read(context, buffer))?;
        } else {
            pass(&mut this.held, buffer);
        }
        let new = buffer.filled().get(before..).unwrap_or_default();
        this.bytes.fetch_add(u64::try_from(new.len()).unwrap_or(u64::MAX), Ordering::Relaxed);
        if this.length > this.most.saturating_mul(MAX_TIMES) {
            return Poll::Ready(Err(io::Error::other("a message has no end")));
        }
        if let Some((end, id)) = this.look(new) {
            let message = format!("the answer has more than {} MiB, the most that is taken", this.most >> 20);
            let error = json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32603, "message": message}});
            this.due = format!("{error}\n").into_bytes();
            let rest = new.get(end..).unwrap_or_default();
            this.held.splice(..0, rest.iter().copied());
            buffer.set_filled(before + end);
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt as _;

    use super::*;

    /// Reads everything, with a buffer of this size, and leaves out the long lines, as rmcp does.
    async fn passed(text: &str, most: usize, buffer: usize) -> String {
        let mut reader = tokio::io::BufReader::with_capacity(buffer, Overlong::new(text.as_bytes(), most));
        let mut all = String::new();
        reader.read_to_string(&mut all).await.unwrap();
        all.split_inclusive('\n').filter(|line| line.len() <= most).collect()
    }

    #[tokio::test]
    async fn a_line_that_is_dropped_is_followed_by_an_error() {
        let long = "x".repeat(400);
        let python = format!("{{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{{\"t\":\"{long}\"}}}}\n");
        let node = format!("{{\"result\":{{\"id\": 3, \"t\":\"{long}\"}},\"jsonrpc\":\"2.0\",\"id\": 8}}\n");
        let strange = format!("{long}\n");
        let text = format!("{{\"a\":1}}\n{python}{node}{strange}{{\"b\":2}}\n{python}");
        let error = |id: u64| {
            let message = "the answer has more than 0 MiB, the most that is taken";
            json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32603, "message": message}}).to_string()
                + "\n"
        };
        let expected = format!("{{\"a\":1}}\n{}{}{{\"b\":2}}\n{}", error(7), error(8), error(7));
        for buffer in [1, 2, 7, 100, 300, 450, 10_000] {
            assert_eq!(passed(&text, 200, buffer).await, expected, "{buffer}");
        }
        assert_eq!(passed(&text, 10_000, 64).await, text);
        let (sender, heard) = std::sync::mpsc::channel();
        let telling = Box::new(move |line: &[u8]| sender.send(line.to_vec()).unwrap());
        let said = b"hello\n {\"a\":1}\n\n[INFO] x\n{y}\n[{}]\n3\nhalf";
        let mut reader = Overlong::new(&said[..], 100).telling(telling);
        reader.read_to_end(&mut Vec::new()).await.unwrap();
        let heard: Vec<_> = heard.try_iter().map(|line| String::from_utf8(line).unwrap()).collect();
        assert_eq!(heard, ["hello\n", "[INFO] x\n", "{y}\n", "3\n"]);
        assert_eq!(reader.bytes.load(Ordering::Relaxed), 40);
        assert_eq!(passed("no end", 3, 64).await, "");
        let endless = "x".repeat(100);
        let mut reader = Overlong::new(endless.as_bytes(), 3);
        assert!(reader.read_exact(&mut [0; 100]).await.is_ok());
        assert!(reader.read(&mut [0; 1]).await.is_err());
    }
}
