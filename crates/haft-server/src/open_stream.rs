//! Counts open streams against the limits of their token, their address and the node.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::Extensions;
use axum::http::request::Parts;
use futures_util::{Stream, StreamExt as _};
use haft_core::outcome::ErrorCode;
use haft_platform::Installation;
use haft_platform::identity::Identity;
use haft_platform::stream_limit::{StreamPermit, TooManyStreams};

use crate::authentication::Caller;
use crate::error::ApiError;

/// The address of the client, which may be the address of a proxy; missing for in-process requests.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClientAddress(pub(crate) IpAddr);

/// The caller of a request whose response is an event stream.
pub(crate) struct StreamingCaller(pub(crate) Identity, pub(crate) StreamPermit);

impl FromRequestParts<Arc<Installation>> for StreamingCaller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<Installation>) -> Result<Self, ApiError> {
        let Caller(identity) = Caller::from_request_parts(parts, app).await?;
        let permit = acquire(app, &identity, &parts.extensions)?;
        Ok(Self(identity, permit))
    }
}

/// Counts a stream of a caller.
pub(crate) fn acquire(
    app: &Installation,
    identity: &Identity,
    request: &Extensions,
) -> Result<StreamPermit, ApiError> {
    let address = request.get::<ClientAddress>().map(|address| address.0);
    app.streams().acquire(identity.id().to_string(), address).map_err(rejected)
}

/// Counts the response of a request if it is a stream. Call it before the request starts anything, because the limit may
/// reject the stream.
pub(crate) fn acquire_if(
    is_stream: bool,
    app: &Installation,
    identity: &Identity,
    request: &Extensions,
) -> Result<Option<StreamPermit>, ApiError> {
    is_stream.then(|| acquire(app, identity, request)).transpose()
}

fn rejected(error: TooManyStreams) -> ApiError {
    ApiError::new(ErrorCode::Overloaded, error.to_string())
}

/// Holds the permit until the stream is dropped.
pub(crate) fn with_permit<T>(
    events: impl Stream<Item = T> + Send + 'static,
    permit: StreamPermit,
) -> impl Stream<Item = T> + Send + 'static {
    events.inspect(move |_| {
        let _held = &permit;
    })
}
