//! A response as its events, in their order; a whole response is the last one of them.

use axum::response::sse::Event;
use futures_util::stream::{self, Stream, StreamExt as _};
use serde_json::{Value, json};

use super::answer::{AnswerEnd, Piece};
use super::responses_response::{Item, ItemKind, ResponseHead};
use crate::sse;

/// Writes the events of a response.
#[derive(Debug)]
pub(super) struct EventWriter {
    head: ResponseHead,
    next_number: u64,
    output: Vec<Value>,
    open: Option<Item>,
}

impl EventWriter {
    /// Creates a writer.
    pub(super) fn new(head: ResponseHead) -> Self {
        Self { head, next_number: 0, output: Vec::new(), open: None }
    }

    /// Returns the first events.
    pub(super) fn first(&mut self) -> Vec<Value> {
        let response = self.head.in_progress();
        let names = ["response.created", "response.in_progress"];
        names.into_iter().map(|name| self.numbered(name, json!({"response": response}))).collect()
    }

    /// Returns the events of a piece.
    pub(super) fn write(&mut self, piece: Piece) -> Vec<Value> {
        match piece {
            Piece::Text(text) => self.add(ItemKind::Message, &text),
            Piece::Reasoning(text) => self.add(ItemKind::Reasoning, &text),
            Piece::AnswerEnd => self.close(),
            Piece::End(end) => {
                let mut events = self.close();
                let (name, response) = self.ended(&end);
                events.push(self.numbered(name, json!({"response": response})));
                events
            }
        }
    }

    /// Returns the whole response and the name of its event.
    pub(super) fn ended(&self, end: &AnswerEnd) -> (&'static str, Value) {
        self.head.ended(&self.output, end)
    }

    /// Adds text to the open item, or to a new one if that is of another kind.
    fn add(&mut self, kind: ItemKind, text: &str) -> Vec<Value> {
        let mut events = Vec::new();
        if self.open.as_ref().is_none_or(|item| item.kind != kind) {
            events.extend(self.close());
            events.extend(self.open(kind));
        }
        let Some(item) = &mut self.open else { return events };
        item.text.push_str(text);
        let mut fields = self.place();
        fields.insert("delta".to_owned(), json!(text));
        if kind == ItemKind::Message {
            fields.insert("logprobs".to_owned(), json!([]));
        }
        events.push(self.numbered(delta_event(kind), Value::Object(fields)));
        events
    }

    fn open(&mut self, kind: ItemKind) -> Vec<Value> {
        let item = Item::new(kind, self.head.run, self.output.len());
        let (empty, part) = (item.empty(), item.part(""));
        self.open = Some(item);
        let mut fields = self.place();
        fields.insert("part".to_owned(), part);
        let added = json!({"output_index": self.output.len(), "item": empty});
        vec![
            self.numbered("response.output_item.added", added),
            self.numbered("response.content_part.added", Value::Object(fields)),
        ]
    }

    fn close(&mut self) -> Vec<Value> {
        let place = self.place();
        let Some(item) = self.open.take() else { return Vec::new() };
        let (mut done, mut part) = (place.clone(), place);
        done.insert("text".to_owned(), json!(item.text));
        if item.kind == ItemKind::Message {
            done.insert("logprobs".to_owned(), json!([]));
        }
        part.insert("part".to_owned(), item.part(&item.text));
        let complete = item.complete();
        let ended = json!({"output_index": self.output.len(), "item": complete});
        self.output.push(complete);
        vec![
            self.numbered(done_event(item.kind), Value::Object(done)),
            self.numbered("response.content_part.done", Value::Object(part)),
            self.numbered("response.output_item.done", ended),
        ]
    }

    /// Returns where the open item is.
    fn place(&self) -> serde_json::Map<String, Value> {
        let mut place = serde_json::Map::new();
        if let Some(item) = &self.open {
            place.insert("item_id".to_owned(), json!(item.id));
            place.insert("output_index".to_owned(), json!(self.output.len()));
            place.insert("content_index".to_owned(), json!(0));
        }
        place
    }

    fn numbered(&mut self, name: &str, mut fields: Value) -> Value {
        if let Value::Object(map) = &mut fields {
            map.insert("type".to_owned(), json!(name));
            map.insert("sequence_number".to_owned(), json!(self.next_number));
        }
        self.next_number += 1;
        fields
    }
}

const fn delta_event(kind: ItemKind) -> &'static str {
    match kind {
        ItemKind::Message => "response.output_text.delta",
        ItemKind::Reasoning => "response.reasoning_text.delta",
    }
}

const fn done_event(kind: ItemKind) -> &'static str {
    match kind {
        ItemKind::Message => "response.output_text.done",
        ItemKind::Reasoning => "response.reasoning_text.done",
    }
}

/// Writes the pieces of an answer as server-sent events.
pub(super) fn events(
    mut writer: EventWriter,
    pieces: impl Stream<Item = Piece> + Send + 'static,
) -> impl Stream<Item = Event> + Send + 'static {
    let first: Vec<Event> = writer.first().iter().map(event).collect();
    let rest = pieces
        .scan(writer, |writer, piece| {
            let events: Vec<Event> = writer.write(piece).iter().map(event).collect();
            std::future::ready(Some(stream::iter(events)))
        })
        .flatten();
    stream::iter(first).chain(rest)
}

fn event(body: &Value) -> Event {
    let name = body.get("type").and_then(Value::as_str).unwrap_or_default();
    sse::event(name, body)
}
