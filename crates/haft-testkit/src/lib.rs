//! Helpers shared by haft's tests: PostgreSQL databases, S3 buckets, links to cut, SMTP and HTTP servers, a Vault,
//! an issuer of OpenID Connect,
//! prerequisites.

pub mod issuer;
pub mod link;
pub mod postgres;
pub mod prerequisite;
pub mod s3;
pub mod smtp;
pub mod soak;
pub mod upstream;
pub mod vault;
