//! Errors of issuers.

/// Why an issuer does not answer as it should. The texts are for admins, not for the person who logs in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IssuerError {
    #[error("unreachable: {0}")]
    Unreachable(String),
    #[error("`{path}` returned HTTP status {status}")]
    Status { path: String, status: u16 },
    #[error("the token endpoint answered `{error}` ({status})")]
    Rejected { error: String, status: u16 },
    #[error("{0}")]
    Invalid(String),
}
