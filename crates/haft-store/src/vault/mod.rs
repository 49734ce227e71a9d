//! Stored credentials: encrypted in the table, decrypted in memory.

mod api;
mod cipher;
mod credential;
mod key;
mod key_check;
pub(crate) mod refresh;
mod rotate;
mod signing_keys;

pub use api::Vault;
pub(crate) use cipher::Cipher;
pub use credential::{Credential, CredentialInfo, CredentialPurpose, CredentialValue, DEFAULT_CATEGORY};
pub(crate) use key::KeySource;
pub(crate) use key_check::webhook_secret_name;
pub use rotate::KeyRotation;
pub(crate) use signing_keys::NewKey;
