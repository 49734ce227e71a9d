//! What it takes to speak to a server that is an address.

use std::sync::Arc;

use haft_core::mcp::{McpServer, StreamableHttp};
use haft_core::secret::Secret;
use haft_template::EscapeContext;
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName, HeaderValue};
use url::Url;

use super::clients::ClientParts;
use super::filled::{Filler, Scrubber};
use super::handler::Listener;
use super::http::Guarded;
use super::oauth::{Auth, Configured, Kept};

/// An address, ready to be spoken to.
pub(super) struct Opened {
    pub(super) client: Guarded,
    pub(super) url: String,
    pub(super) scrubber: Scrubber,
}

/// Puts the secrets into the configuration of a server.
pub(super) async fn open(
    parts: &ClientParts,
    server: &McpServer,
    http: &StreamableHttp,
    listener: &Listener,
) -> Result<Opened, String> {
    let mut filler = Filler::new(&server.tenant, &parts.secrets);
    filler.hide_literals(&server.transport);
    let url = filler.fill("url", &http.url, EscapeContext::Url).await?;
    let mut headers = HeaderMap::new();
    for (name, text) in &http.headers {
        let value = filler.fill(&format!("headers.{name}"), text, EscapeContext::Header(name)).await?;
        let (name, value) = header(name, &value)?;
        headers.insert(name, value);
    }
    let configured = configured(&mut filler, http).await?;
    let scrubber = filler.scrubber();
    let parsed = Url::parse(&url).map_err(|error| format!("`url`: {error}"))?;
    let auth = if headers.contains_key(AUTHORIZATION) {
        None
    } else {
        let kept = Kept::new(server, parts.secrets.refresh_tokens());
        Some(Arc::new(Auth::new(parts.egress.clone(), parsed.clone(), configured, kept)))
    };
    let egress = parts.egress.clone();
    let client = Guarded {
        egress,
        url: parsed,
        headers,
        auth,
        scrubber: scrubber.clone(),
        news: Arc::clone(&listener.list_changed),
    };
    Ok(Opened { client, url, scrubber })
}

async fn configured(filler: &mut Filler<'_>, http: &StreamableHttp) -> Result<Configured, String> {
    let Some(oauth) = &http.oauth else { return Ok(Configured::default()) };
    let mut configured = Configured { grant: oauth.grant, ..Configured::default() };
    if let Some(text) = &oauth.client_id {
        configured.client_id = Some(filler.fill("oauth.client_id", text, EscapeContext::Text).await?);
    }
    if let Some(text) = &oauth.client_secret {
        let secret = filler.fill("oauth.client_secret", text, EscapeContext::Text).await?;
        configured.client_secret = Some(Secret::new(secret));
    }
    if let Some(text) = &oauth.private_key {
        let key = filler.fill("oauth.private_key", text, EscapeContext::Text).await?;
        configured.private_key = Some(Secret::new(key));
    }
    configured.scopes.clone_from(&oauth.scopes);
    Ok(configured)
}

fn header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), String> {
    let wrong = |why: String| format!("`headers.{name}`: {why}");
    let parsed = HeaderName::from_bytes(name.as_bytes()).map_err(|error| wrong(error.to_string()))?;
    // The value may be secret.
    let mut value = HeaderValue::from_str(value)
        .map_err(|_| wrong("the value has characters that HTTP does not allow".to_owned()))?;
    value.set_sensitive(true);
    Ok((parsed, value))
}
