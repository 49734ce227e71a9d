//! Accounts of people at providers, the providers, and the logins that people have begun there.

mod api;
mod pending;
mod providers;

pub use api::StoredAccounts;
pub(crate) use api::{forget_actor, forget_provider};
pub use pending::{PendingLogin, PendingLoginStart};
