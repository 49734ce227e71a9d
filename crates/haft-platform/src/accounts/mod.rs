//! Accounts of people at providers: connecting and revoking them, and the source of their values for calls.

mod connect;
mod login;
mod providers;
mod source;

pub use connect::{Connectable, connectable, put_key, revoke, revoke_of};
pub use login::{Completed, LoginError, begin, begin_shared, complete};
pub(crate) use providers::server_deleted;
pub use providers::{delete_provider, providers, put_provider};
pub(crate) use source::AccountSource;
