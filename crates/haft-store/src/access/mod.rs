//! People and service accounts, groups, access tokens, browser sessions, login links, logins of command lines, and connected
//! applications.

mod actors;
mod applications;
mod device_logins;
mod groups;
mod logins;
mod tokens;

pub use actors::{ActorChange, HandedOver};
pub use applications::{ClientInsert, ClientLimits, CodeExchange, StoredCode};
pub use device_logins::{
    DeviceLoginDecision, DeviceLoginLimits, DeviceLoginPoll, DeviceLoginStart, DeviceTokenInsert,
};
pub use groups::GroupChange;
pub use tokens::{Access, TokenRotation};
