//! Accounts of people at providers, the providers, and the logins that people have begun there.

mod api;
mod device;
mod pending;
mod providers;

pub use api::StoredAccounts;
pub(crate) use api::{forget_actor, forget_logins, forget_provider};
pub use device::{DeviceConnection, DeviceConnectionState};
pub use pending::{PendingLogin, PendingLoginStart};
