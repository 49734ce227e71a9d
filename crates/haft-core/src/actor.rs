//! People and service accounts: who acts, whatever credential they use.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::Timestamp;
use crate::id::{ActorId, GroupId};
use crate::limit::CallRate;
use crate::name::TenantId;
use crate::principal::{AllowList, matches_pattern};
use crate::token::Role;

/// The person who owns the installation: whoever reads the home folder or sets the environment of the server. It always
/// exists and cannot be disabled, so nobody is locked out.
pub const LOCAL_OWNER: ActorId = ActorId(Uuid::from_u128(0x6861_6674_0000_7000_8000_0000_0000_0001));

/// What identifies the local owner as the owner of chats, calls and runs, and the name of its token: it was the name of the
/// token before there were people.
pub const LOCAL_OWNER_KEY: &str = "local";

/// The name of the token that the environment of the server sets. It belongs to the local owner, too.
pub const ENVIRONMENT_TOKEN: &str = "environment";

/// The kinds of actors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ActorKind {
    /// A human being, who logs in.
    Person,
    /// A machine, which only has tokens.
    ServiceAccount,
}

impl ActorKind {
    /// Returns the name used in JSON and in the store.
    pub const fn as_str(self) -> &'static str {
        match self {
            ActorKind::Person => "person",
            ActorKind::ServiceAccount => "service_account",
        }
    }

    /// Parses the name that [`ActorKind::as_str`] returns.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Person, Self::ServiceAccount].into_iter().find(|kind| kind.as_str() == text)
    }

    /// Returns the name as it is used in sentences.
    pub const fn noun(self) -> &'static str {
        match self {
            ActorKind::Person => "person",
            ActorKind::ServiceAccount => "service account",
        }
    }
}

/// Whether an actor may act.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ActorStatus {
    /// A person who has not used the invitation yet.
    Invited,
    /// An actor in use.
    Active,
    /// An actor whose sessions and tokens give no access.
    Disabled,
}

impl ActorStatus {
    /// Returns the name used in JSON and in the store.
    pub const fn as_str(self) -> &'static str {
        match self {
            ActorStatus::Invited => "invited",
            ActorStatus::Active => "active",
            ActorStatus::Disabled => "disabled",
        }
    }

    /// Parses the name that [`ActorStatus::as_str`] returns.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Invited, Self::Active, Self::Disabled].into_iter().find(|status| status.as_str() == text)
    }
}

/// What somebody may do in a tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rights {
    /// The role.
    pub role: Role,
    /// Whether tools that need approval run without it.
    pub elevated: bool,
    /// Whether it administers the platform.
    pub platform: bool,
    /// The tools that it may see and call.
    pub tools: AllowList,
}

impl Rights {
    /// Returns the rights of somebody who has both.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        Self {
            role: self.role.max(other.role),
            elevated: self.elevated || other.elevated,
            platform: self.platform || other.platform,
            tools: self.tools.union(&other.tools),
        }
    }

    /// Returns the rights that both give.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        Self {
            role: self.role.min(other.role),
            elevated: self.elevated && other.elevated,
            platform: self.platform && other.platform,
            tools: self.tools.intersection(&other.tools),
        }
    }
}

/// The record of a person or a service account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActorRecord {
    /// The id.
    pub id: ActorId,
    /// The kind.
    pub kind: ActorKind,
    /// The name.
    pub name: String,
    /// The e-mail address of a person; no two people have the same, whatever its case.
    pub email: Option<String>,
    /// What a service account is for.
    pub description: String,
    /// The person who is responsible for a service account.
    pub responsible: Option<ActorId>,
    /// Whether it may act.
    pub status: ActorStatus,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub modified_at: Timestamp,
    /// When it last made a request; written once a minute at most.
    pub last_seen_at: Option<Timestamp>,
}

/// What an actor may do in a tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Membership {
    /// The actor.
    pub actor: ActorId,
    /// The tenant.
    pub tenant: TenantId,
    /// The rights. Those of the actor's groups are added.
    pub rights: Rights,
    /// Whether the actor has no access to this tenant, whatever its status.
    pub is_suspended: bool,
    /// How many calls it may make with all credentials together; `None` for no limit.
    pub rate_limit: Option<CallRate>,
    /// What an identity provider says about the member; `None` if none manages it.
    pub provisioned: Option<Provisioned>,
}

/// What an identity provider says about a member of a tenant (SCIM).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Provisioned {
    /// The name with which it identifies the member; no two members of a tenant have the same, whatever its case.
    pub user_name: String,
    /// The id that it has for the member; no two members of a tenant have the same.
    pub external_id: Option<String>,
    /// The given name.
    pub given_name: Option<String>,
    /// The family name.
    pub family_name: Option<String>,
}

/// What the rules of an issuer give an actor in a tenant, in addition to the membership.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AssignedRights {
    /// The actor.
    pub actor: ActorId,
    /// The tenant.
    pub tenant: TenantId,
    /// The rights; never `platform`.
    pub rights: Rights,
}

/// Returns what stands for the value of a token in the sessions and login links of a person. It is no hash, so no value of
/// a token is mistaken for it.
pub fn login_key(actor: ActorId, tenant: &TenantId) -> String {
    format!("{actor}@{tenant}")
}

/// Returns whose login a text stands for that [`login_key`] returned; `None` for the hash of a token.
pub fn login_actor(key: &str) -> Option<ActorId> {
    key.split_once('@').and_then(|(actor, _)| actor.parse().ok())
}

/// Actors of a tenant that have rights in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupRecord {
    /// The id.
    pub id: GroupId,
    /// The tenant.
    pub tenant: TenantId,
    /// The name, which no other group of the tenant has.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// What its members may do; never `platform`.
    pub rights: Rights,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last changed, without its members.
    pub modified_at: Timestamp,
    /// The members. Only those with a membership of the tenant have its rights.
    pub members: Vec<ActorId>,
    /// Whether an identity provider manages it (SCIM).
    pub is_provisioned: bool,
    /// The id that the identity provider has for it; no two groups of a tenant have the same.
    pub external_id: Option<String>,
}

/// The person or service account behind a principal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActingAs {
    /// The id.
    pub id: ActorId,
    /// The kind.
    pub kind: ActorKind,
    /// The e-mail address of a person, in lower case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub email: Option<Arc<str>>,
    /// The names of its groups.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<Arc<str>>,
    /// Whether the credential gives fewer tools or a lower role than the actor has: then it owns what it creates itself,
    /// and does not see what the actor created with others.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_reduced: bool,
    /// The name by which rules know the credential: only the local token and the token of the environment have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_name: Option<Arc<str>>,
}

/// Returns what identifies an actor as the owner of chats, calls and runs.
pub fn owner_key(actor: ActorId) -> Arc<str> {
    if actor == LOCAL_OWNER { LOCAL_OWNER_KEY.into() } else { actor.to_string().into() }
}

impl ActingAs {
    /// Returns whether a text is its e-mail address, whatever the case.
    pub fn is_email(&self, text: &str) -> bool {
        self.email.as_ref().is_some_and(|email| **email == *text.to_lowercase())
    }

    /// Returns whether a text in which `*` matches any text is its id or its e-mail address.
    pub fn is_identified_by(&self, pattern: &str) -> bool {
        let has_email = |email: &Arc<str>| matches_pattern(&pattern.to_lowercase(), email);
        matches_pattern(pattern, &self.id.to_string()) || self.email.as_ref().is_some_and(has_email)
    }
}
