//! `/device`: the page on which a person approves or denies the login of a command line. It works without scripts.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Query, Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use haft_core::login::DeviceLoginRecord;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;

use crate::authentication::authenticate;
use crate::body::Body;
use crate::error::{ApiError, status};
use crate::html_page::{Page, alert, error_alert, escape, field, redirect};
use crate::page_text::{Texts, fill, texts};
use haft_platform::Installation;
use haft_platform::device_logins::{self, UserCode};
use haft_platform::error::ServiceError;
use haft_platform::identity::Identity;

/// The path of the page.
const PATH: &str = "/device";
/// The largest form in bytes.
const MAX_FORM_BYTES: usize = 8 * 1024;

#[derive(Deserialize)]
struct DeviceQuery {
    user_code: Option<String>,
}

/// What a person decides.
#[derive(Clone, Copy)]
enum Decision {
    Approve,
    Deny,
}

/// Shows the login with a code, or asks for the code.
pub(crate) async fn page(State(app): State<Arc<Installation>>, request: Request) -> Response {
    let texts = texts(request.headers());
    let query = Query::<DeviceQuery>::try_from_uri(request.uri()).ok();
    let text = query.and_then(|Query(query)| query.user_code).filter(|text| !text.trim().is_empty());
    let code = text.as_deref().and_then(UserCode::parse);
    let Ok(identity) = authenticate(&app, request.method(), request.headers()).await else {
        return redirect(&login_path(code.as_ref()), None);
    };
    if text.is_none() {
        return render(texts, StatusCode::OK, &code_form(texts));
    }
    let Some(code) = code else { return unknown_code(texts) };
    match device_logins::find(&app, app.wrong_codes(), &identity, &code).await {
        Ok(Some(login)) => render(texts, StatusCode::OK, &question(&app, texts, &identity, (&code, &login))),
        Ok(None) => unknown_code(texts),
        Err(error) => failed(texts, &error.into()),
    }
}

/// Approves or denies a login.
pub(crate) async fn decide(State(app): State<Arc<Installation>>, request: Request) -> Response {
    let texts = texts(request.headers());
    // Rejects forms of pages of other origins, too.
    let identity = match authenticate(&app, request.method(), request.headers()).await {
        Ok(identity) => identity,
        Err(error) => {
            crate::body::discard(request).await;
            return failed(texts, &error);
        }
    };
    let body = match Body::read(request, MAX_FORM_BYTES, "login form").await {
        Ok(body) => body,
        Err(error) => return failed(texts, &error),
    };
    let code = field(&body.bytes, "user_code").as_deref().and_then(UserCode::parse);
    let Some(code) = code else { return unknown_code(texts) };
    let decision = match field(&body.bytes, "decision").as_deref() {
        Some("approve") => Decision::Approve,
        Some("deny") => Decision::Deny,
        _ => {
            return failed(texts, &ApiError::bad_request("invalid `decision`: expected `approve` or `deny`"));
        }
    };
    match store(&app, &identity, &code, decision).await {
        Ok(Some(login)) => decided(texts, &login, decision),
        Ok(None) => unknown_code(texts),
        Err(error) => failed(texts, &error.into()),
    }
}

/// Stores a decision; returns the login, if there is one with this code.
async fn store(
    app: &Installation,
    identity: &Identity,
    code: &UserCode,
    decision: Decision,
) -> Result<Option<DeviceLoginRecord>, ServiceError> {
    let Some(login) = device_logins::find(app, app.wrong_codes(), identity, code).await? else {
        return Ok(None);
    };
    match decision {
        Decision::Approve => device_logins::approve(app, identity, code, &login).await?,
        Decision::Deny => device_logins::deny(app, identity, code, &login).await?,
    }
    Ok(Some(login))
}

/// Returns the login page that leads back here.
fn login_path(code: Option<&UserCode>) -> String {
    let page = match code {
        Some(code) => format!("{PATH}?user_code={}", code.shown()),
        None => PATH.to_owned(),
    };
    format!("/login?next={}", utf8_percent_encode(&page, NON_ALPHANUMERIC))
}

/// Asks for the code that the terminal shows.
fn code_form(texts: &Texts) -> String {
    format!(
        r#"<form method="get" action="{PATH}">
        <label for="user_code">{}</label>
        <input id="user_code" name="user_code" autocomplete="off" spellcheck="false" required autofocus>
        <button type="submit">{}</button>
      </form>"#,
        texts.device_code, texts.go_on
    )
}

/// Shows who asks, and what the command line would get.
fn question(
    app: &Installation,
    texts: &Texts,
    identity: &Identity,
    (code, login): (&UserCode, &DeviceLoginRecord),
) -> String {
    let tools = match identity.tools.rules() {
        None => texts.every_tool.to_owned(),
        Some(rules) if rules.is_empty() => texts.no_tool.to_owned(),
        Some(rules) => rules.join(", "),
    };
    // Nobody has checked the name.
    let computer = match shown_address(app, login) {
        None => fill(texts.says_it_is, &[("device", login.device.as_str())]),
        Some(address) => {
            fill(texts.says_it_is_at, &[("device", login.device.as_str()), ("address", address)])
        }
    };
    let days = (device_logins::TOKEN_LIFETIME.as_secs() / 86_400).to_string();
    let rows = [
        (texts.computer, computer),
        (texts.tenant, identity.tenant.to_string()),
        (texts.you, identity.name.to_string()),
        (texts.role, (texts.of_role)(identity.role).to_owned()),
        (texts.tools, tools),
        (texts.expires, fill(texts.expires_after, &[("days", days.as_str())])),
    ];
    let rows: Vec<String> =
        rows.iter().map(|(name, text)| format!("<dt>{name}</dt><dd>{}</dd>", escape(text))).collect();
    let rows = rows.concat();
    let code = escape(&code.shown());
    let Texts { device_lead, device_hint, approve, deny, .. } = texts;
    format!(
        r#"<p>{device_lead}</p>
      <p class="code">{code}</p>
      <dl>{rows}</dl>
      <p class="hint">{device_hint}</p>
      <form method="post" action="{PATH}">
        <input type="hidden" name="user_code" value="{code}">
        <div class="buttons">
          <button type="submit" name="decision" value="approve">{approve}</button>
          <button type="submit" name="decision" value="deny" class="secondary">{deny}</button>
        </div>
      </form>"#
    )
}

/// Returns the address that started a login. Behind a proxy, it may be that of the proxy, which says nothing.
fn shown_address<'a>(app: &Installation, login: &'a DeviceLoginRecord) -> Option<&'a str> {
    let address = Some(login.address.as_str()).filter(|address| !address.is_empty())?;
    let is_of_proxy = app.settings().mcp.public_url.is_some() && is_internal(address);
    (!is_of_proxy).then_some(address)
}

/// Returns whether an address is of this machine or of a private network.
fn is_internal(address: &str) -> bool {
    match address.parse() {
        Ok(IpAddr::V4(ip)) => ip.is_loopback() || ip.is_private() || ip.is_link_local(),
        // Of these, only the network is known: the first 64 bits. Those of `::1` are zero.
        Ok(IpAddr::V6(ip)) => {
            ip.is_loopback() || ip.is_unspecified() || ip.is_unique_local() || ip.is_unicast_link_local()
        }
        Err(_) => false,
    }
}

fn decided(texts: &'static Texts, login: &DeviceLoginRecord, decision: Decision) -> Response {
    let text = match decision {
        Decision::Approve => texts.device_approved,
        Decision::Deny => texts.device_denied,
    };
    let device = fill(texts.device_says, &[("device", escape(&login.device).as_str())]);
    let content = format!("<p>{text}</p>\n      <p class=\"hint\">{device} {}</p>", texts.close_page);
    render(texts, StatusCode::OK, &content)
}

fn unknown_code(texts: &'static Texts) -> Response {
    let content = format!("{}\n      {}", alert(texts.device_unknown_code), code_form(texts));
    render(texts, StatusCode::NOT_FOUND, &content)
}

fn failed(texts: &'static Texts, error: &ApiError) -> Response {
    render(texts, status(error.0.code), &error_alert(texts, &error.0))
}

fn render(texts: &'static Texts, status: StatusCode, content: &str) -> Response {
    Page::new(texts, texts.device_title, content).respond(status)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_proxies_are_internal() {
        for (address, expected) in [
            ("127.0.0.1", true),
            ("10.1.2.3", true),
            ("192.168.0.1", true),
            ("::", true),
            ("fd00::", true),
            ("fe80::", true),
            ("192.0.2.1", false),
            ("2001:db8::", false),
            ("", false),
        ] {
            assert_eq!(is_internal(address), expected, "{address}");
        }
    }
}
