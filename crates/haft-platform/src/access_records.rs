//! What the store has about tenants, people, tokens and sessions, as a node loads it.

use haft_core::actor::{ActorRecord, AssignedRights, GroupRecord, Membership};
use haft_core::login::SessionRecord;
use haft_core::tenant::Tenant;
use haft_core::token::TokenRecord;

/// The stored state of tenants, people, tokens and sessions, or the part of it that concerns some people.
#[derive(Default)]
pub struct AccessRecords {
    pub tenants: Vec<Tenant>,
    pub tokens: Vec<TokenRecord>,
    pub sessions: Vec<SessionRecord>,
    pub actors: Vec<ActorRecord>,
    pub memberships: Vec<Membership>,
    /// What the rules of issuers have assigned.
    pub assigned: Vec<AssignedRights>,
    pub groups: Vec<GroupRecord>,
}
