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
use crate::html_page::{Page, alert, error_alert, escape, field, redirect};
use crate::page_text::{Texts, fill, texts};
use haft_platform::Installation;
use haft_platform::applications::{self, AuthorizationRequest, Choice, RequestError};
use haft_platform::identity::Identity;

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
    let headers = request.headers();
    let texts = texts(headers);
    if query.len() > MAX_QUERY_BYTES {
        let message = format!("the address is too long: at most {MAX_QUERY_BYTES} bytes");
        return failed(texts, &ApiError::bad_request(message));
    }
    let identity = match session(&app, headers).await {
        Ok(Some(identity)) => identity,
        Ok(None) => {
            let is_first = query.len() == sent.len() && is_from_elsewhere(headers);
            return log_in(&app, texts, query, is_first).await;
        }
        Err(error) => return failed(texts, &error),
    };
    let issuer = browser::own_url(&app, headers);
    match applications::check(&app, &identity, &issuer, &pairs(query)).await {
        Ok(request) => ask(&app, &identity, &Question { texts, query, request }).await,
        Err(RequestError::Redirect(address)) => redirect(&address, None),
        Err(RequestError::Shown(error)) => failed(texts, &error.into()),
    }
}

/// What an application asks for, and the language of the person who answers.
struct Question<'a> {
    texts: &'static Texts,
    /// The query of the page.
    query: &'a str,
    request: AuthorizationRequest,
}

/// Leads somebody who is not logged in to the login page.
async fn log_in(app: &Arc<Installation>, texts: &'static Texts, query: &str, is_first: bool) -> Response {
    // Clients notice by the status that they have to register again, before they open a browser.
    if !is_known(app, query).await {
        return reject(texts, StatusCode::BAD_REQUEST, &alert(texts.unknown_application));
    }
    // The cookie is not sent with the first request, which comes from another site.
    if is_first { reload(texts, query) } else { redirect(&login_path(query), None) }
}

async fn ask(app: &Arc<Installation>, identity: &Identity, question: &Question<'_>) -> Response {
    match applications::earlier_choice(app, identity, &question.request.client.id).await {
        Ok(earlier) => show(app, identity, question, (StatusCode::OK, "", earlier.as_ref())),
        Err(error) => failed(question.texts, &error.into()),
    }
}

/// Shows the form, with a message if an earlier answer was not valid.
fn show(
    app: &Arc<Installation>,
    identity: &Identity,
    question: &Question<'_>,
    (status, message, earlier): (StatusCode, &str, Option<&TokenRecord>),
) -> Response {
    let (texts, query, request) = (question.texts, question.query, &question.request);
    let Some(session) = identity.session() else {
        return reject(texts, StatusCode::FORBIDDEN, &alert(texts.needs_browser));
    };
    let token = applications::form_token(app, &session.hash, query);
    let form = consent_form::render(app, identity, (texts, request), (query, &token, earlier));
    render(texts, status, &format!("{message}\n      {form}"), None)
}

/// Allows or denies what an application asks for.
pub(crate) async fn decide(State(app): State<Arc<Installation>>, request: Request) -> Response {
    let headers = request.headers().clone();
    let texts = texts(&headers);
    let method = request.method().clone();
    let same_origin = browser::check_same_origin(&app, &method, &headers);
    let identity = match (same_origin, session(&app, &headers).await) {
        (Ok(()), Ok(Some(identity))) => identity,
        (Err(error), _) | (_, Err(error)) => {
            body::discard(request).await;
            return failed(texts, &error);
        }
        (Ok(()), Ok(None)) => {
            body::discard(request).await;
            return reject(texts, StatusCode::UNAUTHORIZED, &alert(texts.logged_out));
        }
    };
    let form = match Body::read(request, MAX_FORM_BYTES, "form").await {
        Ok(body) => body.bytes,
        Err(error) => return failed(texts, &error),
    };
    let query = field(&form, "request").unwrap_or_default();
    let token = field(&form, "form_token").unwrap_or_default();
    let session = identity.session().map(|session| session.hash.clone()).unwrap_or_default();
    if !applications::is_form_token(&app, &session, &query, &token) {
        return reject(texts, StatusCode::FORBIDDEN, &alert(texts.form_expired));
    }
    let issuer = browser::own_url(&app, &headers);
    let request = match applications::check(&app, &identity, &issuer, &pairs(&query)).await {
        Ok(request) => request,
        Err(RequestError::Redirect(address)) => {
            return lead(texts, texts.request_invalid, &address, texts.the_application);
        }
        Err(RequestError::Shown(error)) => return failed(texts, &error.into()),
    };
    let question = Question { texts, query: &query, request };
    match field(&form, "decision").as_deref() {
        Some("allow") => allow(&app, &identity, &question, &form).await,
        Some("deny") => deny(&question),
        _ => failed(texts, &ApiError::bad_request("invalid `decision`: expected `allow` or `deny`")),
    }
}

fn deny(Question { texts, request, .. }: &Question<'_>) -> Response {
    let parameters = [("error", "access_denied"), ("error_description", "the person denied the request")];
    let destination = consent_form::destination(texts, &request.redirect_uri);
    lead(texts, texts.denied, &request.answer(&parameters), &destination)
}

async fn allow(
    app: &Arc<Installation>,
    identity: &Identity,
    question: &Question<'_>,
    form: &[u8],
) -> Response {
    let (texts, request) = (question.texts, &question.request);
    let choice = match choice(texts, request, identity, form) {
        Ok(choice) => choice,
        Err(message) => {
            return show(app, identity, question, (StatusCode::BAD_REQUEST, &alert(&message), None));
        }
    };
    match applications::allow(app, identity, request, choice).await {
        Ok(code) => {
            let text = fill(texts.allowed, &[("name", request.client.name.as_str())]);
            let address = request.answer(&[("code", code.expose())]);
            lead(texts, &text, &address, &consent_form::destination(texts, &request.redirect_uri))
        }
        Err(error) => {
            let shown = ApiError::from(error);
            let message = error_alert(texts, &shown.0);
            show(app, identity, question, (status(shown.0.code), &message, None))
        }
    }
}

/// Reads what the person has chosen: never more than the application asks for.
fn choice(
    texts: &Texts,
    request: &AuthorizationRequest,
    identity: &Identity,
    form: &[u8],
) -> Result<Choice, String> {
    let role = field(form, "role").and_then(|text| Role::parse(&text)).ok_or(texts.choose_role)?;
    if role > request.role || role > identity.role {
        return Err(texts.more_than_requested.to_owned());
    }
    let tools = match field(form, "tools").as_deref() {
        Some("all") => None,
        Some("some") => Some(rules(texts, form)?),
        _ => return Err(texts.choose_tools.to_owned()),
    };
    let days = match field(form, "expires").as_deref() {
        Some("never") | None => None,
        Some(days) => Some(days.parse::<u64>().ok().filter(|days| (1..=3650).contains(days))),
    };
    let lifetime = match days {
        None => None,
        Some(Some(days)) => Some(Duration::from_secs(days * 86_400)),
        Some(None) => return Err(texts.choose_lifetime.to_owned()),
    };
    Ok(Choice { role, tools, lifetime })
}

fn rules(texts: &Texts, form: &[u8]) -> Result<Vec<String>, String> {
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
        return Err(texts.choose_some_tools.to_owned());
    }
    if rules.len() > MAX_RULES {
        return Err(fill(texts.too_many_rules, &[("max", MAX_RULES.to_string().as_str())]));
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
fn reload(texts: &'static Texts, query: &str) -> Response {
    let address = format!("{PATH}?{query}{RELOADED}");
    let content = format!("<p><a class=\"button\" href=\"{}\">{}</a></p>", escape(&address), texts.go_on);
    render(texts, StatusCode::OK, &content, Some(&address))
}

/// Leads to the application. Not by a redirect: browsers apply the limit for the targets of forms to those, too.
fn lead(texts: &'static Texts, text: &str, address: &str, destination: &str) -> Response {
    let content = format!(
        "<p>{}</p>\n      <p>{}</p>\n      <p><a class=\"button\" href=\"{}\">{}</a></p>\n      <p class=\"hint\">{}</p>",
        escape(text),
        fill(texts.sent_back, &[("destination", escape(destination).as_str())]),
        escape(address),
        texts.go_on,
        texts.if_nothing_happens
    );
    render(texts, StatusCode::OK, &content, Some(address))
}

fn failed(texts: &'static Texts, error: &ApiError) -> Response {
    reject(texts, status(error.0.code), &error_alert(texts, &error.0))
}

/// Returns a page on which the request ends.
fn reject(texts: &'static Texts, status: StatusCode, message: &str) -> Response {
    let content = format!("{message}\n      <p class=\"hint\">{}</p>", texts.nothing_sent);
    render(texts, status, &content, None)
}

fn render(texts: &'static Texts, status: StatusCode, content: &str, next: Option<&str>) -> Response {
    Page { is_wide: true, next, ..Page::new(texts, texts.consent_title, content) }.respond(status)
}
