//! Reads the stream of live events.

/// The largest event, in bytes; a larger one ends the stream.
const MAX_EVENT_BYTES: usize = 1024 * 1024;

/// An open stream of events.
pub(crate) struct EventStream {
    response: reqwest::Response,
    received: Vec<u8>,
}

impl EventStream {
    /// Reads events from a response.
    pub(super) fn new(response: reqwest::Response) -> Self {
        Self { response, received: Vec::new() }
    }

    /// Returns the name of the next event; `None` when the stream has ended.
    pub(crate) async fn next(&mut self) -> Option<String> {
        loop {
            while let Some(event) = self.take_event() {
                let name = event.lines().find_map(|line| line.strip_prefix("event:"));
                // Without a name it is a comment, which keeps the connection open.
                if let Some(name) = name {
                    return Some(name.trim().to_owned());
                }
            }
            let chunk = self.response.chunk().await.ok().flatten()?;
            if self.received.len() + chunk.len() > MAX_EVENT_BYTES {
                return None;
            }
            self.received.extend_from_slice(&chunk);
        }
    }

    /// Takes an event that was received completely.
    fn take_event(&mut self) -> Option<String> {
        let end = self.received.windows(2).position(|pair| pair == b"\n\n")? + 2;
        let event: Vec<u8> = self.received.drain(..end).collect();
        Some(String::from_utf8_lossy(&event).into_owned())
    }
}
