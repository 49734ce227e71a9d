//! Sessions of browsers.

use haft_core::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A session that is open in a browser.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct OpenSessionView {
    /// Names the session; it opens nothing.
    #[schema(example = "9f86d081884c7d659a2feaa0c55ad015")]
    pub id: String,
    /// The name of the token that opened it; `null` after a login with a link or at an issuer.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required, example = "laptop")]
    pub token_name: Option<String>,
    /// Whether the request comes from it.
    pub is_current: bool,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
}

/// The open sessions of somebody, newest first.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct OpenSessionList {
    pub sessions: Vec<OpenSessionView>,
}
