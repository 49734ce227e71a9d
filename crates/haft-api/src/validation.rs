//! The result of validating a definition.

use haft_core::problem::Problem;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The result of a validation.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ValidationReport {
    /// Whether there are no errors.
    pub valid: bool,
    pub errors: Vec<Problem>,
    pub warnings: Vec<Problem>,
}
