//! The services: what each is asked, and how its answer reads.

use bytes::Bytes;
use haft_core::outcome::CallError;
use haft_core::problem::excerpt;
use haft_core::secret::Secret;
use haft_runtime::egress::OutgoingRequest;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue};
use http::{HeaderMap, Method};
use serde::Serialize;
use serde_json::{Value, json};
use url::Url;

use crate::tool::failed;
use crate::web_fetch::plain_text;

/// The longest title, snippet and address of a result.
const MAX_LENGTH: usize = 1000;

/// A service that searches the web.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Provider {
    Serper,
    Brave,
    Searxng,
}

/// What a search is about.
#[derive(Debug, Clone, Copy)]
pub(super) struct Query<'a> {
    pub(super) text: &'a str,
    pub(super) count: usize,
}

/// One hit, whatever service found it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Hit {
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

    /// Where the service is, unless told otherwise; a `SearXNG` is always one's own.
    pub(super) const fn endpoint(self) -> Option<&'static str> {
        match self {
            Provider::Serper => Some("https://google.serper.dev/search"),
            Provider::Brave => Some("https://api.search.brave.com/res/v1/web/search"),
            Provider::Searxng => None,
        }
    }

    /// The setting that a service cannot do without.
    pub(super) const fn setting(self) -> &'static str {
        match self {
            Provider::Serper => "SERPER_API_KEY",
            Provider::Brave => "BRAVE_API_KEY",
            Provider::Searxng => "SEARXNG_URL",
        }
    }

    /// Makes the request.
    pub(super) fn request(
        self,
        endpoint: &str,
        key: Option<&Secret>,
        query: Query<'_>,
    ) -> Result<OutgoingRequest, CallError> {
        let mut url = Url::parse(endpoint.trim()).map_err(|why| {
            failed(format!("the address of `{}` is not a URL: {why}", self.as_str()))
                .for_model("the search is not set up")
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
            failed(format!("the key for `{}` has characters that no header takes", self.as_str()))
                .for_model("the search is not set up")
        })?;
        value.set_sensitive(true);
        Ok((HeaderName::from_static(name), value))
    }

    /// Reads the answer.
    pub(super) fn hits(self, answer: &Value, count: usize) -> Vec<Hit> {
        let (list, url, snippet) = match self {
            Provider::Serper => ("/organic", "link", "snippet"),
            Provider::Brave => ("/web/results", "url", "description"),
            Provider::Searxng => ("/results", "url", "content"),
        };
        let items = answer.pointer(list).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let text =
            |item: &Value, name: &str| item.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let hit = |item: &Value| Hit {
            // Services mark the words they found with tags.
            title: excerpt(&plain_text(&text(item, "title")), MAX_LENGTH),
            url: text(item, url),
            snippet: excerpt(&plain_text(&text(item, snippet)), MAX_LENGTH),
        };
        let usable = |hit: &Hit| {
            hit.url.len() <= 2 * MAX_LENGTH
                && Url::parse(&hit.url).is_ok_and(|url| matches!(url.scheme(), "http" | "https"))
        };
        items.iter().map(hit).filter(usable).take(count).collect()
    }
}
