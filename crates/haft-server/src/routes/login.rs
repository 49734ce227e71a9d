//! `/login` and `/logout`: the pages of a browser login. They work without scripts.

use std::sync::Arc;

use axum::extract::{Query, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use serde::Deserialize;
use url::Url;
use utoipa::{IntoParams, ToSchema};

use crate::authentication;
use crate::body::Body;
use crate::browser;
use crate::error::{ApiError, status};
use crate::html_page::{self, alert, escape, field, redirect};
use crate::routes::issuer_links;
use haft_platform::Installation;
use haft_platform::access::Token;
use haft_platform::audit;
use haft_platform::identity::Identity;

const PAGE: &str = include_str!("login.html");
const STYLE: &str = include_str!("login.css");
/// The largest form in bytes.
const MAX_FORM_BYTES: usize = 16 * 1024;

const INVALID_TOKEN: &str = "The token is invalid or has expired.";
const INVALID_LINK: &str = "The login link is invalid, has expired, or was used already. Create a new one with \
                            `haft login-link`, or ask an admin for a new invitation.";

/// The end of the page of a link, and of the page for a token.
const LINK_HINT: &str = "The link logs you in on this device, once.";
const TOKEN_HINT: &str = "The token of this installation is in the file <code>tokens</code> of its home folder.\n        \
                          <code>haft login-link</code> prints a link that logs in without a token. If an admin invited you, \
                          open the link of the invitation.";

/// The query of a login link.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct LoginQuery {
    /// The code of a login link.
    code: Option<String>,
    /// The code of the link with which a person was invited. The page has a button, because mail servers and chats open
    /// links to preview them.
    invitation: Option<String>,
    /// The page to show after the login: a path below `/ui/`, or `/device`; anything else is ignored.
    next: Option<String>,
}

/// The form of the login page.
#[derive(ToSchema)]
pub(crate) struct LoginForm {
    /// A token.
    #[schema(example = "haft_…")]
    token: Option<String>,
    /// The code of a login link, instead of a token.
    code: Option<String>,
    /// The page to show after the login: a path below `/ui/`, or `/device`; anything else is ignored.
    #[schema(example = "/ui/tools")]
    next: Option<String>,
}

/// The longest path of a page to show after the login.
const MAX_NEXT_BYTES: usize = 4096;

/// A page to show after the login.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct NextPage(Option<String>);

impl NextPage {
    /// Accepts a path below `/ui/` of this server, and the pages that approve logins of command lines and applications, by the
    /// rules of browsers: they resolve `..` and `%2e%2e`, read a backslash as a slash, and drop control characters.
    pub(super) fn parse(text: Option<&str>) -> Self {
        let is_known =
            |path: &str| path.starts_with("/ui/") || matches!(path, "/device" | "/oauth/authorize");
        let is_page = |text: &&str| {
            let base = Url::parse("http://haft.invalid/").ok();
            let resolved = base.and_then(|base| base.join(text).ok());
            is_known(text.split(['?', '#']).next().unwrap_or_default())
                && text.len() <= MAX_NEXT_BYTES
                && text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\')
                && resolved.is_some_and(|url| is_known(url.path()))
        };
        Self(text.filter(is_page).map(str::to_owned))
    }

    /// Returns where a login leads.
    pub(super) fn path(&self) -> &str {
        self.0.as_deref().unwrap_or("/")
    }

    /// Returns the page, unless it is the start page.
    pub(super) fn given(&self) -> Option<&str> {
        self.0.as_deref()
    }
}

/// Show the login page, or log in with the code of a login link.
#[utoipa::path(
    get, path = "/login", tag = "tokens", params(LoginQuery), security(()),
    responses(
        (status = 200, body = String, content_type = "text/html", description = "The login page"),
        (status = 303, description = "Logged in: a session cookie, and the address of the start page"),
        (status = 400, body = String, content_type = "text/html", description = "The query is invalid"),
        (status = 401, body = String, content_type = "text/html", description = "The link is invalid or was used"),
        (status = 503, body = String, content_type = "text/html", description = "The store is unavailable"),
    )
)]
pub(crate) async fn page(State(app): State<Arc<Installation>>, request: Request) -> Response {
    let Ok(Query(LoginQuery { code, invitation, next })) = Query::try_from_uri(request.uri()) else {
        return form(&app, StatusCode::BAD_REQUEST, "The address is invalid.", None, &NextPage::default());
    };
    let next = NextPage::parse(next.as_deref());
    if let Some(code) = invitation {
        let is_code = is_code(&code);
        let (status, message) =
            if is_code { (StatusCode::OK, "") } else { (StatusCode::UNAUTHORIZED, INVALID_LINK) };
        return form(&app, status, message, Some(code.as_str()).filter(|_| is_code), &next);
    }
    let Some(code) = code else { return form(&app, StatusCode::OK, "", None, &next) };
    if !is_code(&code) {
        return form(&app, StatusCode::UNAUTHORIZED, INVALID_LINK, None, &next);
    }
    let headers = request.headers();
    // A page of another site must not log its visitor in unnoticed, and a preview of the link must not use it up.
    let is_direct = browser::check_page(&app, headers).is_ok();
    let is_preview = ["sec-purpose", "purpose"].iter().any(|name| headers.contains_key(*name));
    if !is_direct || is_preview || request.method() != Method::GET {
        return form(&app, StatusCode::OK, "", Some(&code), &next);
    }
    let headers = headers.clone();
    log_in_with_code(&app, &headers, &code, &next).await
}

/// Log in with a token or the code of a login link.
#[utoipa::path(
    post, path = "/login", tag = "tokens", security(()),
    params(("next" = Option<String>, Query, description = "The same as the field `next` of the form", example = "/ui/tools")),
    request_body(content = LoginForm, content_type = "application/x-www-form-urlencoded"),
    responses(
        (status = 303, description = "Logged in: a session cookie, and the address of the start page"),
        (status = 400, body = String, content_type = "text/html", description = "The form is invalid"),
        (status = 401, body = String, content_type = "text/html", description = "The token or the link is invalid"),
        (status = 403, body = String, content_type = "text/html", description = "A page of another origin sent the form"),
        (status = 413, body = String, content_type = "text/html", description = "The form is too large"),
        (status = 503, body = String, content_type = "text/html", description = "The store is unavailable"),
    )
)]
pub(crate) async fn submit(State(app): State<Arc<Installation>>, request: Request) -> Response {
    let headers = request.headers().clone();
    if let Err(error) = browser::check_page(&app, &headers) {
        crate::body::discard(request).await;
        return failed(&app, &error);
    }
    let in_query = Query::<LoginQuery>::try_from_uri(request.uri()).ok().and_then(|Query(query)| query.next);
    let body = match Body::read(request, MAX_FORM_BYTES, "login form").await {
        Ok(body) => body,
        Err(error) => return failed(&app, &error),
    };
    let LoginForm { token, code, next } = LoginForm::parse(&body.bytes);
    let next = NextPage::parse(next.or(in_query).as_deref());
    if let Some(code) = code {
        if !is_code(&code) {
            return form(&app, StatusCode::UNAUTHORIZED, INVALID_LINK, None, &next);
        }
        return log_in_with_code(&app, &headers, &code, &next).await;
    }
    let Some(token) = token else {
        return form(&app, StatusCode::BAD_REQUEST, "Enter a token.", None, &next);
    };
    match app.access().token(&token, app.now()) {
        Some(token) => log_in(&app, &headers, token, &next).await,
        None => form(&app, StatusCode::UNAUTHORIZED, INVALID_TOKEN, None, &next),
    }
}

impl LoginForm {
    /// Reads the fields; empty ones count as missing.
    fn parse(form: &[u8]) -> Self {
        Self { token: field(form, "token"), code: field(form, "code"), next: field(form, "next") }
    }
}

/// End the session of a browser.
#[utoipa::path(
    post, path = "/logout", tag = "tokens", security(()),
    responses(
        (status = 303, description = "Logged out: the address of the login page"),
        (status = 403, body = String, content_type = "text/html", description = "A page of another origin sent the request"),
        (status = 503, body = String, content_type = "text/html", description = "The store is unavailable"),
    )
)]
pub(crate) async fn logout(State(app): State<Arc<Installation>>, request: Request) -> Response {
    let headers = request.headers().clone();
    let method = request.method().clone();
    crate::body::discard(request).await;
    if let Some(cookie) = browser::session_cookie(&headers) {
        if let Err(error) = browser::check_same_origin(&app, &method, &headers) {
            return failed(&app, &error);
        }
        if let Ok(identity) = authentication::authenticate_session(&app, cookie).await
            && let Err(error) = end_session(&app, &identity).await
        {
            return failed(&app, &error);
        }
    }
    let issuer = browser::issuer_of_session(&headers).and_then(|id| app.issuers().find(id));
    let page =
        issuer.map_or_else(|| "/login".to_owned(), |issuer| issuer_links::logout_path(&issuer.settings.id));
    redirect(
        &page,
        [browser::clear_cookie(), browser::clear_issuer_cookie()].map(|cookie| (header::SET_COOKIE, cookie)),
    )
}

/// The style sheet of the page.
pub(crate) async fn style() -> Response {
    ([(header::CONTENT_TYPE, "text/css")], STYLE).into_response()
}

async fn log_in_with_code(
    app: &Arc<Installation>,
    headers: &HeaderMap,
    code: &str,
    next: &NextPage,
) -> Response {
    match app.use_login_link(code).await {
        Ok(Some(token)) => log_in(app, headers, token, next).await,
        Ok(None) => form(app, StatusCode::UNAUTHORIZED, INVALID_LINK, None, next),
        Err(error) => failed(app, &error.into()),
    }
}

async fn log_in(
    app: &Arc<Installation>,
    headers: &HeaderMap,
    token: Arc<Token>,
    next: &NextPage,
) -> Response {
    match open_session(app, headers, token, None).await {
        Err(error) => failed(app, &error),
        // Only a login at an issuer ends with a logout there.
        Ok(cookie) => {
            let forgotten = browser::issuer_of_session(headers).map(|_| browser::clear_issuer_cookie());
            let cookies = cookie.into_iter().chain(forgotten);
            redirect(next.path(), cookies.map(|cookie| (header::SET_COOKIE, cookie)))
        }
    }
}

/// Opens a session; returns its cookie. `issuer_session` is the hash of what the issuer of the login calls it.
pub(super) async fn open_session(
    app: &Arc<Installation>,
    headers: &HeaderMap,
    token: Arc<Token>,
    issuer_session: Option<String>,
) -> Result<Option<HeaderValue>, ApiError> {
    let identity = Identity::from_token(Arc::clone(&token));
    let opening = {
        let app = Arc::clone(app);
        async move { app.open_session(&token, issuer_session).await }
    };
    let target = identity.name.to_string();
    let (value, session) = audit::run_change(app, &identity, ("session.open", &target), opening).await?;
    let seconds = session.expires_at.as_second() - session.created_at.as_second();
    Ok(browser::set_cookie(app, headers, &value, seconds))
}

async fn end_session(app: &Arc<Installation>, identity: &Identity) -> Result<(), ApiError> {
    let Some(session) = identity.session() else { return Ok(()) };
    let (hash, target) = (session.hash.clone(), identity.name.to_string());
    let ending = {
        let app = Arc::clone(app);
        async move {
            app.store().access().delete_session(hash).await?;
            Ok(app.reload_access().await?)
        }
    };
    Ok(audit::run_change(app, identity, ("session.end", &target), ending).await?)
}

/// Returns whether a text can be the code of a link.
fn is_code(text: &str) -> bool {
    (1..=128).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
}

fn failed(app: &Installation, error: &ApiError) -> Response {
    form(app, status(error.0.code), &error.0.message, None, &NextPage::default())
}

/// Renders the page; with the code of a link it has a button instead of the field for a token.
fn form(
    app: &Installation,
    status: StatusCode,
    message: &str,
    code: Option<&str>,
    next: &NextPage,
) -> Response {
    let field = match code {
        // The code has only letters, digits, `-` and `_`.
        Some(code) => format!("<input type=\"hidden\" name=\"code\" value=\"{}\">", escape(code)),
        None => "<label for=\"token\">Token</label>\n        <input id=\"token\" name=\"token\" type=\"password\" \
                 autocomplete=\"current-password\" required autofocus>"
            .to_owned(),
    };
    // Whoever follows a link logs in with it.
    let issuers = if code.is_some() { String::new() } else { issuer_links::buttons(app, next.given()) };
    let next = next
        .0
        .as_deref()
        .map(|next| format!("\n        <input type=\"hidden\" name=\"next\" value=\"{}\">", escape(next)));
    let field = field + next.as_deref().unwrap_or_default();
    let page = PAGE.replace("{{hint}}", if code.is_some() { LINK_HINT } else { TOKEN_HINT });
    let page = page.replace("{{message}}", &alert(message)).replace("{{issuers}}", &issuers);
    html_page::respond(status, page.replace("{{field}}", &field))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pages_of_the_interface_follow_a_login() {
        let device = "/device?user_code=BCDF-GHJK";
        for text in [
            "/ui/",
            "/ui/tools?q=a&page=2#top",
            "/ui/calls/018f",
            "/device",
            device,
            "/oauth/authorize?a=b%26c",
        ] {
            assert_eq!(NextPage::parse(Some(text)).path(), text);
        }
        for text in [
            "",
            "/",
            "/ui",
            "ui/tools",
            "//evil.test/ui/",
            "https://evil.test/ui/",
            "/ui/../api/key/rotate",
            "/ui/%2e%2E/docs",
            "/ui/\\evil.test",
            "/ui/\r\nSet-Cookie: a=b",
            "/ui/ä",
            "/\t/evil.test",
            "/devices",
            "/oauth/authorize/x",
            "/oauth/token",
            "/device/../api/key/rotate",
            "/device\\evil.test",
            &format!("/ui/{}", "x".repeat(MAX_NEXT_BYTES)),
        ] {
            assert_eq!(NextPage::parse(Some(text)).path(), "/", "{text}");
        }
        assert_eq!(NextPage::parse(None).path(), "/");
    }
}
