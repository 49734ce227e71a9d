//! `/oauth/authorize`: the page on which a person allows an application what it asks for, or less. It works without
//! scripts. As long as it is not certain where the answer may go, errors are shown here.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use haft_core::outcome::ErrorCode;
use haft_core::token::{Role, TokenRecord};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::consent_form::{self, PATH};
use crate::authentication::authenticate_session;
use crate::body::{self, Body};
use crate::browser;
use crate::error::{ApiError, status};
use crate::html_page::{self, alert, escape, field, redirect};
use haft_platform::Installation;
use haft_platform::applications::{self, AuthorizationRequest, Choice, RequestError};
use haft_platform::identity::Identity;

const PAGE: &str = include_str!("authorize.html");
/// The longest query, in bytes: it has to fit into the address of the login page.
const MAX_QUERY_BYTES: usize = 4000;
/// The largest form in bytes.
const MAX_FORM_BYTES: usize = 64 * 1024;
/// Marks a request that the page itself has repeated.
const RELOADED: &str = "&haft_reloaded=1";
/// The most rules that a person can choose.
const MAX_RULES: usize = 256;

/// Shows what an application asks for.
pub(crate) async fn page(State(app): State<Arc<Installation>>, request: Request) -> Response {
    let sent = request.uri().query().unwrap_or_default();
    let query = sent.strip_suffix(RELOADED).unwrap_or(sent);
    if query.len() > MAX_QUERY_BYTES {
        let message = format!("the address is too long: at most {MAX_QUERY_BYTES} bytes");
        return failed(&ApiError::bad_request(message));
    }
    let headers = request.headers();
    let identity = match session(&app, headers).await {
        Ok(Some(identity)) => identity,
        Ok(None) => {
            let is_first = query.len() == sent.len() && is_from_elsewhere(headers);
            return log_in(&app, query, is_first).await;
        }
        Err(error) => return failed(&error),
    };
    let issuer = browser::own_url(&app, headers);
    match applications::check(&app, &identity, &issuer, &pairs(query)).await {
        Ok(request) => ask(&app, &identity, query, &request).await,
        Err(RequestError::Redirect(address)) => redirect(&address, None),
        Err(RequestError::Shown(error)) => failed(&error.into()),
    }
}

/// Leads somebody who is not logged in to the login page.
async fn log_in(app: &Arc<Installation>, query: &str, is_first: bool) -> Response {
    // Clients notice by the status that they have to register again, before they open a browser.
    if !is_known(app, query).await {
        return failed(&ApiError::bad_request("unknown application; let it register again"));
    }
    // The cookie is not sent with the first request, which comes from another site.
    if is_first { reload(query) } else { redirect(&login_path(query), None) }
}

async fn ask(
    app: &Arc<Installation>,
    identity: &Identity,
    query: &str,
    request: &AuthorizationRequest,
) -> Response {
    let earlier = match applications::earlier_choice(app, identity, &request.client.id).await {
        Ok(earlier) => earlier,
        Err(error) => return failed(&error.into()),
    };
    show(app, identity, (query, request), (StatusCode::OK, "", earlier.as_ref()))
}

/// Shows the form, with a message if an earlier answer was not valid.
fn show(
    app: &Arc<Installation>,
    identity: &Identity,
    (query, request): (&str, &AuthorizationRequest),
    (status, message, earlier): (StatusCode, &str, Option<&TokenRecord>),
) -> Response {
    let Some(session) = identity.session() else {
        return failed(&ApiError::new(ErrorCode::Forbidden, "log in with a browser"));
    };
    let token = applications::form_token(app, &session.hash, query);
    let content = consent_form::render(app, identity, request, (query, &token, earlier));
    render(status, message, &content, "")
}

/// Allows or denies what an application asks for.
pub(crate) async fn decide(State(app): State<Arc<Installation>>, request: Request) -> Response {
    let headers = request.headers().clone();
    let method = request.method().clone();
    let same_origin = browser::check_same_origin(&app, &method, &headers);
    let identity = match (same_origin, session(&app, &headers).await) {
        (Ok(()), Ok(Some(identity))) => identity,
        (Err(error), _) | (_, Err(error)) => {
            body::discard(request).await;
            return failed(&error);
        }
        (Ok(()), Ok(None)) => {
            body::discard(request).await;
            let message = "you are not logged in any more; start again in the application";
            return failed(&ApiError::new(ErrorCode::Unauthorized, message));
        }
    };
    let form = match Body::read(request, MAX_FORM_BYTES, "form").await {
        Ok(body) => body.bytes,
        Err(error) => return failed(&error),
    };
    let query = field(&form, "request").unwrap_or_default();
    let token = field(&form, "form_token").unwrap_or_default();
    let session = identity.session().map(|session| session.hash.clone()).unwrap_or_default();
    if !applications::is_form_token(&app, &session, &query, &token) {
        let message = "the form has expired, or is not from this page; start again in the application";
        return failed(&ApiError::new(ErrorCode::Forbidden, message));
    }
    let issuer = browser::own_url(&app, &headers);
    let request = match applications::check(&app, &identity, &issuer, &pairs(&query)).await {
        Ok(request) => request,
        Err(RequestError::Redirect(address)) => {
            return lead("The request is not valid.", &address, "the application");
        }
        Err(RequestError::Shown(error)) => return failed(&error.into()),
    };
    let destination = request.redirect_uri.destination();
    match field(&form, "decision").as_deref() {
        Some("allow") => allow(&app, &identity, (&query, &request), &form).await,
        Some("deny") => {
            let parameters =
                [("error", "access_denied"), ("error_description", "the person denied the request")];
            lead("Denied: the application gets no access.", &request.answer(&parameters), &destination)
        }
        _ => failed(&ApiError::bad_request("invalid `decision`: expected `allow` or `deny`")),
    }
}

async fn allow(
    app: &Arc<Installation>,
    identity: &Identity,
    (query, request): (&str, &AuthorizationRequest),
    form: &[u8],
) -> Response {
    let choice = match choice(request, identity, form) {
        Ok(choice) => choice,
        Err(message) => {
            return show(app, identity, (query, request), (StatusCode::BAD_REQUEST, &message, None));
        }
    };
    match applications::allow(app, identity, request, choice).await {
        Ok(code) => {
            let text = format!("Allowed: {} gets access.", request.client.name);
            let address = request.answer(&[("code", code.expose())]);
            lead(&text, &address, &request.redirect_uri.destination())
        }
        Err(error) => {
            let shown = ApiError::from(error);
            show(app, identity, (query, request), (status(shown.0.code), &shown.0.message, None))
        }
    }
}

/// Reads what the person has chosen: never more than the application asks for.
fn choice(request: &AuthorizationRequest, identity: &Identity, form: &[u8]) -> Result<Choice, String> {
    let role = field(form, "role").and_then(|text| Role::parse(&text)).ok_or("Choose what it may do.")?;
    if role > request.role || role > identity.role {
        return Err("The application did not ask for this, or you may not do it yourself.".to_owned());
    }
    let tools = match field(form, "tools").as_deref() {
        Some("all") => None,
        Some("some") => Some(rules(form)?),
        _ => return Err("Choose the tools.".to_owned()),
    };
    let days = match field(form, "expires").as_deref() {
        Some("never") | None => None,
        Some(days) => Some(days.parse::<u64>().ok().filter(|days| (1..=3650).contains(days))),
    };
    let lifetime = match days {
        None => None,
        Some(Some(days)) => Some(Duration::from_secs(days * 86_400)),
        Some(None) => return Err("Choose how long it stays connected.".to_owned()),
    };
    Ok(Choice { role, tools, lifetime })
}

fn rules(form: &[u8]) -> Result<Vec<String>, String> {
    let mut rules = Vec::new();
    for (name, value) in url::form_urlencoded::parse(form) {
        match &*name {
            "bundle" => rules.push(format!("{value}:*")),
            "patterns" => {
                let patterns = value.split([',', ' ', '\n', '\r']).filter(|part| !part.is_empty());
                rules.extend(patterns.map(str::to_owned));
            }
            _ => {}
        }
    }
    if rules.is_empty() {
        return Err("Choose at least one tool, or all of them.".to_owned());
    }
    if rules.len() > MAX_RULES {
        return Err(format!("Choose at most {MAX_RULES} bundles and patterns."));
    }
    Ok(rules)
}

/// Returns who is logged in with a browser. A token does not suffice: an application could allow itself more.
async fn session(app: &Arc<Installation>, headers: &HeaderMap) -> Result<Option<Identity>, ApiError> {
    let Some(cookie) = browser::session_cookie(headers) else { return Ok(None) };
    match authenticate_session(app, cookie).await {
        Ok(identity) => Ok(Some(identity)),
        Err(error) if error.0.code == ErrorCode::Unauthorized => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns whether the application of a request may exist; its description is not fetched for somebody who is not logged in.
async fn is_known(app: &Arc<Installation>, query: &str) -> bool {
    let pairs = pairs(query);
    let id = pairs.iter().find(|(name, _)| name == "client_id").map(|(_, id)| id.as_str());
    // If the store fails, the page says so after the login.
    applications::may_exist(app, id.unwrap_or_default()).await.unwrap_or(true)
}

/// Returns whether a page of another site may have led here.
fn is_from_elsewhere(headers: &HeaderMap) -> bool {
    let site = headers.get(browser::SEC_FETCH_SITE);
    !site.is_some_and(|site| site == "same-origin" || site == "none")
}

fn pairs(query: &str) -> Vec<(String, String)> {
    let pairs = url::form_urlencoded::parse(query.as_bytes());
    pairs.map(|(name, value)| (name.into_owned(), value.into_owned())).collect()
}

/// Returns the login page that leads back here.
fn login_path(query: &str) -> String {
    format!("/login?next={}", utf8_percent_encode(&format!("{PATH}?{query}"), NON_ALPHANUMERIC))
}

/// Repeats the request, now from a page of this server, so that the browser sends its cookie.
fn reload(query: &str) -> Response {
    let address = escape(&format!("{PATH}?{query}{RELOADED}"));
    let content = format!("<p><a href=\"{address}\">Continue</a></p>");
    render(StatusCode::OK, "", &content, &refresh(&address))
}

/// Leads to the application. Not by a redirect: browsers apply the limit for the targets of forms to those, too.
fn lead(text: &str, address: &str, destination: &str) -> Response {
    let address = escape(address);
    let content = format!(
        "<p>{}</p>\n      <p class=\"hint\">You are being sent back to {}. \
         <a href=\"{address}\">Continue</a> if nothing happens; then you can close this page.</p>",
        escape(text),
        escape(destination)
    );
    render(StatusCode::OK, "", &content, &refresh(&address))
}

fn refresh(escaped: &str) -> String {
    format!("<meta http-equiv=\"refresh\" content=\"0;url={escaped}\">")
}

fn failed(error: &ApiError) -> Response {
    let hint = "<p class=\"hint\">Nothing was sent to the application. You can close this page.</p>";
    render(status(error.0.code), &error.0.message, hint, "")
}

fn render(status: StatusCode, message: &str, content: &str, refresh: &str) -> Response {
    let page = PAGE.replace("{{refresh}}", refresh).replace("{{message}}", &alert(message));
    html_page::respond(status, page.replace("{{content}}", content))
}
