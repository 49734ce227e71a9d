//! The interactive API documentation, served from the binary so that it works offline.

use std::sync::{Arc, LazyLock};

use axum::extract::Path;
use axum::http::{StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use utoipa_swagger_ui::Config;

const PAGE: &str = include_str!("docs.html");
/// Only scripts of this server may run in the page.
const POLICY: &str = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; \
                      script-src 'self'; frame-ancestors 'none'";

static CONFIG: LazyLock<Arc<Config<'static>>> = LazyLock::new(|| Arc::new(Config::from("/api/openapi.json")));

/// The page itself.
pub(crate) async fn page() -> Response {
    ([(header::CONTENT_SECURITY_POLICY, POLICY), (header::REFERRER_POLICY, "no-referrer")], Html(PAGE))
        .into_response()
}

/// The script of the page: it reads the token from the URL fragment, so that a login link logs in.
pub(crate) async fn script() -> Response {
    ([(header::CONTENT_TYPE, "text/javascript")], include_str!("docs.js")).into_response()
}

/// The files of the page.
pub(crate) async fn file(Path(name): Path<String>) -> Response {
    match utoipa_swagger_ui::serve(&name, Arc::clone(&CONFIG)) {
        Ok(Some(file)) => {
            ([(header::CONTENT_TYPE, file.content_type)], file.bytes.into_owned()).into_response()
        }
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}
