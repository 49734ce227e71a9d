//! Why a request of an identity provider failed.

use haft_core::outcome::ErrorCode;
use haft_scim::{ScimError, ScimType};

use crate::error::ServiceError;

/// An error with the kind that SCIM has for it.
#[derive(Debug)]
pub struct ScimFailure {
    /// The error.
    pub error: ServiceError,
    /// The kind, if SCIM has one.
    pub kind: Option<ScimType>,
}

impl From<ScimError> for ScimFailure {
    fn from(error: ScimError) -> Self {
        let code = match error.kind {
            ScimType::Uniqueness => ErrorCode::Conflict,
            ScimType::InvalidFilter
            | ScimType::InvalidPath
            | ScimType::InvalidSyntax
            | ScimType::InvalidValue
            | ScimType::Mutability
            | ScimType::NoTarget => ErrorCode::InvalidRequest,
        };
        Self { error: ServiceError::new(code, error.detail), kind: Some(error.kind) }
    }
}

impl<E: Into<ServiceError>> From<E> for ScimFailure {
    fn from(error: E) -> Self {
        let error = error.into();
        let kind = match error.code {
            ErrorCode::InvalidRequest => Some(ScimType::InvalidValue),
            // The limits of a tenant have details; otherwise somebody else has the value.
            ErrorCode::Conflict if error.details.is_none() => Some(ScimType::Uniqueness),
            _ => None,
        };
        Self { error, kind }
    }
}
