//! A chat completion as a stream of server-sent events.

use axum::response::sse::Event;
use futures_util::stream::{self, Stream, StreamExt as _};

use super::answer::Piece;
use super::chat_response::ChunkWriter;
use crate::sse;

/// The data of the last event.
const DONE: &str = "[DONE]";

/// Writes the pieces of an answer as events.
pub(super) fn events(
    writer: ChunkWriter,
    pieces: impl Stream<Item = Piece> + Send + 'static,
) -> impl Stream<Item = Event> + Send + 'static {
    let first = stream::iter([sse::unnamed(&writer.first())]);
    let rest = pieces
        .scan(writer, |writer, piece| {
            let is_end = matches!(piece, Piece::End(_));
            let mut events: Vec<Event> = writer.write(piece).iter().map(sse::unnamed).collect();
            if is_end {
                events.push(Event::default().data(DONE));
            }
            std::future::ready(Some(stream::iter(events)))
        })
        .flatten();
    first.chain(rest)
}
