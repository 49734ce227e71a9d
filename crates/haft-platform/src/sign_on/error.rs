//! Why a login at an issuer fails, in words for the person who logs in. Details of the issuer are for the log.

use haft_core::catalog::StoreError;
use haft_core::outcome::ErrorCode;
use haft_core::problem::excerpt;
use haft_oauth::oidc::OidcError;

use crate::error::ServiceError;
use crate::issuers::{IssuerError, VerifyError};

/// Why a login fails.
#[derive(Debug, thiserror::Error)]
pub enum SignOnError {
    /// The configuration has no such issuer.
    #[error("there is no issuer `{0}`; go back to the login page")]
    UnknownIssuer(String),
    /// The state is unknown, has expired, was used, or belongs to another browser.
    #[error(
        "this login is unknown: it was used already, has expired after 10 minutes, or began in another browser; start again"
    )]
    UnknownLogin,
    /// The answer belongs to a login at another issuer.
    #[error("the answer comes from another issuer than the one of this login; start again")]
    MixedUp,
    /// The issuer denied the login.
    #[error("`{issuer}` denied the login: {reason}")]
    Denied { issuer: String, reason: String },
    /// The issuer does not answer.
    #[error(
        "`{issuer}` does not answer; try again later, or log in with a token or a link. Open sessions go on"
    )]
    Unreachable { issuer: String },
    /// The answer of the issuer is not valid.
    #[error(
        "the answer of `{issuer}` is not valid, so nobody was logged in; an admin finds the reason in the server log"
    )]
    Invalid { issuer: String },
    /// The person is disabled.
    #[error("your account is disabled; ask an admin")]
    Disabled,
    /// No rule matches, and nobody has invited the person.
    #[error(
        "you are logged in at `{issuer}`, but nothing in haft is assigned to you; ask an admin, and name your subject: {subject}"
    )]
    NothingAssigned { issuer: String, subject: String },
    /// The person is not a member of the tenant.
    #[error("you are not a member of the tenant `{0}`")]
    OtherTenant(String),
    /// A tenant has as many members as it may.
    #[error("the tenant `{0}` has as many members as it may; ask an admin")]
    TenantFull(String),
    /// The address has begun too many logins.
    #[error(
        "your address has begun too many logins within ten minutes; finish one of them, or try again later"
    )]
    TooManyOfAddress,
    /// All addresses together have begun too many.
    #[error("too many logins wait for an answer; try again later")]
    TooMany,
    /// This server failed.
    #[error("{}", .0.message)]
    Service(ServiceError),
}

impl SignOnError {
    /// Converts an error of an issuer, and logs what the person is not shown.
    pub(super) fn of_issuer(issuer: &str, error: &IssuerError) -> Self {
        tracing::warn!(issuer, %error, "a login failed at its issuer");
        let issuer = issuer.to_owned();
        match error {
            IssuerError::Unreachable(_) | IssuerError::Status { .. } => Self::Unreachable { issuer },
            IssuerError::Rejected { .. } | IssuerError::Invalid(_) => Self::Invalid { issuer },
        }
    }

    pub(super) fn of_answer(issuer: &str, error: &OidcError) -> Self {
        match error {
            OidcError::Denied(reason) => {
                Self::Denied { issuer: issuer.to_owned(), reason: excerpt(reason, 300) }
            }
            OidcError::MixedUp => Self::MixedUp,
            _ => Self::of_issuer(issuer, &IssuerError::Invalid(error.to_string())),
        }
    }

    pub(super) fn of_token(issuer: &str, error: &VerifyError) -> Self {
        match error {
            VerifyError::Issuer(error) => Self::of_issuer(issuer, error),
            VerifyError::Token(_) | VerifyError::UnknownIssuer => {
                Self::of_issuer(issuer, &IssuerError::Invalid(error.to_string()))
            }
        }
    }

    /// Returns the code of the error, which decides its status.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::UnknownIssuer(_) => ErrorCode::NotFound,
            Self::UnknownLogin | Self::MixedUp => ErrorCode::InvalidRequest,
            Self::Denied { .. } | Self::Disabled | Self::NothingAssigned { .. } | Self::OtherTenant(_) => {
                ErrorCode::Forbidden
            }
            Self::Unreachable { .. } | Self::Invalid { .. } => ErrorCode::Network,
            Self::TenantFull(_) => ErrorCode::Conflict,
            Self::TooManyOfAddress => ErrorCode::RateLimited,
            Self::TooMany => ErrorCode::Overloaded,
            Self::Service(error) => error.code,
        }
    }
}

impl From<ServiceError> for SignOnError {
    fn from(error: ServiceError) -> Self {
        Self::Service(error)
    }
}

impl From<StoreError> for SignOnError {
    fn from(error: StoreError) -> Self {
        Self::Service(error.into())
    }
}
