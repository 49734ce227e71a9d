//! `POST /key/rotate`: changes the encryption key of the stored credentials.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use haft_api::installation::KeyRotationView;
use haft_store::KeyRotation;

use crate::authentication::Caller;
use crate::error::ApiError;
use crate::error::ErrorBody;
use crate::reply::{Success, success};
use haft_platform::Installation;
use haft_platform::audit;

/// Encrypt all stored credentials with a new key: the value of `HAFT_KEY_NEW`, or else a random one in the key file.
#[utoipa::path(
    post, path = "/key/rotate", tag = "credentials",
    responses((status = 200, body = Success<KeyRotationView>), (status = 409, body = ErrorBody))
)]
pub(crate) async fn rotate(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
) -> Result<Response, ApiError> {
    identity.require_platform()?;
    let rotation = app.store().vault().rotate_key().await?;
    audit::note(&identity, "key.rotate", &format!("generation {}", rotation.generation));
    let next_step = rotation
        .is_configured
        .then_some("set `HAFT_KEY` to the value of `HAFT_KEY_NEW` on every node, and remove `HAFT_KEY_NEW`");
    let KeyRotation { generation, credentials, .. } = rotation;
    Ok(success(KeyRotationView { generation, credentials, next_step: next_step.map(Into::into) })
        .into_response())
}
