//! Stored credentials: sealed in the table, opened in memory for the calls that need them.

mod api;
mod cipher;
mod key;
pub(crate) mod refresh;

pub use api::CredentialInfo;
pub(crate) use api::Vault;
