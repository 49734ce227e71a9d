//! What surrounds all routes: request id, response count, CORS, compression and panics.
//!
//! Written as one function and not as tower layers: each layer of a router boxes its future and its body for every
//! request.

use std::convert::Infallible;
use std::future::ready;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, HttpBody as _};
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use axum::response::{IntoResponse as _, Response};
use futures_util::FutureExt as _;
use haft_core::outcome::ErrorCode;
use tower::{Layer as _, Service as _, ServiceExt as _};
use tower_http::compression::Compression;
use tower_http::compression::predicate::{NotForContentType, Predicate as _, SizeAbove};
use tower_http::cors::{AllowOrigin, CorsLayer};

use crate::error::ApiError;
use crate::mcp;
use crate::oauth_answer;
use crate::query::QueryParameters;
use crate::step_up::StepUp;
use crate::{authentication, body};
use haft_platform::Installation;
use haft_platform::request_id;

/// Smaller responses are sent uncompressed: compressing them costs more than it saves.
const MIN_COMPRESSED_BYTES: u64 = 1024;

/// The whole HTTP surface.
pub(crate) struct Edge {
    app: Arc<Installation>,
    routes: Router,
    query_parameters: QueryParameters,
    cors: Option<CorsLayer>,
}

impl Edge {
    /// Wraps the routes.
    pub(crate) fn new(app: Arc<Installation>, routes: Router, query_parameters: QueryParameters) -> Self {
        let cors = cors(&app.settings().server.cors_origins);
        Self { app, routes, query_parameters, cors }
    }

    /// Handles a request.
    pub(crate) async fn handle(&self, request: Request) -> Response {
        let id = request_id::from_headers(request.headers());
        let header = HeaderValue::from_str(&id);
        let mut response = request_id::scope(id, self.with_cors(request)).await;
        if let Ok(header) = header {
            response.headers_mut().insert(request_id::HEADER, header);
        }
        self.app.metrics().count_response(response.status().as_u16());
        response
    }

    async fn with_cors(&self, request: Request) -> Response {
        if oauth_answer::is_public(request.uri().path()) {
            return self.for_every_origin(request).await;
        }
        let Some(cors) = &self.cors else { return self.with_compression(request).await };
        let inner = tower::service_fn(|request| self.with_compression(request).map(Ok::<_, Infallible>));
        let response = Box::pin(cors.layer(inner).oneshot(request)).await;
        response.unwrap_or_else(|never| match never {})
    }

    /// Clients in browsers log in from any origin, without cookies.
    async fn for_every_origin(&self, request: Request) -> Response {
        if request.method() == Method::OPTIONS {
            return oauth_answer::preflight();
        }
        oauth_answer::allow_every_origin(self.with_compression(request).await)
    }

    async fn with_compression(&self, request: Request) -> Response {
        let mut accepted = HeaderMap::new();
        for value in request.headers().get_all(header::ACCEPT_ENCODING) {
            accepted.append(header::ACCEPT_ENCODING, value.clone());
        }
        let response = self.catch_panic(request).await;
        let size = response.body().size_hint();
        if size.upper().is_some_and(|bytes| bytes < MIN_COMPRESSED_BYTES) {
            return response;
        }
        Box::pin(compress(accepted, response)).await
    }

    /// Turns a panic in a handler into an internal error.
    async fn catch_panic(&self, request: Request) -> Response {
        let handled = AssertUnwindSafe(self.route(request)).catch_unwind().await;
        handled.unwrap_or_else(|_| {
            ApiError::new(ErrorCode::Internal, "an internal error occurred; see the server log")
                .into_response()
        })
    }

    async fn route(&self, request: Request) -> Response {
        let path = request.uri().path();
        if path.contains('%') && percent_encoding::percent_decode_str(path).decode_utf8().is_err() {
            return ApiError::bad_request("the path is not valid UTF-8 after percent-decoding")
                .into_response();
        }
        if let Err(error) = self.query_parameters.check(request.method(), request.uri()) {
            let identity = authentication::authenticate(&self.app, request.method(), request.headers()).await;
            let error = identity.err().unwrap_or(error);
            body::discard(request).await;
            return error.into_response();
        }
        let step_up = StepUp::of(&request);
        let response = self.routes.clone().call(request).await;
        let response = response.unwrap_or_else(|never| match never {});
        step_up.add(&self.app, response).await
    }
}

/// Compresses a response if it is large enough and the client accepts it.
async fn compress(accepted: HeaderMap, response: Response) -> Response {
    let mut request = http::Request::new(());
    *request.headers_mut() = accepted;
    let mut response = Some(response);
    let inner = tower::service_fn(move |_| ready(Ok::<_, Infallible>(response.take().unwrap_or_default())));
    let predicate =
        SizeAbove::new(MIN_COMPRESSED_BYTES).and(NotForContentType::SSE).and(NotForContentType::IMAGES);
    let compressed = Compression::new(inner).compress_when(predicate).oneshot(request).await;
    compressed.unwrap_or_else(|never| match never {}).map(Body::new)
}

fn cors(origins: &[String]) -> Option<CorsLayer> {
    if origins.is_empty() {
        return None;
    }
    let layer = CorsLayer::new()
        .allow_methods([Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE])
        .allow_headers(with_mcp_headers(&[
            "authorization",
            "content-type",
            "idempotency-key",
            "x-request-id",
        ]))
        .expose_headers(with_mcp_headers(&[
            "location",
            "x-request-id",
            "idempotency-replayed",
            "www-authenticate",
        ]))
        .max_age(Duration::from_hours(1));
    if origins.iter().any(|origin| origin == "*") {
        return Some(layer.allow_origin(AllowOrigin::any()));
    }
    let listed = origins.iter().filter_map(|origin| HeaderValue::from_str(origin).ok());
    Some(layer.allow_origin(AllowOrigin::list(listed)))
}

fn with_mcp_headers(own: &[&'static str]) -> Vec<HeaderName> {
    own.iter().chain(&mcp::HEADERS).map(|name| HeaderName::from_static(name)).collect()
}

#[cfg(test)]
#[path = "edge_tests.rs"]
mod tests;
