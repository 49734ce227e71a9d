//! Asks a second model if the first one fails.

use std::sync::Arc;

use futures_util::StreamExt;

use super::error::ModelError;
use super::event::ModelEvent;
use super::request::ModelRequest;
use super::stream::{EventSource, EventStream, Model, stream_of};

/// A model with a substitute, which answers if the first model fails before it answered anything.
pub struct Fallback {
    first: Arc<dyn Model>,
    second: Arc<dyn Model>,
}

impl Fallback {
    /// Combines two models. The first one should do its own retries.
    pub fn new(first: Arc<dyn Model>, second: Arc<dyn Model>) -> Self {
        Self { first, second }
    }
}

impl Model for Fallback {
    fn name(&self) -> &str {
        self.first.name()
    }

    fn stream(&self, request: &ModelRequest) -> EventStream {
        let second = Some((Arc::clone(&self.second), request.clone()));
        stream_of(Attempt { events: self.first.stream(request), second })
    }
}

struct Attempt {
    events: EventStream,
    /// The second model, until one of them has answered.
    second: Option<(Arc<dyn Model>, ModelRequest)>,
}

impl EventSource for Attempt {
    async fn next(&mut self) -> Option<Result<ModelEvent, ModelError>> {
        loop {
            let item = self.events.next().await?;
            let second = self.second.take();
            match (item, second) {
                (Err(error), Some((second, request))) => {
                    tracing::warn!(%error, second = second.name(), "falling back to another model");
                    self.events = second.stream(&request);
                }
                (item, _) => return Some(item),
            }
        }
    }
}
