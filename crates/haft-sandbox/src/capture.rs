//! Captures the output of a process: streams it to a watcher and keeps a limited part.

use std::borrow::Cow;
use std::io;
use std::os::fd::AsFd;

use tokio::io::{AsyncRead, AsyncReadExt as _};

/// How many bytes beyond the limit a process may write before it is stopped.
const FLOOD_BYTES: u64 = 64 << 20;

/// An output stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// The captured part of a stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CapturedOutput {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// How many bytes were dropped.
    pub left_out: u64,
}

impl CapturedOutput {
    /// Returns the bytes as text; invalid UTF-8 is replaced. A cut is not marked.
    pub fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.bytes)
    }

    /// Appends bytes, keeping the first ones.
    fn keep_first(&mut self, chunk: &[u8], limit: usize) {
        let room = limit.saturating_sub(self.bytes.len()).min(chunk.len());
        let (kept, dropped) = chunk.split_at(room);
        self.bytes.extend_from_slice(kept);
        self.left_out += dropped.len() as u64;
    }

    /// Appends bytes, keeping the last ones.
    fn keep_last(&mut self, chunk: &[u8], limit: usize) {
        self.bytes.extend_from_slice(chunk);
        // Cutting at twice the limit makes the cost per byte constant.
        if self.bytes.len() > limit.saturating_mul(2) {
            self.cut_front(limit);
        }
    }

    fn cut_front(&mut self, limit: usize) {
        let surplus = self.bytes.len().saturating_sub(limit);
        self.bytes.drain(..surplus);
        self.left_out += surplus as u64;
    }

    /// Removes a character that was cut in half.
    fn trim_partial_char(&mut self) {
        if self.left_out == 0 {
            return;
        }
        if let Err(error) = std::str::from_utf8(&self.bytes)
            && error.error_len().is_none()
        {
            let surplus = self.bytes.len() - error.valid_up_to();
            self.bytes.truncate(error.valid_up_to());
            self.left_out += surplus as u64;
        }
    }
}

/// Why the capture ended.
#[derive(Debug, PartialEq, Eq)]
pub enum CaptureEnd {
    /// Both streams were closed or are empty.
    Closed,
    /// The process wrote far more than the limit.
    Flooded,
}

/// Captures both output streams. Keeps the beginning of standard output, where a result starts, and the end of standard
/// error, where the reason of a failure is.
pub struct Capture {
    /// The beginning of standard output.
    pub stdout: CapturedOutput,
    /// The end of standard error.
    pub stderr: CapturedOutput,
    limit: usize,
    total: u64,
}

impl Capture {
    /// Creates a capture that keeps at most `limit` bytes of each stream.
    pub fn new(limit: usize) -> Self {
        Self { stdout: CapturedOutput::default(), stderr: CapturedOutput::default(), limit, total: 0 }
    }

    /// Reads until both streams are closed or the process exceeds the flood limit.
    pub async fn read(
        &mut self,
        mut stdout: impl AsyncRead + Unpin,
        mut stderr: impl AsyncRead + Unpin,
        watch: &mut (dyn FnMut(Stream, &[u8]) + Send),
    ) -> io::Result<CaptureEnd> {
        let (mut first, mut second) = (vec![0; 16 << 10], vec![0; 4 << 10]);
        let (mut reads_first, mut reads_second) = (true, true);
        while reads_first || reads_second {
            let (stream, length) = tokio::select! {
                length = stdout.read(&mut first), if reads_first => (Stream::Stdout, length?),
                length = stderr.read(&mut second), if reads_second => (Stream::Stderr, length?),
            };
            let (buffer, open) = match stream {
                Stream::Stdout => (&first, &mut reads_first),
                Stream::Stderr => (&second, &mut reads_second),
            };
            *open = length > 0;
            self.take(stream, buffer.get(..length).unwrap_or_default(), watch);
            if self.is_flooded() {
                self.finish();
                return Ok(CaptureEnd::Flooded);
            }
        }
        self.finish();
        Ok(CaptureEnd::Closed)
    }

    /// Reads what two non-blocking pipes contain now, without waiting for more.
    pub fn drain(
        &mut self,
        stdout: impl AsFd,
        stderr: impl AsFd,
        watch: &mut (dyn FnMut(Stream, &[u8]) + Send),
    ) -> CaptureEnd {
        let mut buffer = vec![0; 16 << 10];
        for (stream, pipe) in [(Stream::Stdout, stdout.as_fd()), (Stream::Stderr, stderr.as_fd())] {
            while let Ok(length @ 1..) = rustix::io::read(pipe, &mut buffer) {
                self.take(stream, buffer.get(..length).unwrap_or_default(), watch);
                if self.is_flooded() {
                    return CaptureEnd::Flooded;
                }
            }
        }
        CaptureEnd::Closed
    }

    fn is_flooded(&self) -> bool {
        self.total > (self.limit as u64).saturating_add(FLOOD_BYTES)
    }

    fn take(&mut self, stream: Stream, chunk: &[u8], watch: &mut (dyn FnMut(Stream, &[u8]) + Send)) {
        self.total += chunk.len() as u64;
        match stream {
            Stream::Stdout => self.stdout.keep_first(chunk, self.limit),
            Stream::Stderr => self.stderr.keep_last(chunk, self.limit),
        }
        if !chunk.is_empty() {
            watch(stream, chunk);
        }
    }

    /// Trims what was read; also needed after an interruption.
    pub fn finish(&mut self) {
        self.stdout.trim_partial_char();
        self.stderr.cut_front(self.limit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn capture(out: &[u8], err: &[u8], most: usize) -> (CapturedOutput, CapturedOutput) {
        let mut capture = Capture::new(most);
        let mut seen = 0;
        let ended = capture.read(out, err, &mut |_, chunk| seen += chunk.len()).await.unwrap();
        assert_eq!((ended, seen), (CaptureEnd::Closed, out.len() + err.len()));
        (capture.stdout, capture.stderr)
    }

    fn captured(bytes: &[u8], left_out: u64) -> CapturedOutput {
        CapturedOutput { bytes: bytes.to_vec(), left_out }
    }

    #[tokio::test]
    async fn keeps_the_beginning_of_stdout_and_the_end_of_stderr() {
        assert_eq!(capture(b"abc", b"xyz", 5).await, (captured(b"abc", 0), captured(b"xyz", 0)));
        assert_eq!(capture(b"abcdef", b"uvwxyz", 5).await, (captured(b"abcde", 1), captured(b"vwxyz", 1)));
        let long = vec![b'x'; 100_000];
        let (out, err) = capture(&long, &long, 10).await;
        assert_eq!((out, err), (captured(&[b'x'; 10], 99_990), captured(&[b'x'; 10], 99_990)));
    }

    #[test]
    fn drains_pipes_without_waiting() {
        use std::io::Write as _;
        let pipe = || {
            let (read, write) = std::io::pipe().unwrap();
            rustix::io::ioctl_fionbio(&read, true).unwrap();
            (read, write)
        };
        let ((out, mut writes_out), (err, _writes_err)) = (pipe(), pipe());
        writes_out.write_all(&vec![b'x'; 40_000]).unwrap();
        let mut capture = Capture::new(30_000);
        let mut seen = 0;
        let ended = capture.drain(&out, &err, &mut |_, chunk| seen += chunk.len());
        assert_eq!((ended, seen), (CaptureEnd::Closed, 40_000));
        assert_eq!(
            (capture.stdout, capture.stderr),
            (captured(&vec![b'x'; 30_000], 10_000), captured(b"", 0))
        );
    }

    #[tokio::test]
    async fn a_cut_does_not_split_a_character() {
        let text = "aä".as_bytes();
        assert_eq!(capture(text, b"", 2).await.0, captured(b"a", 2));
        // A partial character written by the process stays.
        let halved = text.get(..2).unwrap();
        assert_eq!(capture(halved, b"", 9).await.0, captured(halved, 0));
    }
}
