//! A model of a provider, reached over HTTP.

use std::sync::Arc;

use bytes::Bytes;

use super::error::{Failure, ModelErrorKind};
use super::exchange::{Endpoint, Exchange};
use super::request::ModelRequest;
use super::stream::{EventStream, Model, failed, stream_of};
use super::wire::{Target, Wire};

/// The maximum size of a request.
const MAX_REQUEST_BYTES: usize = 64 * 1024 * 1024;

/// A model at an endpoint, in a wire format.
pub(super) struct HttpModel {
    /// The name at the provider.
    pub(super) name: String,
    pub(super) streaming: bool,
    pub(super) wire: Box<dyn Wire>,
    pub(super) endpoint: Arc<Endpoint>,
}

impl HttpModel {
    fn body(&self, request: &ModelRequest) -> Result<Bytes, Failure> {
        let target = Target { model: &self.name, streaming: self.streaming };
        let body = self.wire.body(target, request)?;
        let bytes = serde_json::to_vec(&body)
            .map_err(|error| Failure::new(ModelErrorKind::BadRequest, error.to_string()))?;
        if bytes.len() > MAX_REQUEST_BYTES {
            let kind = ModelErrorKind::TooLarge { part: "request", limit: MAX_REQUEST_BYTES };
            return Err(Failure::new(kind, ""));
        }
        Ok(bytes.into())
    }
}

impl Model for HttpModel {
    fn name(&self) -> &str {
        &self.name
    }

    fn stream(&self, request: &ModelRequest) -> EventStream {
        match self.body(request) {
            Ok(body) => stream_of(Exchange::new(Arc::clone(&self.endpoint), self.wire.decoder(), body)),
            Err(failure) => failed(self.endpoint.error(failure)),
        }
    }
}
