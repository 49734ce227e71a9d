//! People and service accounts, groups, access tokens, browser sessions, login links, logins of command lines, logins at
//! issuers, and connected applications.

mod actors;
mod applications;
mod assertions;
mod changes;
mod device_logins;
mod groups;
mod logins;
mod members;
mod sign_on;
mod tokens;

pub use actors::{ActorChange, HandedOver};
pub use applications::{ClientInsert, ClientLimits, CodeExchange, StoredCode};
pub use assertions::UsedAssertion;
pub use changes::AccessChanges;
pub use device_logins::{
    DeviceLoginDecision, DeviceLoginLimits, DeviceLoginPoll, DeviceLoginStart, DeviceTokenInsert,
};
pub use groups::{GroupChange, MembersChange};
pub use members::{MemberKey, MemberRecords};
pub use sign_on::{SignOnAssignment, SignOnLogin, SignOnLoginStart, SignOnPerson, SignOnResult};
pub use tokens::{Access, OwnedByToken, TokenRotation};
