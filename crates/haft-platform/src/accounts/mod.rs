//! Accounts of people at providers: connecting and revoking them.

mod connect;
mod device;
mod login;
mod provider_login;
mod providers;

pub(crate) use connect::connected;
pub use connect::{Connectable, connectable, put_key, revoke, revoke_of};
pub(crate) use device::poll_devices;
pub use device::{BegunDevice, begin_device, device_connection};
pub use login::{Begun, Completed, Flow, LoginError, begin, begin_shared, complete};
pub use providers::{delete_provider, holders, providers, put_provider};
