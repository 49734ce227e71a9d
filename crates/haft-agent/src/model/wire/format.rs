//! What every wire format provides.

use haft_core::secret::Secret;
use serde_json::Value;

use crate::model::answer::Answer;
use crate::model::error::Failure;
use crate::model::request::ModelRequest;
use crate::model::sse::SseEvent;

/// The model and the manner of an answer.
#[derive(Debug, Clone, Copy)]
pub(in crate::model) struct Target<'a> {
    /// The name of the model at its provider.
    pub(in crate::model) model: &'a str,
    /// Whether the answer is streamed.
    pub(in crate::model) streaming: bool,
}

/// A wire format.
pub(in crate::model) trait Wire: Send + Sync {
    /// Returns the path below the base URL, with a query if there is one.
    fn path(&self, target: Target<'_>) -> String;

    /// Returns the headers that carry the key, and others that the format needs.
    fn headers(&self, key: Option<&Secret>) -> Vec<(&'static str, Secret)>;

    /// Writes the body of a request.
    fn body(&self, target: Target<'_>, request: &ModelRequest) -> Result<Value, Failure>;

    /// Returns a decoder for one response.
    fn decoder(&self) -> Box<dyn Decoder>;
}

/// Reads one response.
pub(in crate::model) trait Decoder: Send + Sync {
    /// Reads an event of a streamed response.
    fn event(&mut self, event: &SseEvent, answer: &mut Answer) -> Result<(), Failure>;

    /// Reads a response that arrived as one JSON document.
    fn whole(&mut self, body: &Value, answer: &mut Answer) -> Result<(), Failure>;

    /// Completes the answer at the end of a streamed response, if it is complete.
    fn end(&mut self, answer: &mut Answer) -> Result<(), Failure>;
}
