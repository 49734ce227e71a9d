//! People and service accounts, groups, access tokens, browser sessions, login links, and logins of command lines.

mod actors;
mod device_logins;
mod groups;
mod logins;
mod members;
mod tokens;

pub use actors::{ActorChange, HandedOver};
pub use device_logins::{
    DeviceLoginDecision, DeviceLoginLimits, DeviceLoginPoll, DeviceLoginStart, DeviceTokenInsert,
};
pub use groups::{GroupChange, MembersChange};
pub use members::{FoundMember, MemberKey};
pub use tokens::{Access, TokenRotation};
