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
use crate::html_page::{Page, alert, error_alert, escape, field, redirect};
use crate::page_text::{Texts, texts};
use crate::routes::issuer_links;
use haft_platform::Installation;
use haft_platform::access::Token;
use haft_platform::audit;
use haft_platform::identity::Identity;

const STYLE: &str = include_str!("login.css");
/// The largest form in bytes.
const MAX_FORM_BYTES: usize = 16 * 1024;

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
    let headers = request.headers();
    let texts = texts(headers);
    let Ok(Query(LoginQuery { code, invitation, next })) = Query::try_from_uri(request.uri()) else {
        return LoginPage::new(&app, texts, NextPage::default())
            .reject(StatusCode::BAD_REQUEST, texts.address_invalid);
    };
    let next = NextPage::parse(next.as_deref());
    let page = LoginPage::new(&app, texts, next);
    if let Some(code) = invitation {
        return if is_code(&code) {
            page.with_code(&code)
        } else {
            page.reject(StatusCode::UNAUTHORIZED, texts.invalid_link)
        };
    }
    let Some(code) = code else { return page.show(StatusCode::OK, "") };
    if !is_code(&code) {
        return page.reject(StatusCode::UNAUTHORIZED, texts.invalid_link);
    }
    // A page of another site must not log its visitor in unnoticed, and a preview of the link must not use it up.
    let is_direct = browser::check_page(&app, headers).is_ok();
    let is_preview = ["sec-purpose", "purpose"].iter().any(|name| headers.contains_key(*name));
    if !is_direct || is_preview || request.method() != Method::GET {
        return page.with_code(&code);
    }
    log_in_with_code(&page, headers, &code).await
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
    let texts = texts(&headers);
    if let Err(error) = browser::check_page(&app, &headers) {
        crate::body::discard(request).await;
        return failed(&app, texts, &error);
    }
    let in_query = Query::<LoginQuery>::try_from_uri(request.uri()).ok().and_then(|Query(query)| query.next);
    let body = match Body::read(request, MAX_FORM_BYTES, "login form").await {
        Ok(body) => body,
        Err(error) => return failed(&app, texts, &error),
    };
    let LoginForm { token, code, next } = LoginForm::parse(&body.bytes);
    let next = NextPage::parse(next.or(in_query).as_deref());
    let page = LoginPage::new(&app, texts, next);
    if let Some(code) = code {
        if !is_code(&code) {
            return page.reject(StatusCode::UNAUTHORIZED, texts.invalid_link);
        }
        return log_in_with_code(&page, &headers, &code).await;
    }
    let Some(token) = token else { return page.reject(StatusCode::BAD_REQUEST, texts.enter_token) };
    match app.access().token(&token, app.now()) {
        Some(token) => log_in(&page, &headers, token).await,
        None => page.reject(StatusCode::UNAUTHORIZED, texts.invalid_token),
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
    let texts = texts(&headers);
    crate::body::discard(request).await;
    if let Some(cookie) = browser::session_cookie(&headers) {
        if let Err(error) = browser::check_same_origin(&app, &method, &headers) {
            return failed(&app, texts, &error);
        }
        if let Ok(identity) = authentication::authenticate_session(&app, cookie).await
            && let Err(error) = end_session(&app, &identity).await
        {
            return failed(&app, texts, &error);
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

async fn log_in_with_code(page: &LoginPage<'_>, headers: &HeaderMap, code: &str) -> Response {
    match page.app.use_login_link(code).await {
        Ok(Some(token)) => log_in(page, headers, token).await,
        Ok(None) => page.reject(StatusCode::UNAUTHORIZED, page.texts.invalid_link),
        Err(error) => failed(page.app, page.texts, &error.into()),
    }
}

async fn log_in(page: &LoginPage<'_>, headers: &HeaderMap, token: Arc<Token>) -> Response {
    match open_session(page.app, headers, token, None).await {
        Err(error) => failed(page.app, page.texts, &error),
        // Only a login at an issuer ends with a logout there.
        Ok(cookie) => {
            let forgotten = browser::issuer_of_session(headers).map(|_| browser::clear_issuer_cookie());
            let cookies = cookie.into_iter().chain(forgotten);
            redirect(page.next.path(), cookies.map(|cookie| (header::SET_COOKIE, cookie)))
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

fn failed(app: &Arc<Installation>, texts: &'static Texts, error: &ApiError) -> Response {
    let page = LoginPage::new(app, texts, NextPage::default());
    page.show(status(error.0.code), &error_alert(texts, &error.0))
}

/// The login page: its language, and where the login leads.
struct LoginPage<'a> {
    app: &'a Arc<Installation>,
    texts: &'static Texts,
    next: NextPage,
}

impl<'a> LoginPage<'a> {
    fn new(app: &'a Arc<Installation>, texts: &'static Texts, next: NextPage) -> Self {
        Self { app, texts, next }
    }

    /// Returns the page with the reason why nobody was logged in.
    fn reject(&self, status: StatusCode, message: &str) -> Response {
        self.show(status, &alert(message))
    }

    /// Returns the page with the issuers, and the field for a token.
    fn show(&self, status: StatusCode, message: &str) -> Response {
        let field = format!(
            "<label for=\"token\">{}</label>\n        <input id=\"token\" name=\"token\" type=\"password\" \
             autocomplete=\"current-password\" required autofocus>",
            self.texts.token
        );
        let issuers = issuer_links::buttons(self.app, self.texts, self.next.given());
        self.form(status, &format!("{message}\n      {issuers}"), &field, self.texts.token_hint)
    }

    /// Returns the page with a button instead: whoever follows a link logs in with it.
    fn with_code(&self, code: &str) -> Response {
        // The code has only letters, digits, `-` and `_`.
        let field = format!("<input type=\"hidden\" name=\"code\" value=\"{}\">", escape(code));
        self.form(StatusCode::OK, "", &field, self.texts.link_hint)
    }

    fn form(&self, status: StatusCode, above: &str, field: &str, hint: &str) -> Response {
        let next = self.next.given().map_or_else(String::new, |next| {
            format!("\n        <input type=\"hidden\" name=\"next\" value=\"{}\">", escape(next))
        });
        let content = format!(
            r#"{above}
      <form method="post" action="/login">
        {field}{next}
        <button type="submit">{}</button>
      </form>
      <p class="hint">{hint}</p>"#,
            self.texts.log_in
        );
        Page::new(self.texts, self.texts.log_in_title, &content).respond(status)
    }
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
