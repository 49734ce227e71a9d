//! What stands around all routes: request id, count, CORS, packing, and panics.
//!
//! Written out as one function and not as layers: each layer of a router boxes its future and its body anew for
//! every request, which together costs as much as a call.

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

use crate::app::App;
use crate::error::ApiError;
use crate::request_id;
use crate::routes::{invoke, mcp};

/// Smaller answers are sent as they are: packing them costs more than it saves.
const WORTH_PACKING: u64 = 1024;

/// The whole HTTP surface.
pub(crate) struct Edge {
    app: Arc<App>,
    routes: Router,
    cors: Option<CorsLayer>,
}

impl Edge {
    /// Puts the edge around routes.
    pub(crate) fn new(app: Arc<App>, routes: Router) -> Self {
        let cors = cors(&app.settings().server.cors_origins);
        Self { app, routes, cors }
    }

    /// Answers a request.
    pub(crate) async fn answer(&self, request: Request) -> Response {
        let id = request_id::of(request.headers());
        let header = HeaderValue::from_str(&id);
        let mut response = request_id::scope(id, self.shared(request)).await;
        if let Ok(header) = header {
            response.headers_mut().insert(request_id::HEADER, header);
        }
        self.app.metrics().answered(response.status().as_u16());
        response
    }

    /// Says which other origins may read the answer, where some may.
    async fn shared(&self, request: Request) -> Response {
        let Some(cors) = &self.cors else { return self.packed(request).await };
        let inside = tower::service_fn(|request| self.packed(request).map(Ok::<_, Infallible>));
        let answered = Box::pin(cors.layer(inside).oneshot(request)).await;
        answered.unwrap_or_else(|never| match never {})
    }

    async fn packed(&self, request: Request) -> Response {
        let mut accepted = HeaderMap::new();
        for value in request.headers().get_all(header::ACCEPT_ENCODING) {
            accepted.append(header::ACCEPT_ENCODING, value.clone());
        }
        let response = self.caught(request).await;
        let size = response.body().size_hint();
        if size.upper().is_some_and(|most| most < WORTH_PACKING) {
            return response;
        }
        Box::pin(pack(accepted, response)).await
    }

    /// A panic in a handler is an answer.
    async fn caught(&self, request: Request) -> Response {
        let handled = AssertUnwindSafe(self.route(request)).catch_unwind().await;
        handled.unwrap_or_else(|_| {
            ApiError::new(ErrorCode::Internal, "the request could not be handled").into_response()
        })
    }

    async fn route(&self, request: Request) -> Response {
        if let Some(reference) = invoke::named_by(request.method(), request.uri().path()) {
            let reference = reference.to_owned();
            // Boxed here, as everything around it would move it on.
            return Box::pin(invoke::directly(&self.app, &reference, request)).await.into_response();
        }
        if mcp::is_meant(request.uri().path()) {
            return Box::pin(mcp::answer(&self.app, request)).await;
        }
        if mcp::asks_metadata(request.uri().path()) {
            return mcp::metadata(&self.app, &request);
        }
        let path = request.uri().path();
        if path.contains('%') && percent_encoding::percent_decode_str(path).decode_utf8().is_err() {
            return ApiError::bad_request("the address is not UTF-8, once its `%` are read".to_owned())
                .into_response();
        }
        let answered = self.routes.clone().call(request).await;
        answered.unwrap_or_else(|never| match never {})
    }
}

/// Packs an answer, where it is worth it and the client takes it.
async fn pack(accepted: HeaderMap, response: Response) -> Response {
    let mut request = http::Request::new(());
    *request.headers_mut() = accepted;
    let mut response = Some(response);
    let inside = tower::service_fn(move |_| ready(Ok::<_, Infallible>(response.take().unwrap_or_default())));
    let worth = SizeAbove::new(WORTH_PACKING).and(NotForContentType::SSE).and(NotForContentType::IMAGES);
    let packed = Compression::new(inside).compress_when(worth).oneshot(request).await;
    packed.unwrap_or_else(|never| match never {}).map(Body::new)
}

fn cors(origins: &[String]) -> Option<CorsLayer> {
    if origins.is_empty() {
        return None;
    }
    let layer = CorsLayer::new()
        .allow_methods([Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE])
        .allow_headers(names(&["authorization", "content-type", "idempotency-key", "x-request-id"]))
        .expose_headers(names(&["location", "x-request-id", "idempotency-replayed", "www-authenticate"]))
        .max_age(Duration::from_hours(1));
    if origins.iter().any(|origin| origin == "*") {
        return Some(layer.allow_origin(AllowOrigin::any()));
    }
    let listed = origins.iter().filter_map(|origin| HeaderValue::from_str(origin).ok());
    Some(layer.allow_origin(AllowOrigin::list(listed)))
}

/// Headers, and those of MCP.
fn names(own: &[&'static str]) -> Vec<HeaderName> {
    own.iter().chain(&mcp::HEADERS).map(|name| HeaderName::from_static(name)).collect()
}
