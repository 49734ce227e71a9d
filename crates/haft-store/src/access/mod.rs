//! Access tokens, browser sessions, login links, and logins of command lines.

mod device_logins;
mod logins;
mod tokens;

pub use device_logins::{
    DeviceLoginDecision, DeviceLoginLimits, DeviceLoginPoll, DeviceLoginStart, DeviceTokenInsert,
};
pub use tokens::{Access, TokenRotation};
