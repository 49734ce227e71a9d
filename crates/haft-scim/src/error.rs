//! What is wrong with a request.

/// The kinds of errors of RFC 7644, section 3.12.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScimType {
    /// A filter that is no filter, or compares what cannot be compared.
    InvalidFilter,
    /// A path of an attribute that does not exist.
    InvalidPath,
    /// A body with the wrong structure.
    InvalidSyntax,
    /// A value that is missing or not allowed.
    InvalidValue,
    /// A change of a read-only attribute.
    Mutability,
    /// A path that selects no value.
    NoTarget,
    /// A value that another resource has.
    Uniqueness,
}

impl ScimType {
    /// Returns the name used in responses.
    pub const fn as_str(self) -> &'static str {
        match self {
            ScimType::InvalidFilter => "invalidFilter",
            ScimType::InvalidPath => "invalidPath",
            ScimType::InvalidSyntax => "invalidSyntax",
            ScimType::InvalidValue => "invalidValue",
            ScimType::Mutability => "mutability",
            ScimType::NoTarget => "noTarget",
            ScimType::Uniqueness => "uniqueness",
        }
    }
}

/// A request that cannot be carried out as it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{detail}")]
pub struct ScimError {
    /// The kind.
    pub kind: ScimType,
    /// What is wrong and how to fix it.
    pub detail: String,
}

impl ScimError {
    /// Creates an error.
    pub fn new(kind: ScimType, detail: impl Into<String>) -> Self {
        Self { kind, detail: detail.into() }
    }
}
