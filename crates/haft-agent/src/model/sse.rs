//! Server-sent events, parsed from bytes as they arrive.

use super::error::{Failure, ModelErrorKind};

/// The maximum size of one event. Images of an answer arrive in one event.
pub const MAX_EVENT_BYTES: usize = 16 * 1024 * 1024;

/// One event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct SseEvent {
    /// The name; empty without an `event:` line.
    pub(super) name: String,
    /// The lines of the data.
    pub(super) data: String,
}

/// Splits bytes into events.
#[derive(Default)]
pub(super) struct SseParser {
    line: Vec<u8>,
    event: SseEvent,
    has_data: bool,
    /// The last byte was a carriage return: a line feed that follows belongs to it.
    after_return: bool,
    started: bool,
}

impl SseParser {
    /// Adds bytes and appends the events that they complete.
    pub(super) fn push(&mut self, mut bytes: &[u8], events: &mut Vec<SseEvent>) -> Result<(), Failure> {
        while !bytes.is_empty() {
            if std::mem::take(&mut self.after_return)
                && let Some(rest) = bytes.strip_prefix(b"\n")
            {
                bytes = rest;
                continue;
            }
            let end = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            let (part, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
            self.check(part.len())?;
            self.line.extend_from_slice(part);
            let Some((separator, rest)) = rest.split_first() else { break };
            self.after_return = *separator == b'\r';
            bytes = rest;
            self.end_line(events);
        }
        Ok(())
    }

    /// Completes an event that no empty line follows.
    pub(super) fn finish(&mut self, events: &mut Vec<SseEvent>) {
        if !self.line.is_empty() {
            self.end_line(events);
        }
        self.dispatch(events);
    }

    fn check(&self, more: usize) -> Result<(), Failure> {
        if self.line.len() + self.event.data.len() + self.event.name.len() + more <= MAX_EVENT_BYTES {
            return Ok(());
        }
        let kind = ModelErrorKind::TooLarge { part: "event of the answer", limit: MAX_EVENT_BYTES };
        Err(Failure::new(kind, ""))
    }

    fn end_line(&mut self, events: &mut Vec<SseEvent>) {
        let bytes = std::mem::take(&mut self.line);
        let text = String::from_utf8_lossy(&bytes);
        let mut line = text.as_ref();
        if !std::mem::replace(&mut self.started, true) {
            line = line.strip_prefix('\u{feff}').unwrap_or(line);
        }
        if line.is_empty() {
            self.dispatch(events);
            return;
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.event.data.push('\n');
                }
                self.event.data.push_str(value);
            }
            "event" => value.clone_into(&mut self.event.name),
            // Comments, ids and reconnection times.
            _ => {}
        }
    }

    fn dispatch(&mut self, events: &mut Vec<SseEvent>) {
        let event = std::mem::take(&mut self.event);
        if std::mem::take(&mut self.has_data) {
            events.push(event);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(chunks: &[&[u8]]) -> Vec<(String, String)> {
        let (mut parser, mut events) = (SseParser::default(), Vec::new());
        for chunk in chunks {
            parser.push(chunk, &mut events).unwrap();
        }
        parser.finish(&mut events);
        events.into_iter().map(|event| (event.name, event.data)).collect()
    }

    fn own(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(name, data)| ((*name).to_owned(), (*data).to_owned())).collect()
    }

    #[test]
    fn events_of_the_specification() {
        for (text, expected) in [
            ("data: a\n\ndata: b\n\n", &[("", "a"), ("", "b")][..]),
            ("event: x\r\ndata: a\r\n\r\n", &[("x", "a")]),
            ("data: a\rdata: b\r\r", &[("", "a\nb")]),
            ("\u{feff}data:a\n\n", &[("", "a")]),
            (": ping\n\ndata:  two blanks\n\n", &[("", " two blanks")]),
            ("id: 7\nretry: 10\ndata\n\n", &[("", "")]),
            ("event: no data\n\ndata: a\n\n", &[("", "a")]),
            // The end of the stream completes an event.
            ("data: a\n\ndata: cut", &[("", "a"), ("", "cut")]),
            ("<html>\n<body>\n", &[]),
            ("", &[]),
        ] {
            assert_eq!(parse(&[text.as_bytes()]), own(expected), "{text:?}");
        }
    }

    #[test]
    fn an_endless_line_is_an_error() {
        let (mut parser, mut events) = (SseParser::default(), Vec::new());
        let chunk = vec![b'x'; 1024 * 1024];
        let failure = (0..32).find_map(|_| parser.push(&chunk, &mut events).err());
        assert!(matches!(failure.unwrap().kind, ModelErrorKind::TooLarge { .. }));
    }

    proptest! {
        #[test]
        fn chunks_do_not_matter(text in "(data: [a-c]{0,3}|event: x|:|)(\r\n|\n|\r|)", cut in 0_usize..40, times in 1_usize..6) {
            let text = text.repeat(times).into_bytes();
            let (start, end) = text.split_at(cut.min(text.len()));
            prop_assert_eq!(parse(&[start, end]), parse(&[&text]));
        }
    }
}
