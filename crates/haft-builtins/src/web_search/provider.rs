//! The search providers: their requests and responses.

use bytes::Bytes;
use haft_core::outcome::CallError;
use haft_core::problem::excerpt;
use haft_core::secret::Secret;
use haft_executors::egress::OutgoingRequest;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue};
use http::{HeaderMap, Method};
use serde::Serialize;
use serde_json::{Value, json};
use url::Url;

use super::access::NOT_CONFIGURED;
use crate::tool::failed;
use crate::web_fetch::plain_text;

/// The maximum length of the title and the snippet of a result.
const MAX_LENGTH: usize = 1000;

/// A web search provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Provider {
    Serper,
    Brave,
    Searxng,
}

/// A search query.
#[derive(Debug, Clone, Copy)]
pub(super) struct Query<'a> {
    pub(super) text: &'a str,
    pub(super) count: usize,
}

/// A search result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct SearchResult {
    pub(super) title: String,
    pub(super) url: String,
    pub(super) snippet: String,
}

impl Provider {
    pub(super) const ALL: [Provider; 3] = [Provider::Serper, Provider::Brave, Provider::Searxng];

    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Provider::Serper => "serper",
            Provider::Brave => "brave",
            Provider::Searxng => "searxng",
        }
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|provider| provider.as_str().eq_ignore_ascii_case(text.trim()))
    }

    /// Returns the default endpoint; `SearXNG` is self-hosted and has none.
    pub(super) const fn endpoint(self) -> Option<&'static str> {
        match self {
            Provider::Serper => Some("https://google.serper.dev/search"),
            Provider::Brave => Some("https://api.search.brave.com/res/v1/web/search"),
            Provider::Searxng => None,
        }
    }

    /// Returns the name of the required setting.
    pub(super) const fn setting(self) -> &'static str {
        match self {
            Provider::Serper => "SERPER_API_KEY",
            Provider::Brave => "BRAVE_API_KEY",
            Provider::Searxng => "SEARXNG_URL",
        }
    }

    /// Returns the request for a search.
    pub(super) fn request(
        self,
        endpoint: &str,
        key: Option<&Secret>,
        query: Query<'_>,
    ) -> Result<OutgoingRequest, CallError> {
        let mut url = Url::parse(endpoint.trim()).map_err(|error| {
            failed(format!("the endpoint of `{}` is not a valid URL: {error}", self.as_str()))
                .for_model(NOT_CONFIGURED)
        })?;
        let mut headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static("application/json"))]);
        let mut outgoing = match self {
            Provider::Serper => {
                headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
                let body = Bytes::from(json!({"q": query.text, "num": query.count}).to_string());
                OutgoingRequest {
                    method: Method::POST,
                    url,
                    headers,
                    body: Some(body),
                    accepted_statuses: Vec::new(),
                }
            }
            Provider::Brave => {
                let count = query.count.min(20).to_string();
                url.query_pairs_mut().append_pair("q", query.text).append_pair("count", &count);
                OutgoingRequest {
                    method: Method::GET,
                    url,
                    headers,
                    body: None,
                    accepted_statuses: Vec::new(),
                }
            }
            Provider::Searxng => {
                if !url.path().ends_with("/search") {
                    let path = format!("{}/search", url.path().trim_end_matches('/'));
                    url.set_path(&path);
                }
                url.query_pairs_mut().append_pair("q", query.text).append_pair("format", "json");
                OutgoingRequest {
                    method: Method::GET,
                    url,
                    headers,
                    body: None,
                    accepted_statuses: Vec::new(),
                }
            }
        };
        if let Some(key) = key {
            let (name, value) = self.key_header(key)?;
            outgoing.headers.insert(name, value);
        }
        Ok(outgoing)
    }

    fn key_header(self, key: &Secret) -> Result<(HeaderName, HeaderValue), CallError> {
        let (name, value) = match self {
            Provider::Serper => ("x-api-key", key.expose().trim().to_owned()),
            Provider::Brave => ("x-subscription-token", key.expose().trim().to_owned()),
            Provider::Searxng => ("authorization", format!("Bearer {}", key.expose().trim())),
        };
        let mut value = HeaderValue::from_str(&value).map_err(|_| {
            failed(format!(
                "the key for `{}` contains characters that are not allowed in headers",
                self.as_str()
            ))
            .for_model(NOT_CONFIGURED)
        })?;
        value.set_sensitive(true);
        Ok((HeaderName::from_static(name), value))
    }

    /// Returns the results in a response.
    pub(super) fn results(self, response: &Value, count: usize) -> Vec<SearchResult> {
        let (list, url, snippet) = match self {
            Provider::Serper => ("/organic", "link", "snippet"),
            Provider::Brave => ("/web/results", "url", "description"),
            Provider::Searxng => ("/results", "url", "content"),
        };
        let items = response.pointer(list).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let text =
            |item: &Value, name: &str| item.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let result = |item: &Value| SearchResult {
            // Providers highlight matches with HTML tags.
            title: excerpt(&plain_text(&text(item, "title")), MAX_LENGTH),
            url: text(item, url),
            snippet: excerpt(&plain_text(&text(item, snippet)), MAX_LENGTH),
        };
        let is_valid = |result: &SearchResult| {
            result.url.len() <= 2 * MAX_LENGTH
                && Url::parse(&result.url).is_ok_and(|url| matches!(url.scheme(), "http" | "https"))
        };
        items.iter().map(result).filter(is_valid).take(count).collect()
    }
}
