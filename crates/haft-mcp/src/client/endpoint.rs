//! Resolves the configuration of an HTTP server: URL, headers, and OAuth settings.

use std::sync::Arc;

use haft_core::account::AccountUser;
use haft_core::mcp::{McpServer, StreamableHttp, mcp_provider};
use haft_core::secret::Secret;
use haft_template::EscapeContext;
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName, HeaderValue};
use url::Url;

use super::clients::ClientParts;
use super::config::{ConfigRenderer, Scrubber};
use super::handler::NotificationHandler;
use super::http::EgressClient;
use super::message_limit::max_message_bytes;
use super::oauth::{Auth, LoginStore, OAuthConfig};

/// An HTTP server, ready to connect to.
pub(super) struct HttpEndpoint {
    pub(super) client: EgressClient,
    pub(super) url: String,
    pub(super) scrubber: Scrubber,
}

/// Resolves the configuration of an HTTP server.
pub(super) async fn resolve(
    parts: &ClientParts,
    server: &McpServer,
    http: &StreamableHttp,
    user: &AccountUser,
    handler: &NotificationHandler,
) -> Result<HttpEndpoint, String> {
    let mut renderer = ConfigRenderer::new(user.clone(), &parts.secrets);
    renderer.hide_literals(&server.transport);
    let url = renderer.render("url", &http.url, EscapeContext::Url).await?;
    let mut headers = HeaderMap::new();
    for (name, text) in &http.headers {
        let value = renderer.render(&format!("headers.{name}"), text, EscapeContext::Header(name)).await?;
        let (name, value) = header(name, &value)?;
        headers.insert(name, value);
    }
    let oauth = oauth_config(&mut renderer, http).await?;
    let scrubber = renderer.scrubber();
    let parsed = Url::parse(&url).map_err(|error| format!("`url`: {error}"))?;
    let auth = if headers.contains_key(AUTHORIZATION) {
        None
    } else {
        let store = login_store(parts, server, user);
        Some(Arc::new(Auth::new(parts.egress.clone(), parsed.clone(), oauth, store)))
    };
    let client = EgressClient {
        egress: parts.egress.clone(),
        url: parsed,
        headers,
        auth,
        scrubber: scrubber.clone(),
        max_message_bytes: max_message_bytes(server),
        handler: handler.clone(),
    };
    Ok(HttpEndpoint { client, url, scrubber })
}

/// Returns the store of the login to a server: that of a person, or the shared one.
pub(super) fn login_store(parts: &ClientParts, server: &McpServer, user: &AccountUser) -> LoginStore {
    let tokens = parts.secrets.refresh_tokens();
    match user.account(&mcp_provider(server.id.as_str())) {
        Some(account) => LoginStore::of_account(&account, tokens),
        None => LoginStore::shared((&server.tenant, &server.id), tokens),
    }
}

async fn oauth_config(
    renderer: &mut ConfigRenderer<'_>,
    http: &StreamableHttp,
) -> Result<OAuthConfig, String> {
    let Some(oauth) = &http.oauth else { return Ok(OAuthConfig::default()) };
    let mut configured = OAuthConfig { grant: oauth.grant, ..OAuthConfig::default() };
    if let Some(text) = &oauth.client_id {
        configured.client_id = Some(renderer.render("oauth.client_id", text, EscapeContext::Text).await?);
    }
    if let Some(text) = &oauth.client_secret {
        let secret = renderer.render("oauth.client_secret", text, EscapeContext::Text).await?;
        configured.client_secret = Some(Secret::new(secret));
    }
    if let Some(text) = &oauth.private_key {
        let key = renderer.render("oauth.private_key", text, EscapeContext::Text).await?;
        configured.private_key = Some(Secret::new(key));
    }
    configured.scopes.clone_from(&oauth.scopes);
    Ok(configured)
}

fn header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), String> {
    let invalid = |message: String| format!("`headers.{name}`: {message}");
    let parsed = HeaderName::from_bytes(name.as_bytes()).map_err(|error| invalid(error.to_string()))?;
    // The value may be secret, so the message omits it.
    let mut value = HeaderValue::from_str(value)
        .map_err(|_| invalid("the value contains characters that are invalid in a header".to_owned()))?;
    value.set_sensitive(true);
    Ok((parsed, value))
}
