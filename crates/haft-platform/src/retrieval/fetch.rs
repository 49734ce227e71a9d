//! Fetches documents through the egress guard, bounded in time and size.

use std::time::Duration;

use haft_core::problem::excerpt;
use haft_executors::egress::{Egress, OutgoingRequest, SendError};
use http::{HeaderMap, HeaderValue, Method, header};
use url::Url;

/// How long fetching a document may take.
const TIMEOUT: Duration = Duration::from_mins(2);

/// A fetched document.
pub(super) struct Fetched {
    pub(super) bytes: Vec<u8>,
    pub(super) media_type: Option<String>,
}

/// Fetches a document; the error says why it cannot be.
pub(super) async fn fetch(egress: &Egress, url: &str, limit: usize) -> Result<Fetched, String> {
    let shown = excerpt(url, 200);
    let parsed = Url::parse(url).map_err(|error| format!("invalid URL `{shown}`: {error}"))?;
    match tokio::time::timeout(TIMEOUT, send(egress, parsed, limit)).await {
        Ok(result) => result.map_err(|error| format!("cannot fetch `{shown}`: {error}")),
        Err(_) => Err(format!("timeout: `{shown}` was not fetched within 120 s")),
    }
}

async fn send(egress: &Egress, url: Url, limit: usize) -> Result<Fetched, String> {
    let accept = HeaderValue::from_static("text/markdown, text/html, text/plain, application/pdf, */*;q=0.5");
    let headers = HeaderMap::from_iter([(header::ACCEPT, accept)]);
    let request =
        OutgoingRequest { method: Method::GET, url, headers, body: None, accepted_statuses: Vec::new() };
    let mut response = egress.send(request).await.map_err(describe)?;
    if !response.status().is_success() {
        return Err(format!("the server responded with status {}", response.status().as_u16()));
    }
    let media_type = response.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let media_type = media_type.map(|text| excerpt(text, 200));
    let mut bytes = Vec::new();
    while let Some(chunk) =
        response.chunk().await.map_err(|_| "the connection was closed early".to_owned())?
    {
        if bytes.len() + chunk.len() > limit {
            return Err(format!(
                "the document exceeds the limit of {limit} bytes (`retrieval.max_document_bytes`)"
            ));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(Fetched { bytes, media_type })
}

fn describe(error: SendError) -> String {
    match error {
        SendError::Denied(denied) => denied.to_string(),
        SendError::Connect(reason) => format!("cannot connect: {reason}"),
        SendError::Disconnected(reason) | SendError::Redirect(reason) => reason,
    }
}
