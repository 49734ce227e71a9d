//! Logins to servers that want one: OAuth as MCP has it (RFC 9728, 8414, 7591, 7636, 8707, 9207).
//!
//! What a server says of itself is what a stranger says: it may name addresses that haft must not go to (the egress
//! guard refuses them), another resource, or another issuer (refused here). Tokens stay within [`Secret`]s and are kept
//! sealed.
//!
//! [`Secret`]: haft_core::secret::Secret

mod assertion;
mod auth;
mod challenge;
mod client;
mod error;
mod fetch;
mod login;
mod metadata;
mod stored;
mod token;

pub(super) use auth::{Auth, Configured};
pub(super) use challenge::Challenge;
pub use error::OAuthError;
pub use login::{Callback, LoginResult};
pub(super) use login::{Pending, begin, finish};
pub(super) use stored::Kept;
