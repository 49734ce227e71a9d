//! Accounts of people at providers: connecting and revoking them.

mod connect;
mod login;
mod providers;

pub use connect::{Connectable, connectable, put_key, revoke, revoke_of};
pub use login::{Completed, LoginError, begin, begin_shared, complete};
pub use providers::{delete_provider, holders, providers, put_provider};
