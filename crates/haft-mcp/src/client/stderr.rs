//! The last lines that a program wrote to its standard error.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use haft_core::problem::excerpt;
use tokio::io::{AsyncRead, AsyncReadExt as _};

use super::filled::Scrubber;

/// How many lines are kept, and how much of each.
const LINES: usize = 30;
const LENGTH: usize = 500;

/// The last lines of a stream. Clones share them.
#[derive(Clone, Default)]
pub(super) struct Tail {
    kept: Arc<Mutex<Kept>>,
}

#[derive(Default)]
struct Kept {
    lines: VecDeque<String>,
    /// How many of them are of the program that runs now.
    recent: usize,
}

impl Tail {
    /// Reads a stream to its end, whatever comes.
    pub(super) async fn follow(self, mut stream: impl AsyncRead + Unpin, scrubber: Scrubber) {
        let mut buffer = vec![0; 4096];
        let mut line = Vec::new();
        while let Ok(count @ 1..) = stream.read(&mut buffer).await {
            for byte in buffer.iter().take(count) {
                match byte {
                    b'\n' => self.push(&std::mem::take(&mut line), &scrubber),
                    // The rest of a long line is not kept.
                    byte if line.len() < LENGTH * 4 => line.push(*byte),
                    _ => {}
                }
            }
        }
        if !line.is_empty() {
            self.push(&line, &scrubber);
        }
    }

    /// Keeps one line.
    pub(super) fn push(&self, line: &[u8], scrubber: &Scrubber) {
        let text = excerpt(&scrubber.clean(String::from_utf8_lossy(line).into_owned()), LENGTH);
        if text.trim().is_empty() {
            return;
        }
        let mut kept = self.kept();
        if kept.lines.len() == LINES {
            kept.lines.pop_front();
        }
        kept.lines.push_back(text);
        kept.recent = (kept.recent + 1).min(LINES);
    }

    /// Says that another program begins.
    pub(super) fn begin(&self) {
        self.kept().recent = 0;
    }

    /// Returns the lines.
    pub(super) fn lines(&self) -> Vec<String> {
        self.kept().lines.iter().cloned().collect()
    }

    /// Returns the last lines of the program that runs now, or ended last: at most so many.
    pub(super) fn last(&self, most: usize) -> Vec<String> {
        let kept = self.kept();
        let skipped = kept.lines.len() - kept.recent.min(most);
        kept.lines.iter().skip(skipped).cloned().collect()
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
