//! Reads the stream of live events.

use serde_json::Value;

/// The largest event, in bytes; a larger one ends the stream.
const MAX_EVENT_BYTES: usize = 16 * 1024 * 1024;

/// One event.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ServerEvent {
    /// The name.
    pub(crate) name: String,
    /// The data; `null` if it is not JSON.
    pub(crate) data: Value,
}

impl ServerEvent {
    fn parse(text: &str) -> Option<Self> {
        let field = |name: &str| {
            let values = text.lines().filter_map(move |line| line.strip_prefix(name)?.strip_prefix(':'));
            values.map(|value| value.strip_prefix(' ').unwrap_or(value)).collect::<Vec<_>>()
        };
        let name = field("event").first()?.trim().to_owned();
        let data = serde_json::from_str(&field("data").join("\n")).unwrap_or_default();
        Some(Self { name, data })
    }
}

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
        self.next_event().await.map(|event| event.name)
    }

    /// Returns the next event; `None` when the stream has ended. Nothing is lost if the future is dropped.
    pub(crate) async fn next_event(&mut self) -> Option<ServerEvent> {
        loop {
            while let Some(event) = self.take_event() {
                // Without a name it is a comment, which keeps the connection open.
                if let Some(event) = ServerEvent::parse(&event) {
                    return Some(event);
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn events_have_a_name_and_data() {
        let event = |text: &str| ServerEvent::parse(text).map(|event| (event.name, event.data));
        assert_eq!(
            event("event: end\nid: 3\ndata: {\"a\":\ndata: 1}\n\n"),
            Some(("end".into(), json!({"a": 1})))
        );
        assert_eq!(event("event:x\n\n"), Some(("x".into(), json!(null))));
        assert_eq!(event(": keep-alive\n\n"), None);
    }
}
