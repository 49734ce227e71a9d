//! OAuth logins to MCP servers and providers (RFC 9728, 8414, 7591, 7636, 8628, 8707, 9207).
//!
//! The metadata of a server is untrusted: it may name forbidden addresses (rejected by the egress guard), another
//! resource, or another issuer (rejected here). Tokens are [`Secret`]s and are stored encrypted.
//!
//! [`Secret`]: haft_core::secret::Secret

mod assertion;
mod auth;
mod challenge;
mod client;
mod device;
mod error;
mod fetch;
mod login;
mod login_store;
mod metadata;
mod provider;
mod token;

pub(super) use auth::{Auth, OAuthConfig};
pub(super) use challenge::Challenge;
pub use device::{BegunDeviceLogin, DevicePoll};
pub use error::OAuthError;
pub use login::{BegunLogin, Callback};
pub(super) use login::{begin, finish};
pub(super) use login_store::LoginStore;
pub use metadata::ProviderEndpoints;
pub use provider::{ProviderClient, ProviderLogin, finish_login, poll_device_login};
