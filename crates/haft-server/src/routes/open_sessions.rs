//! `/sessions`: the sessions that somebody has open in browsers.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Response};
use haft_api::session::{OpenSessionList, OpenSessionView};

use crate::authentication::Caller;
use crate::error::{ApiError, ErrorBody};
use crate::params::Params;
use crate::reply::{self, Message, Success, success};
use haft_platform::Installation;
use haft_platform::open_sessions::{self, OpenSession};

/// List your open sessions, or as an admin those of a person.
#[utoipa::path(
    get, path = "/sessions", tag = "tokens",
    params(("person" = Option<String>, Query, description = "The id of a person, for admins")),
    responses((status = 200, body = Success<OpenSessionList>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn list(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    params: Params,
) -> Result<Response, ApiError> {
    let found = open_sessions::list(&app, &identity, params.get("person")).await?;
    Ok(success(OpenSessionList { sessions: found.into_iter().map(view).collect() }).into_response())
}

/// End a session: one of your own, or as an admin one of a person.
#[utoipa::path(
    delete, path = "/sessions/{id}", tag = "tokens",
    params(
        ("id" = String, Path, example = "9f86d081884c7d659a2feaa0c55ad015"),
        ("person" = Option<String>, Query, description = "The id of a person, for admins"),
    ),
    responses((status = 200, body = Success<Message>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn end(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(id): Path<String>,
    params: Params,
) -> Result<Response, ApiError> {
    open_sessions::end(&app, &identity, (params.get("person"), &id)).await?;
    Ok(reply::message("Session ended"))
}

fn view(session: OpenSession) -> OpenSessionView {
    OpenSessionView {
        id: session.id().to_owned(),
        token_name: session.token_name,
        is_current: session.is_current,
        created_at: session.record.created_at,
        expires_at: session.record.expires_at,
    }
}
