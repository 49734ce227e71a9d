//! SCIM 2.0: an identity provider creates, changes and removes the people and groups of a tenant.
//!
//! This module says what users and groups of SCIM are in haft and who may change them; haft-scim reads filters and
//! patches. Rights are never changed: those of a new user come from the settings, those of a group from an admin.

mod error;
mod groups;
mod list;
mod provider;
mod users;

pub use error::ScimFailure;
pub use list::ListQuery;
pub use provider::Scim;
