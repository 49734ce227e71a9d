//! Stored credentials: encrypted in the table, decrypted in memory.

mod api;
mod cipher;
mod credential;
mod key;
mod key_check;
pub(crate) mod refresh;
mod rotate;

pub(crate) use api::Vault;
pub use credential::{Credential, CredentialInfo, CredentialPurpose, CredentialValue, DEFAULT_CATEGORY};
pub use rotate::KeyRotation;
