//! The envelope of successful responses.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// `{"status":"success","data":…}`.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Success<T> {
    pub status: SuccessStatus,
    /// The result.
    pub data: T,
}

/// The status of every successful response.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SuccessStatus {
    /// The request succeeded.
    Success,
}

/// A message.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Message {
    #[schema(example = "Token deleted")]
    pub message: String,
}
