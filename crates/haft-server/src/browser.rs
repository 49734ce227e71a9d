//! Browsers: the session cookie, and the check that a request comes from a page of this server.

use std::time::Duration;

use haft_core::outcome::ErrorCode;
use haft_core::problem::excerpt;
use haft_core::secret::Secret;
use http::uri::Authority;
use http::{HeaderMap, HeaderValue, Method, header};

use crate::error::ApiError;
use haft_platform::Installation;

const COOKIE: &str = "haft_session";
/// Scripts of a page send it if the browser sends neither `Sec-Fetch-Site` nor `Origin`. A page of another site cannot
/// set it without a preflight request.
const SESSION_HEADER: &str = "x-haft-session";
/// The longest value that can be a session.
const MAX_COOKIE_LENGTH: usize = 128;

/// Binds logins at issuers to their browser. Issuers send the browser back from another site, so it is not `Strict`.
const SIGN_ON_COOKIE: &str = "haft_sign_on";
/// The same with https: a page of another host of the domain cannot set it.
const SECURE_SIGN_ON_COOKIE: &str = "__Host-haft_sign_on";
/// The issuer at which the session was opened, for its logout.
const ISSUER_COOKIE: &str = "haft_issuer";

/// The language that a person has chosen in the web interface, whose scripts set it.
const LANGUAGE_COOKIE: &str = "haft_language";

/// Returns the language that a person has chosen in the web interface.
pub(crate) fn language_cookie(headers: &HeaderMap) -> Option<&str> {
    cookie(headers, LANGUAGE_COOKIE)
}

/// Returns the value of the session cookie.
pub(crate) fn session_cookie(headers: &HeaderMap) -> Option<&str> {
    cookie(headers, COOKIE)
}

/// Returns the value of the cookie that binds logins at issuers to their browser.
pub(crate) fn sign_on_cookie<'a>(app: &Installation, headers: &'a HeaderMap) -> Option<&'a str> {
    cookie(headers, if is_https(app, headers) { SECURE_SIGN_ON_COOKIE } else { SIGN_ON_COOKIE })
}

/// Returns the header that sets it.
pub(crate) fn set_sign_on_cookie(
    app: &Installation,
    headers: &HeaderMap,
    value: &Secret,
    lifetime: Duration,
) -> Option<HeaderValue> {
    let (name, secure) =
        if is_https(app, headers) { (SECURE_SIGN_ON_COOKIE, "; Secure") } else { (SIGN_ON_COOKIE, "") };
    let seconds = lifetime.as_secs();
    let cookie =
        format!("{name}={}; Path=/; HttpOnly; SameSite=Lax; Max-Age={seconds}{secure}", value.expose());
    let mut value = HeaderValue::from_str(&cookie).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// Returns the id of the issuer at which the session was opened. It only chooses where a logout leads.
pub(crate) fn issuer_of_session(headers: &HeaderMap) -> Option<&str> {
    cookie(headers, ISSUER_COOKIE)
}

/// Returns the header that notes the issuer of a session.
pub(crate) fn issuer_cookie(app: &Installation, headers: &HeaderMap, issuer: &str) -> Option<HeaderValue> {
    let secure = if is_https(app, headers) { "; Secure" } else { "" };
    let seconds = app.settings().server.session_lifetime.as_secs();
    let cookie =
        format!("{ISSUER_COOKIE}={issuer}; Path=/; HttpOnly; SameSite=Strict; Max-Age={seconds}{secure}");
    HeaderValue::from_str(&cookie).ok()
}

/// Returns the header that forgets the issuer of a session.
pub(crate) fn clear_issuer_cookie() -> HeaderValue {
    HeaderValue::from_static("haft_issuer=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0")
}

fn cookie<'a>(headers: &'a HeaderMap, wanted: &str) -> Option<&'a str> {
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs =
        cookies.flat_map(|cookies| cookies.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let (_, value) = pairs.find(|(name, _)| *name == wanted)?;
    Some(value).filter(|value| !value.is_empty() && value.len() <= MAX_COOKIE_LENGTH)
}

/// Returns the header that sets the session cookie.
pub(crate) fn set_cookie(
    app: &Installation,
    headers: &HeaderMap,
    value: &Secret,
    seconds: i64,
) -> Option<HeaderValue> {
    let secure = if is_https(app, headers) { "; Secure" } else { "" };
    let cookie =
        format!("{COOKIE}={}; Path=/; HttpOnly; SameSite=Strict; Max-Age={seconds}{secure}", value.expose());
    let mut value = HeaderValue::from_str(&cookie).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// Returns the header that removes the session cookie.
pub(crate) fn clear_cookie() -> HeaderValue {
    HeaderValue::from_static("haft_session=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0")
}

/// Returns the URL of this server as a browser knows it: the configured one, otherwise the one of a request.
pub(crate) fn own_url(app: &Installation, headers: &HeaderMap) -> String {
    if let Some(url) = &app.settings().mcp.public_url {
        return url.trim_end_matches('/').to_owned();
    }
    let scheme = if is_https(app, headers) { "https" } else { "http" };
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()?.parse::<Authority>().ok());
    match host {
        Some(host) => format!("{scheme}://{host}"),
        None => format!("{scheme}://{}", app.settings().addr),
    }
}

/// Returns whether the browser uses https: the proxy in front of this server says so, or the public URL does.
fn is_https(app: &Installation, headers: &HeaderMap) -> bool {
    let forwarded = headers.get("x-forwarded-proto").and_then(|value| value.to_str().ok());
    let first = forwarded.and_then(|protocols| protocols.split(',').next()).map(str::trim);
    let public = app.settings().mcp.public_url.as_deref();
    first.is_some_and(|protocol| protocol.eq_ignore_ascii_case("https"))
        || public.is_some_and(|url| url.starts_with("https://"))
}

/// Rejects a request that changes something unless a page of this server sends it.
pub(crate) fn check_same_origin(
    app: &Installation,
    method: &Method,
    headers: &HeaderMap,
) -> Result<(), ApiError> {
    if matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS) {
        return Ok(());
    }
    check_page(app, headers)?;
    let is_marked = headers.get(SESSION_HEADER).is_some_and(|value| value == "1");
    let is_named = headers.contains_key(SEC_FETCH_SITE) || headers.contains_key(header::ORIGIN);
    if is_named || is_marked {
        return Ok(());
    }
    Err(forbidden("cannot tell which page sent the request; send the header `X-Haft-Session: 1`".to_owned()))
}

pub(crate) const SEC_FETCH_SITE: &str = "sec-fetch-site";

/// Rejects a request whose headers name a page of another origin.
pub(crate) fn check_page(app: &Installation, headers: &HeaderMap) -> Result<(), ApiError> {
    if let Some(site) = headers.get(SEC_FETCH_SITE)
        && site != "same-origin"
        && site != "none"
    {
        let site = excerpt(site.to_str().unwrap_or_default(), 40);
        return Err(forbidden(format!("requests from pages of other origins are rejected (`{site}`)")));
    }
    match headers.get(header::ORIGIN) {
        Some(origin) if !is_own_origin(app, headers, origin) => {
            let origin = excerpt(origin.to_str().unwrap_or_default(), 120);
            Err(forbidden(format!("requests from pages of `{origin}` are rejected")))
        }
        _ => Ok(()),
    }
}

fn is_own_origin(app: &Installation, headers: &HeaderMap, origin: &HeaderValue) -> bool {
    let Some((scheme, rest)) = origin.to_str().ok().and_then(|origin| origin.split_once("://")) else {
        return false;
    };
    let Ok(authority) = rest.parse::<Authority>() else { return false };
    let public = app.settings().mcp.public_url.as_deref().and_then(|url| url.split_once("://"));
    if let Some((public_scheme, rest)) = public
        && rest.split('/').next().and_then(|host| host.parse::<Authority>().ok()).as_ref() == Some(&authority)
    {
        return scheme.eq_ignore_ascii_case(public_scheme);
    }
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()?.parse::<Authority>().ok());
    host == Some(authority)
}

fn forbidden(message: String) -> ApiError {
    ApiError::new(ErrorCode::Forbidden, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_session_cookie_is_found_among_others() {
        let check = |cookies: &[&str], expected: Option<&str>| {
            let mut headers = HeaderMap::new();
            for cookie in cookies {
                headers.append(header::COOKIE, HeaderValue::from_str(cookie).unwrap());
            }
            assert_eq!(session_cookie(&headers), expected, "{cookies:?}");
        };
        check(&[], None);
        check(&["haft_session=abc"], Some("abc"));
        check(&["a=b; haft_session=abc; c=d"], Some("abc"));
        check(&["a=b", "haft_session=abc"], Some("abc"));
        check(&["xhaft_session=abc", "haft_session"], None);
        check(&["haft_session="], None);
        check(&[&format!("haft_session={}", "x".repeat(200))], None);
    }
}
