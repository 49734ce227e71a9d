//! The one trait of every model.

use std::pin::Pin;

use futures_util::{Stream, StreamExt, stream};

use super::error::ModelError;
use super::event::ModelEvent;
use super::request::ModelRequest;

/// The events of an answer. An error is the last item. Dropping the stream cancels the request.
pub type EventStream = Pin<Box<dyn Stream<Item = Result<ModelEvent, ModelError>> + Send>>;

/// A model that answers requests.
pub trait Model: Send + Sync {
    /// Returns the name of the model.
    fn name(&self) -> &str;

    /// Starts to answer. Nothing is sent before the stream is polled.
    fn stream(&self, request: &ModelRequest) -> EventStream;
}

/// Something that produces events one by one.
pub(super) trait EventSource: Send + 'static {
    /// Returns the next event, or `None` after the last one.
    fn next(&mut self) -> impl Future<Output = Option<Result<ModelEvent, ModelError>>> + Send;
}

/// Turns a source into a stream that ends after the first error.
pub(super) fn stream_of<S: EventSource>(source: S) -> EventStream {
    Box::pin(stream::unfold(Some(source), |source| async move {
        let mut source = source?;
        let item = source.next().await?;
        let source = item.is_ok().then_some(source);
        Some((item, source))
    }))
}

/// Returns a stream with one error.
pub(super) fn failed(error: ModelError) -> EventStream {
    stream::once(async { Err(error) }).boxed()
}
