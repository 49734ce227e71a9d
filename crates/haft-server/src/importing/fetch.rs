//! Documents that are elsewhere: fetched through the guard, within a time and a size.

use std::time::Duration;

use axum::http::{HeaderMap, HeaderValue, Method, header};
use haft_core::outcome::ErrorCode;
use haft_core::problem::excerpt;
use haft_runtime::egress::{OutgoingRequest, SendError};
use url::Url;

use crate::app::App;
use crate::error::ApiError;

/// How long a document may take to arrive.
const MAX_LENGTH: Duration = Duration::from_mins(1);

/// Fetches a document; returns its text and the address that relative servers are relative to.
pub(crate) async fn document(app: &App, url: &str) -> Result<(String, String), ApiError> {
    let shown = excerpt(url, 200);
    let url =
        Url::parse(url).map_err(|error| ApiError::bad_request(format!("`{shown}` is not a URL: {error}")))?;
    let fetching = fetch(app, url);
    tokio::time::timeout(MAX_LENGTH, fetching)
        .await
        .map_err(|_| ApiError::bad_request(format!("`{shown}` took longer than a minute")))?
        .map_err(|why| ApiError {
            message: format!("`{shown}` could not be fetched: {}", why.message),
            ..why
        })
}

async fn fetch(app: &App, url: Url) -> Result<(String, String), ApiError> {
    let most = app.settings().import.max_document_bytes;
    let accept = HeaderValue::from_static("application/json, application/yaml;q=0.9, */*;q=0.5");
    let headers = HeaderMap::from_iter([(header::ACCEPT, accept)]);
    let request =
        OutgoingRequest { method: Method::GET, url, headers, body: None, accepted_statuses: Vec::new() };
    let mut response =
        app.egress().send(request).await.map_err(|error| ApiError::bad_request(words(error)))?;
    if !response.status().is_success() {
        return Err(ApiError::bad_request(format!("the answer was {}", response.status())));
    }
    let from = response.url().to_string();
    let mut bytes = Vec::new();
    let broken = |_| ApiError::bad_request("the connection broke");
    while let Some(chunk) = response.chunk().await.map_err(broken)? {
        if bytes.len() + chunk.len() > most {
            let message =
                format!("it is larger than the {most} bytes that `import.max_document_bytes` allows");
            return Err(ApiError::new(ErrorCode::TooLarge, message));
        }
        bytes.extend_from_slice(&chunk);
    }
    let text = String::from_utf8(bytes).map_err(|_| ApiError::bad_request("it is not UTF-8"))?;
    Ok((text, from))
}

fn words(error: SendError) -> String {
    match error {
        SendError::Denied(refused) => refused.to_string(),
        SendError::Connect(why) => format!("no connection: {why}"),
        SendError::Disconnected(why) | SendError::Redirect(why) => why,
    }
}
