//! What a process writes: streamed to who watches, kept within bounds.

use std::borrow::Cow;
use std::io;
use std::os::fd::AsFd;

use tokio::io::{AsyncRead, AsyncReadExt as _};

/// How much a process may write beyond what is kept before it is stopped: reading and dropping costs, too.
const PATIENCE: u64 = 64 << 20;

/// One of the two streams that a process writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Its standard output.
    Stdout,
    /// Its standard error.
    Stderr,
}

/// What is kept of a stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CapturedOutput {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// How many bytes were left out.
    pub left_out: u64,
}

impl CapturedOutput {
    /// Returns the bytes as text; what is not UTF-8 is replaced. A cut is not marked.
    pub fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.bytes)
    }

    /// Takes bytes at the end, keeping the first ones.
    fn keep_first(&mut self, chunk: &[u8], most: usize) {
        let room = most.saturating_sub(self.bytes.len()).min(chunk.len());
        let (kept, dropped) = chunk.split_at(room);
        self.bytes.extend_from_slice(kept);
        self.left_out += dropped.len() as u64;
    }

    /// Takes bytes at the end, keeping the last ones.
    fn keep_last(&mut self, chunk: &[u8], most: usize) {
        self.bytes.extend_from_slice(chunk);
        // Shifting at twice the size makes the cost per byte constant.
        if self.bytes.len() > most.saturating_mul(2) {
            self.cut_front(most);
        }
    }

    fn cut_front(&mut self, most: usize) {
        let surplus = self.bytes.len().saturating_sub(most);
        self.bytes.drain(..surplus);
        self.left_out += surplus as u64;
    }

    /// Removes a character that a cut has halved, so that no replacement character stands at the cut.
    fn mend_end(&mut self) {
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

/// How reading ended.
#[derive(Debug, PartialEq, Eq)]
pub enum CaptureEnd {
    /// Both streams were closed, or had nothing more.
    Closed,
    /// The process wrote far more than is kept.
    Flooded,
}

/// Reads two streams to their ends. The first bytes of the standard output and the last ones of the standard
/// error are kept: a result begins at its start, and the reason of a failure stands at the end.
pub struct Capture {
    /// The beginning of the standard output.
    pub stdout: CapturedOutput,
    /// The end of the standard error.
    pub stderr: CapturedOutput,
    most: usize,
    total: u64,
}

impl Capture {
    /// Keeps at most so many bytes of each stream.
    pub fn new(most: usize) -> Self {
        Self { stdout: CapturedOutput::default(), stderr: CapturedOutput::default(), most, total: 0 }
    }

    /// Reads until both streams are closed, or the process floods them.
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

    /// Takes what two pipes hold at this moment, without waiting for more. Their ends here must not block.
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
        self.total > (self.most as u64).saturating_add(PATIENCE)
    }

    fn take(&mut self, stream: Stream, chunk: &[u8], watch: &mut (dyn FnMut(Stream, &[u8]) + Send)) {
        self.total += chunk.len() as u64;
        match stream {
            Stream::Stdout => self.stdout.keep_first(chunk, self.most),
            Stream::Stderr => self.stderr.keep_last(chunk, self.most),
        }
        if !chunk.is_empty() {
            watch(stream, chunk);
        }
    }

    /// Puts what was read in order; also after an interruption.
    pub fn finish(&mut self) {
        self.stdout.mend_end();
        self.stderr.cut_front(self.most);
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
    async fn the_beginning_of_the_output_and_the_end_of_the_errors_are_kept() {
        assert_eq!(capture(b"abc", b"xyz", 5).await, (captured(b"abc", 0), captured(b"xyz", 0)));
        assert_eq!(capture(b"abcdef", b"uvwxyz", 5).await, (captured(b"abcde", 1), captured(b"vwxyz", 1)));
        let long = vec![b'x'; 100_000];
        let (out, err) = capture(&long, &long, 10).await;
        assert_eq!((out, err), (captured(&[b'x'; 10], 99_990), captured(&[b'x'; 10], 99_990)));
    }

    #[test]
    fn what_pipes_hold_is_taken_without_waiting() {
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
    async fn a_cut_does_not_halve_a_character() {
        let text = "aä".as_bytes();
        assert_eq!(capture(text, b"", 2).await.0, captured(b"a", 2));
        // What the process itself halved stays as it is.
        let halved = text.get(..2).unwrap();
        assert_eq!(capture(halved, b"", 9).await.0, captured(halved, 0));
    }
}
