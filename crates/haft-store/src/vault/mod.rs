//! Stored credentials: encrypted in the table, decrypted in memory.

mod api;
mod cipher;
mod key;
pub(crate) mod refresh;

pub use api::CredentialInfo;
pub(crate) use api::Vault;
