//! The last lines that a program wrote to standard error.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use haft_core::problem::excerpt;
use tokio::io::{AsyncRead, AsyncReadExt as _};

use super::config::Scrubber;

/// How many lines are kept.
const MAX_LINES: usize = 30;
/// How many characters of each line are kept.
const MAX_LINE_CHARS: usize = 500;

/// The last lines of a stream. Clones share them.
#[derive(Clone, Default)]
pub(super) struct StderrTail {
    tail: Arc<Mutex<TailLines>>,
}

#[derive(Default)]
struct TailLines {
    lines: VecDeque<String>,
    /// How many of them belong to the current program.
    recent: usize,
}

impl StderrTail {
    /// Reads a stream to its end.
    pub(super) async fn follow(self, mut stream: impl AsyncRead + Unpin, scrubber: Scrubber) {
        let mut buffer = vec![0; 4096];
        let mut line = Vec::new();
        while let Ok(count @ 1..) = stream.read(&mut buffer).await {
            for byte in buffer.iter().take(count) {
                match byte {
                    b'\n' => self.push(&std::mem::take(&mut line), &scrubber),
                    // The rest of a long line is dropped.
                    byte if line.len() < MAX_LINE_CHARS * 4 => line.push(*byte),
                    _ => {}
                }
            }
        }
        if !line.is_empty() {
            self.push(&line, &scrubber);
        }
    }

    /// Adds a line.
    pub(super) fn push(&self, line: &[u8], scrubber: &Scrubber) {
        let text = excerpt(&scrubber.clean(String::from_utf8_lossy(line).into_owned()), MAX_LINE_CHARS);
        if text.trim().is_empty() {
            return;
        }
        let mut tail = self.lock();
        if tail.lines.len() == MAX_LINES {
            tail.lines.pop_front();
        }
        tail.lines.push_back(text);
        tail.recent = (tail.recent + 1).min(MAX_LINES);
    }

    /// Marks the start of another program.
    pub(super) fn start_program(&self) {
        self.lock().recent = 0;
    }

    /// Returns the lines.
    pub(super) fn lines(&self) -> Vec<String> {
        self.lock().lines.iter().cloned().collect()
    }

    /// Returns at most `count` of the last lines of the current program.
    pub(super) fn last(&self, count: usize) -> Vec<String> {
        let tail = self.lock();
        let skipped = tail.lines.len() - tail.recent.min(count);
        tail.lines.iter().skip(skipped).cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, TailLines> {
        self.tail.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
