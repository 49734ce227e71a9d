//! Secrets that stay outside of haft: in HashiCorp Vault or OpenBao, in files, and behind commands.
//!
//! Only the administrator configures sources. A definition chooses a path, a file or a command by name; nothing of it
//! becomes part of a command line or of an address, and every path is checked. The egress rules of tools do not hold for
//! the configured address of Vault, but no redirect is followed. What is stored in haft, and which variables of the
//! environment a tenant may read, is up to the caller.

mod cache;
mod commands;
mod files;
mod settings;
mod sources;
mod value;
mod vault;
mod vault_client;
mod vault_session;

pub use settings::{
    SecretCommandSettings, SecretFileSettings, SecretSourceSettings, SourceSettingsError, VaultAuth,
    VaultSettings,
};
pub use sources::{SecretSources, SourceReport};
