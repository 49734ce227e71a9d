//! `/accounts`: what people have connected at providers. Values are never returned.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use haft_api::account::{
    AccountList, AccountView, ApiKeyBody, ConnectBody, ConnectFlow, ConnectableView,
    DeviceConnectionStateView, DeviceConnectionStatus, DeviceConnectionView, StartedConnection,
};
use haft_core::id::ActorId;
use haft_core::secret::Secret;
use haft_mcp::client::Callback;

use crate::authentication::{Caller, authenticate};
use crate::body::Body;
use crate::browser::own_url;
use crate::error::{ApiError, ErrorBody};
use crate::html_page::{Page, alert, escape, explained, redirect, sentence};
use crate::page_text::{Texts, texts};
use crate::params::Params;
use crate::reply::{self, Message, Success, success};
use haft_platform::Installation;
use haft_platform::accounts::{self, Begun, BegunDevice, Completed, Connectable, Flow, LoginError};
use haft_store::DeviceConnectionState;

/// The path that providers redirect to.
pub(super) const CALLBACK: &str = "/api/accounts/callback";
/// The parameter of a callback that a page of this server repeats.
const REPEATED: &str = "repeated";

fn view(connectable: Connectable) -> ConnectableView {
    let Connectable { provider, display_name, help, kind, has_shared, account } = connectable;
    let account = account.map(|account| AccountView {
        kind: account.kind,
        state: account.state,
        scope: account.scope,
        created_at: account.created_at,
        modified_at: account.modified_at,
        last_used_at: account.last_used_at,
    });
    ConnectableView { provider, display_name, help, kind, has_shared, account }
}

fn person(params: &Params) -> Result<Option<ActorId>, ApiError> {
    let parse = |text: &str| {
        text.parse().map_err(|error| ApiError::bad_request(format!("invalid `person`: {error}")))
    };
    params.get("person").map(parse).transpose()
}

/// List what you have connected and what you can connect, or what a person has connected.
#[utoipa::path(
    get, path = "/accounts", tag = "accounts",
    params(("person" = Option<String>, Query, description = "The id of a person, for admins: only what that person has connected")),
    responses((status = 200, body = Success<AccountList>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn list(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    params: Params,
) -> Result<Response, ApiError> {
    let all = accounts::connectable(&app, &identity, person(&params)?).await?;
    Ok(success(AccountList { accounts: all.into_iter().map(view).collect() }).into_response())
}

/// Connect an account with an API key. Calls that wait for it go on.
#[utoipa::path(
    put, path = "/accounts/{provider}", tag = "accounts",
    params(("provider" = String, Path, example = "github")), request_body = ApiKeyBody,
    responses((status = 200, body = Success<Message>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn put(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(provider): Path<String>,
    body: Body,
) -> Result<Response, ApiError> {
    // The parser's message could quote the key.
    let ApiKeyBody { api_key } = body.json().map_err(|_| {
        ApiError::bad_request(
            "invalid request body: expected `{\"api_key\": \"…\"}` with the key as a string",
        )
    })?;
    accounts::put_key(&app, &identity, &provider, Secret::new(api_key)).await?;
    Ok(reply::message(format!("Account at '{provider}' connected")))
}

/// Revoke an account: your own, or as an admin that of a person.
#[utoipa::path(
    delete, path = "/accounts/{provider}", tag = "accounts",
    params(("provider" = String, Path, example = "github"),
        ("person" = Option<String>, Query, description = "The id of a person, for admins")),
    responses((status = 200, body = Success<Message>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn revoke(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(provider): Path<String>,
    params: Params,
) -> Result<Response, ApiError> {
    match person(&params)? {
        Some(person) => accounts::revoke_of(&app, &identity, person, &provider).await?,
        None => accounts::revoke(&app, &identity, &provider).await?,
    }
    Ok(reply::message(format!("Account at '{provider}' revoked")))
}

/// Begin to log in at a provider. Open the returned URL in a browser in which you are logged in to haft; a code can be
/// entered on any device.
#[utoipa::path(
    post, path = "/accounts/{provider}/connect", tag = "accounts",
    params(("provider" = String, Path, example = "github")), request_body = Option<ConnectBody>,
    responses((status = 200, body = Success<StartedConnection>), (status = 404, body = ErrorBody), (status = 502, body = ErrorBody))
)]
pub(crate) async fn connect(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(provider): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let ConnectBody { flow } = body.json_or_default::<Option<ConnectBody>>()?.unwrap_or_default();
    let flow = flow.map(|flow| match flow {
        ConnectFlow::Browser => Flow::Browser,
        ConnectFlow::Device => Flow::Device,
    });
    let redirect_uri = format!("{}{CALLBACK}", own_url(&app, &headers));
    let started = match accounts::begin(&app, &identity, &provider, &redirect_uri, flow).await? {
        Begun::Browser(url) => StartedConnection {
            authorization_url: url.to_string(),
            redirect_uri: Some(redirect_uri),
            device: None,
        },
        Begun::Device(begun) => {
            let BegunDevice { id, login, expires_at } = *begun;
            let page = login.verification_uri_complete.as_ref().unwrap_or(&login.verification_uri);
            StartedConnection {
                authorization_url: page.to_string(),
                redirect_uri: None,
                device: Some(DeviceConnectionView {
                    id,
                    user_code: login.user_code,
                    verification_uri: login.verification_uri.to_string(),
                    expires_at,
                }),
            }
        }
    };
    Ok(success(started).into_response())
}

/// Return the state of a login with a code. The server asks the provider for its result by itself.
#[utoipa::path(
    get, path = "/accounts/{provider}/logins/{id}", tag = "accounts",
    params(("provider" = String, Path, example = "github"), ("id" = String, Path)),
    responses((status = 200, body = Success<DeviceConnectionStatus>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn device_login(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path((provider, id)): Path<(String, String)>,
) -> Result<Response, ApiError> {
    let found = accounts::device_connection(&app, &identity, &provider, &id).await?;
    let (state, error) = match found.state {
        DeviceConnectionState::Pending => (DeviceConnectionStateView::Pending, None),
        DeviceConnectionState::Connected => (DeviceConnectionStateView::Connected, None),
        DeviceConnectionState::Failed(why) => (DeviceConnectionStateView::Failed, Some(why)),
    };
    Ok(success(DeviceConnectionStatus { state, error, expires_at: found.expires_at }).into_response())
}

/// Finish a login: the provider redirects the browser here. It connects an account only for the person who began the
/// login, once, within ten minutes.
#[utoipa::path(
    get, path = "/accounts/callback", tag = "accounts",
    params(("state" = String, Query), ("code" = Option<String>, Query), ("iss" = Option<String>, Query), ("error" = Option<String>, Query),
        ("error_description" = Option<String>, Query), ("repeated" = Option<String>, Query, description = "Set by a page of this server")),
    responses((status = 200, content_type = "text/html", body = String, description = "A page that repeats the request with the session of the browser"),
        (status = 303, description = "Connected: the page of accounts"),
        (status = 400, content_type = "text/html", body = String, description = "The login failed")),
    security(())
)]
pub(crate) async fn callback(
    State(app): State<Arc<Installation>>,
    uri: Uri,
    headers: HeaderMap,
    params: Result<Params, ApiError>,
) -> Response {
    let texts = texts(&headers);
    let params = match params {
        Ok(params) => params,
        Err(error) => {
            let meaning = (texts.of_code)(error.0.code);
            return failed(texts, StatusCode::BAD_REQUEST, &explained(&sentence(&error.0.message), meaning));
        }
    };
    let identity = authenticate(&app, &Method::GET, &headers).await.ok();
    let is_repeated = params.get(REPEATED).is_some();
    // In a task of its own: closing the page must not lose the tokens that the code was exchanged for.
    let finished = tokio::spawn(async move {
        let browser = identity.map(|identity| identity.principal());
        accounts::complete(&app, browser.as_deref(), read_callback(&params)).await
    });
    match finished.await {
        Ok(Ok(Completed { provider, .. })) => redirect(&format!("/ui/accounts?connected={provider}"), None),
        // Browsers do not send the session when they come from another site.
        Ok(Err(LoginError::NotLoggedIn)) if !is_repeated => repeat(texts, uri.query().unwrap_or_default()),
        Ok(Err(error)) => {
            let meaning = (texts.of_account_login)(&error);
            failed(texts, status_of(&error), &explained(&sentence(&error.to_string()), meaning))
        }
        Err(_) => failed(texts, StatusCode::INTERNAL_SERVER_ERROR, &alert(texts.internal_error)),
    }
}

/// Reads the parameters of a callback.
pub(super) fn read_callback(params: &Params) -> Callback {
    let text = |name| params.get(name).map(str::to_owned);
    let error = text("error").map(|error| match text("error_description") {
        Some(description) => format!("{error}: {description}"),
        None => error,
    });
    let state = Secret::new(text("state").unwrap_or_default());
    Callback { state, code: text("code").map(Secret::new), iss: text("iss"), error }
}

pub(super) fn status_of(error: &LoginError) -> StatusCode {
    match error {
        LoginError::OtherPerson | LoginError::NotLoggedIn => StatusCode::FORBIDDEN,
        LoginError::Login(_) => StatusCode::BAD_REQUEST,
        LoginError::Failed(error) => crate::error::status(error.code),
    }
}

/// Returns a page that makes the browser repeat the request as one of this site, with its session.
fn repeat(texts: &'static Texts, query: &str) -> Response {
    let to = format!("{CALLBACK}?{query}&{REPEATED}=1");
    let content = format!("<p><a class=\"button\" href=\"{}\">{}</a></p>", escape(&to), texts.go_on);
    Page { next: Some(&to), ..Page::new(texts, texts.accounts, &content) }.respond(StatusCode::OK)
}

fn failed(texts: &'static Texts, status: StatusCode, message: &str) -> Response {
    let content =
        format!("{message}\n      <p><a class=\"button\" href=\"/ui/accounts\">{}</a></p>", texts.accounts);
    Page::new(texts, texts.account_failed, &content).respond(status)
}
