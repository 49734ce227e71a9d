//! `/login/oidc/{issuer}`: logins of browsers at issuers of OpenID Connect. The pages work without scripts.
//!
//! The browser comes back from another site, and does not send a `SameSite=Strict` cookie along a chain of redirects that
//! another site began. So the login ends with a page that leads on.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, Query, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use haft_core::secret::Secret;
use haft_oauth::oidc::Callback;
use serde::Deserialize;
use serde_json::json;

use crate::body::Body;
use crate::browser;
use crate::error::{ApiError, status};
use crate::html_page::{Page, alert, error_alert, escape, field, redirect, sentence};
use crate::open_stream::ClientAddress;
use crate::page_text::{Texts, texts};
use crate::routes::issuer_links::callback_url;
use crate::routes::login::{NextPage, open_session};
use haft_platform::Installation;
use haft_platform::sign_on::{self, Answer, BeginLogin, SignOnError};

/// The largest form in bytes.
const MAX_FORM_BYTES: usize = 32 * 1024;

/// The query with which a login begins.
#[derive(Debug, Deserialize)]
struct BeginQuery {
    /// The page to show after the login.
    next: Option<String>,
    /// The tenant to log in to, for people with several.
    tenant: Option<String>,
}

/// The query with which the issuer sends the browser back.
#[derive(Deserialize)]
struct CallbackQuery {
    state: Option<String>,
    code: Option<String>,
    iss: Option<String>,
    error: Option<String>,
    error_description: Option<String>,
}

/// Begins a login: leads to the issuer.
pub(crate) async fn begin(
    State(app): State<Arc<Installation>>,
    Path(issuer): Path<String>,
    request: Request,
) -> Response {
    let headers = request.headers();
    let texts = texts(headers);
    let Ok(Query(BeginQuery { next, tenant })) = Query::try_from_uri(request.uri()) else {
        return invalid_address(texts);
    };
    let Ok(tenant) = tenant.map(|tenant| tenant.parse()).transpose() else { return invalid_address(texts) };
    let redirect_uri = callback_url(&browser::own_url(&app, headers), &issuer);
    let login = BeginLogin {
        browser: browser::sign_on_cookie(&app, headers),
        address: request.extensions().get::<ClientAddress>().map(|address| address.0),
        redirect_uri: &redirect_uri,
        next: NextPage::parse(next.as_deref()).given().map(str::to_owned),
        tenant,
    };
    match sign_on::begin(&app, &issuer, login).await {
        Ok(begun) => {
            let cookie = browser::set_sign_on_cookie(&app, headers, &begun.browser, sign_on::LIFETIME);
            redirect(begun.url.as_str(), cookie.map(|cookie| (header::SET_COOKIE, cookie)))
        }
        Err(error) => failed(texts, &error),
    }
}

/// Finishes a login: the issuer sends the browser here.
pub(crate) async fn callback(
    State(app): State<Arc<Installation>>,
    Path(issuer): Path<String>,
    request: Request,
) -> Response {
    let headers = request.headers().clone();
    let texts = texts(&headers);
    let Ok(Query(query)) = Query::<CallbackQuery>::try_from_uri(request.uri()) else {
        return invalid_address(texts);
    };
    // In a task of its own: closing the page must not lose a login whose code is used up.
    let finished = tokio::spawn(async move { finish(&app, &issuer, query, &headers).await });
    finished.await.unwrap_or_else(|error| {
        tracing::error!(%error, "the task of a login failed");
        page(texts, StatusCode::INTERNAL_SERVER_ERROR, None, &alert(texts.internal_error))
    })
}

async fn finish(
    app: &Arc<Installation>,
    issuer: &str,
    query: CallbackQuery,
    headers: &HeaderMap,
) -> Response {
    let texts = texts(headers);
    let redirect_uri = callback_url(&browser::own_url(app, headers), issuer);
    let answer = Answer {
        state: query.state.as_deref().unwrap_or_default(),
        callback: Callback {
            code: query.code.map(Secret::new),
            iss: query.iss,
            error: query.error,
            error_description: query.error_description,
        },
        browser: browser::sign_on_cookie(app, headers),
        redirect_uri: &redirect_uri,
    };
    let login = match sign_on::finish(app, issuer, answer).await {
        Ok(login) => login,
        Err(error) => return failed(texts, &error),
    };
    // Checked again: the database may be older than the rules.
    let next = NextPage::parse(login.next.as_deref());
    match open_session(app, headers, login.token, Some(login.issuer_session)).await {
        Ok(cookie) => {
            let cookies = [cookie, browser::issuer_cookie(app, headers, issuer)];
            lead_to(texts, next.path(), cookies.into_iter().flatten())
        }
        Err(error) => page(texts, status(error.0.code), None, &error_alert(texts, &error.0)),
    }
}

/// Leads to the logout page of the issuer, after the logout here.
pub(crate) async fn logout(
    State(app): State<Arc<Installation>>,
    Path(issuer): Path<String>,
    request: Request,
) -> Response {
    let back = format!("{}/login", browser::own_url(&app, request.headers()));
    match sign_on::logout_url(&app, &issuer, &back).await {
        Some(url) => lead_to(texts(request.headers()), url.as_str(), None),
        None => redirect("/login", None),
    }
}

/// Ends the sessions of somebody whom the issuer has logged out: the issuer sends a form with a logout token.
pub(crate) async fn back_channel_logout(
    State(app): State<Arc<Installation>>,
    Path(issuer): Path<String>,
    request: Request,
) -> Response {
    let ended = async {
        let body = Body::read(request, MAX_FORM_BYTES, "logout token").await?;
        let token = field(&body.bytes, "logout_token")
            .ok_or_else(|| ApiError::bad_request("the form has no `logout_token`"))?;
        let ended = sign_on::end_sessions(&app, &issuer, &token).await;
        ended.map_err(|error| ApiError::new(error.code(), error.to_string()))
    };
    let no_store = [(header::CACHE_CONTROL, "no-store")];
    match ended.await {
        Ok(()) => (StatusCode::OK, no_store).into_response(),
        Err(error) => {
            // Whatever is wrong with the token, the specification has one status for it.
            let status = match status(error.0.code) {
                StatusCode::BAD_GATEWAY => StatusCode::BAD_REQUEST,
                status => status,
            };
            let body = json!({"error": "invalid_request", "error_description": error.0.message});
            (status, no_store, Json(body)).into_response()
        }
    }
}

/// Returns a page that leads on by itself, or by its link.
fn lead_to(texts: &'static Texts, target: &str, cookies: impl IntoIterator<Item = HeaderValue>) -> Response {
    let content = format!("<p><a class=\"button\" href=\"{}\">{}</a></p>", escape(target), texts.go_on);
    let mut response = page(texts, StatusCode::OK, Some(target), &content);
    for cookie in cookies {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    response
}

fn failed(texts: &'static Texts, error: &SignOnError) -> Response {
    let message = match ((texts.of_sign_on)(error), error) {
        (_, SignOnError::Service(error)) => error_alert(texts, error),
        (Some(text), _) => alert(&sentence(&text)),
        (None, error) => alert(&sentence(&error.to_string())),
    };
    let content = format!("{message}\n      <p><a href=\"/login\">{}</a></p>", texts.back_to_login);
    page(texts, status(error.code()), None, &content)
}

fn invalid_address(texts: &'static Texts) -> Response {
    page(texts, StatusCode::BAD_REQUEST, None, &alert(texts.address_invalid))
}

fn page(texts: &'static Texts, status: StatusCode, next: Option<&str>, content: &str) -> Response {
    Page { next, ..Page::new(texts, texts.log_in_title, content) }.respond(status)
}
