//! Lines of standard input, read beside the events of a run.

use std::io::{BufRead as _, IsTerminal as _, Read as _};

use tokio::sync::mpsc;

/// The longest line, in bytes.
const MAX_LINE: u64 = 1024 * 1024;

/// The lines of standard input.
pub(in crate::commands) struct Lines {
    received: mpsc::Receiver<String>,
    /// Whether a person types them.
    pub(in crate::commands) is_terminal: bool,
    /// Whether there may be further lines.
    pub(super) is_open: bool,
}

impl Lines {
    /// Starts to read. A thread of its own reads, because a read from a terminal cannot be cancelled.
    pub(in crate::commands) fn start() -> Self {
        let (sender, received) = mpsc::channel(1);
        std::thread::spawn(move || {
            let mut input = std::io::stdin().lock();
            loop {
                let mut line = String::new();
                match input.by_ref().take(MAX_LINE).read_line(&mut line) {
                    Ok(0) | Err(_) => return,
                    Ok(_) => {}
                }
                if sender.blocking_send(line).is_err() {
                    return;
                }
            }
        });
        Self { received, is_terminal: std::io::stdin().is_terminal(), is_open: true }
    }

    /// Reads standard input if it is a terminal; otherwise returns no lines.
    pub(in crate::commands) fn of_terminal() -> Self {
        if std::io::stdin().is_terminal() { Self::start() } else { Self::none() }
    }

    /// Returns no line, for commands that do not read any.
    pub(in crate::commands) fn none() -> Self {
        let (_, received) = mpsc::channel(1);
        Self { received, is_terminal: false, is_open: false }
    }

    /// Returns the next line without its line break; `None` at the end of the input.
    pub(in crate::commands) async fn next(&mut self) -> Option<String> {
        let line = self.received.recv().await;
        self.is_open = line.is_some();
        Some(line?.trim_end_matches(['\n', '\r']).to_owned())
    }
}
