//! Stored credentials: encrypted in the table, decrypted in memory.

mod api;
mod cipher;
mod key;
mod key_check;
pub(crate) mod refresh;
mod rotate;

pub use api::CredentialInfo;
pub(crate) use api::Vault;
pub(crate) use cipher::Cipher;
pub(crate) use key_check::webhook_secret_name;
pub use rotate::KeyRotation;
