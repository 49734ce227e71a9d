//! The web interface, served from the binary so that it works offline.
//!
//! It lives below `/ui`, because the tool routes are served at `/tools`, too. Every address that is no file gets the
//! page, whose script reads the address.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{Html, IntoResponse as _, Redirect, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rust_embed::{EmbeddedFile, RustEmbed};

use haft_platform::Installation;

/// What `npm run build` wrote; nothing in a build without it.
#[derive(RustEmbed)]
#[folder = "../../ui/dist"]
#[allow_missing = true]
struct Files;

/// Shown in a build without the interface.
const MISSING: &str = include_str!("ui_missing.html");
/// The place in the page that takes the nonce.
const NONCE: &str = "{{nonce}}";

/// Sends a browser to the interface.
pub(crate) async fn home() -> Redirect {
    Redirect::to("/ui/")
}

/// The page, at its own address.
pub(crate) async fn index(State(app): State<Arc<Installation>>) -> Response {
    page(&app)
}

/// A file of the interface, or the page.
pub(crate) async fn file(State(app): State<Arc<Installation>>, Path(path): Path<String>) -> Response {
    match Files::get(&path) {
        Some(file) if path != "index.html" => asset(&path, file),
        None if path.starts_with("assets/") => StatusCode::NOT_FOUND.into_response(),
        _ => page(&app),
    }
}

fn asset(path: &str, file: EmbeddedFile) -> Response {
    // The names in this folder contain a hash of the content.
    let caching =
        if path.starts_with("assets/") { "public, max-age=31536000, immutable" } else { "no-cache" };
    let headers = [
        (header::CONTENT_TYPE, content_type(path)),
        (header::CACHE_CONTROL, caching),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    (headers, file.data).into_response()
}

fn page(app: &Installation) -> Response {
    let mut random = [0; 16];
    let Some(index) = Files::get("index.html") else { return missing() };
    if getrandom::fill(&mut random).is_err() {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    let nonce = STANDARD.encode(random);
    let text = String::from_utf8_lossy(&index.data).replace(NONCE, &nonce);
    // Results are shown in frames: the pages of toolsets, which have an origin of their own, and configured hosts.
    let frames = app.settings().render.frame_hosts.iter().filter(|host| is_source(host));
    let frames = frames.map(String::as_str).collect::<Vec<_>>().join(" ");
    // Styles that the page adds at run time carry the nonce; scripts come from files only.
    let policy = format!(
        "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; img-src 'self' data:; \
         font-src 'self'; connect-src 'self'; manifest-src 'self'; form-action 'self'; frame-ancestors 'none'; \
         frame-src 'self' {frames}; base-uri 'none'"
    );
    let headers = [
        (header::CONTENT_SECURITY_POLICY, policy.as_str()),
        (header::CACHE_CONTROL, "no-cache"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "same-origin"),
    ];
    (headers, Html(text)).into_response()
}

/// Returns whether a text is a host of a content security policy, and nothing more.
fn is_source(host: &str) -> bool {
    !host.is_empty() && host.chars().all(|c| c.is_ascii_alphanumeric() || "-.:/*[]".contains(c))
}

fn missing() -> Response {
    let policy = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'";
    ([(header::CONTENT_SECURITY_POLICY, policy)], Html(MISSING)).into_response()
}

fn content_type(path: &str) -> &'static str {
    match path.rsplit('.').next() {
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("woff2") => "font/woff2",
        Some("json" | "webmanifest") => "application/json",
        _ => "application/octet-stream",
    }
}
