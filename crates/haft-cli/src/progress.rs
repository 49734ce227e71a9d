//! Shows on a terminal what a command waits for, after two seconds.

use std::future::Future;
use std::io::Write as _;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use haft_core::problem::excerpt;
use tokio::time::{Instant, interval_at};

use crate::output::Output;

/// How long a command may take before progress is shown.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often the line is drawn.
const TICK: Duration = Duration::from_millis(120);
/// The frames of the spinner.
const FRAMES: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];
/// The maximum length of the text: the line must not wrap.
const MAX_TEXT: usize = 64;

/// Draws a line on stderr while a future runs. Clones share the line.
#[derive(Debug, Clone, Default)]
pub(crate) struct Progress(Option<Arc<State>>);

#[derive(Debug, Default)]
struct State {
    text: Mutex<String>,
    /// Whether a future draws the line; nested futures do not.
    active: AtomicBool,
}

impl Progress {
    /// Creates the progress of a command; without a terminal, with `--quiet` and with JSON it shows nothing.
    pub(crate) fn new(output: &Output) -> Self {
        Self(output.shows_progress().then(Arc::default))
    }

    /// Replaces the text of the line that is being drawn.
    pub(crate) fn set(&self, text: impl Into<String>) {
        if let Some(state) = &self.0 {
            state.set(text.into());
        }
    }

    /// Awaits a future, and shows `text` if it takes long.
    pub(crate) async fn during<F: Future>(&self, text: &str, future: F) -> F::Output {
        let Some(state) = self.0.as_ref().filter(|state| !state.active.swap(true, Ordering::Relaxed)) else {
            return future.await;
        };
        state.set(text.to_owned());
        let mut line = Line { state, drawn: 0 };
        let mut future = pin!(future);
        let started = Instant::now();
        let mut ticks = interval_at(started + PATIENCE, TICK);
        loop {
            tokio::select! {
                biased;
                output = &mut future => return output,
                _ = ticks.tick() => line.draw(started.elapsed()),
            }
        }
    }
}

impl State {
    fn set(&self, text: String) {
        *self.text.lock().unwrap_or_else(PoisonError::into_inner) = text;
    }

    /// Returns the line without control sequences.
    fn line(&self, frame: usize, elapsed: Duration) -> String {
        let text = self.text.lock().unwrap_or_else(PoisonError::into_inner);
        let frame = FRAMES.get(frame % FRAMES.len()).copied().unwrap_or_default();
        format!("{frame} {} ({} s)", excerpt(&text, MAX_TEXT), elapsed.as_secs())
    }
}

/// The line on the terminal; dropping it erases the line, also if the future is cancelled.
struct Line<'a> {
    state: &'a State,
    drawn: usize,
}

impl Line<'_> {
    fn draw(&mut self, elapsed: Duration) {
        write(&format!("\r\x1b[2K{}", self.state.line(self.drawn, elapsed)));
        self.drawn += 1;
    }
}

impl Drop for Line<'_> {
    fn drop(&mut self) {
        if self.drawn > 0 {
            write("\r\x1b[2K");
        }
        self.state.active.store(false, Ordering::Relaxed);
    }
}

/// Writes to stderr; a closed stderr is ignored.
fn write(text: &str) {
    let mut error = std::io::stderr().lock();
    let _ = error.write_all(text.as_bytes()).and_then(|()| error.flush());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_has_text_and_seconds() {
        let state = State::default();
        state.set("loading\nthe tools".to_owned());
        assert_eq!(state.line(11, Duration::from_millis(3900)), "⠙ loading\u{fffd}the tools (3 s)");
        state.set("x".repeat(100));
        assert!(state.line(0, Duration::ZERO).chars().count() < 80);
    }

    #[tokio::test]
    async fn only_the_outermost_future_draws() {
        let progress = Progress(Some(Arc::default()));
        let shared = progress.0.clone().unwrap();
        let inner = async {
            progress.set("second");
            let text = || shared.text.lock().unwrap().clone();
            let nested = progress.during("third", async { text() }).await;
            (nested, shared.active.load(Ordering::Relaxed))
        };
        assert_eq!(progress.during("first", inner).await, ("second".to_owned(), true));
        assert!(!shared.active.load(Ordering::Relaxed));
        assert_eq!(Progress::default().during("nothing", async { 7 }).await, 7);
    }
}
