//! People, service accounts and groups.

use haft_core::Timestamp;
use haft_core::actor::{ActingAs, ActorKind, ActorStatus, Rights};
use haft_core::token::Role;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::token::RateBody;

/// What somebody may do in a tenant.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct RightsView {
    pub role: Role,
    /// Whether tools that need approval run without it.
    pub elevated: bool,
    /// Whether it administers tenants.
    pub platform: bool,
    /// The rules of the tools that it may see and call; `null` allows every tool.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub tools: Option<Vec<String>>,
}

impl From<&Rights> for RightsView {
    fn from(rights: &Rights) -> Self {
        Self {
            role: rights.role,
            elevated: rights.elevated,
            platform: rights.platform,
            tools: rights.tools.rules(),
        }
    }
}

/// The name of a group.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct GroupName {
    pub id: Uuid,
    #[schema(example = "finance")]
    pub name: String,
}

/// The name of a person or a service account.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ActorName {
    pub id: Uuid,
    pub kind: ActorKind,
    #[schema(example = "Ann Smith")]
    pub name: String,
}

/// A person or a service account, as a member of a tenant.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ActorView {
    pub id: Uuid,
    pub kind: ActorKind,
    #[schema(example = "Ann Smith")]
    pub name: String,
    /// The e-mail address of a person.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required, example = "ann@example.com")]
    pub email: Option<String>,
    /// What a service account is for.
    pub description: String,
    /// The person who is responsible for a service account.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub responsible: Option<ActorName>,
    pub status: ActorStatus,
    #[schema(example = "default")]
    pub tenant: String,
    /// What the membership of the tenant gives.
    pub membership: RightsView,
    pub groups: Vec<GroupName>,
    /// What the membership and the groups give together.
    pub rights: RightsView,
    /// How many calls it may make in the tenant with sessions and tokens together; `null` for no limit.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub rate_limit: Option<RateBody>,
    /// Whether it is a member of other tenants, too. Then only platform admins change its name, address and status.
    pub is_shared: bool,
    /// Whether the access to this tenant has ended by SCIM, whatever the status in other tenants. The status here is
    /// `disabled`.
    pub is_suspended: bool,
    /// What an identity provider says about a person, which it changes by SCIM; `null` if none manages it.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub provisioned: Option<ProvisionedView>,
    /// The number of tokens that belong to it, without expired ones.
    pub tokens: usize,
    /// The number of open sessions in browsers.
    pub sessions: usize,
    pub created_at: Timestamp,
    pub modified_at: Timestamp,
    /// When it last made a request; `null` if never. Other nodes report it within a minute.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub last_seen_at: Option<Timestamp>,
}

/// What an identity provider says about a person (SCIM).
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ProvisionedView {
    /// The name with which it identifies the person.
    #[schema(example = "ann@example.com")]
    pub user_name: String,
    /// The id that it has for the person.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub external_id: Option<String>,
}

/// A page of people.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct PeopleList {
    pub people: Vec<ActorView>,
    pub total: usize,
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub next_page_token: Option<String>,
}

/// A page of service accounts.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ServiceAccountList {
    pub service_accounts: Vec<ActorView>,
    pub total: usize,
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub next_page_token: Option<String>,
}

/// A link with which a person logs in, once.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct InvitationView {
    /// The URL to send to the person; it works once. No later response contains it.
    #[schema(example = "http://127.0.0.1:18789/login?invitation=…")]
    pub url: String,
    pub expires_at: Timestamp,
}

/// A new person, and the link with which they log in.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct InvitedPerson {
    #[serde(flatten)]
    pub person: ActorView,
    pub invitation: InvitationView,
}

/// A new person.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
pub struct NewPerson {
    /// The name: 1 to 64 characters without control characters.
    #[schema(example = "Ann Smith", min_length = 1, max_length = 64)]
    pub name: String,
    /// The e-mail address. No two people have the same.
    #[schema(example = "ann@example.com", max_length = 254)]
    pub email: Option<String>,
    /// The role; default: `caller`.
    #[serde(default = "crate::token::default_role")]
    #[schema(value_type = Role, example = "caller")]
    pub role: String,
    /// Whether tools that need approval run without it.
    #[serde(default)]
    pub elevated: bool,
    /// Whether the person administers tenants, for admins of the tenant `default`.
    #[serde(default)]
    pub platform: bool,
    /// The tools that the person may see and call: names, `bundle:name`, `bundle:*`, `tag:name`; default: every tool.
    #[schema(example = json!(["weather", "web:*"]), max_items = 256)]
    pub tools: Option<Vec<String>>,
    /// How many calls it may make with sessions and tokens together; default: no limit.
    #[serde(default, deserialize_with = "crate::read::optional_object")]
    pub rate_limit: Option<RateBody>,
    /// Names or ids of groups.
    #[serde(default)]
    #[schema(example = json!(["finance"]), max_items = 64)]
    pub groups: Vec<String>,
    /// The tenant; platform admins may name any, others only their own.
    pub tenant: Option<String>,
}

/// A new service account.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
pub struct NewServiceAccount {
    /// The name: 1 to 64 characters without control characters.
    #[schema(example = "nightly-report", min_length = 1, max_length = 64)]
    pub name: String,
    /// What it is for: at most 1,000 characters.
    #[serde(default)]
    #[schema(example = "Sends the report each night", max_length = 1000)]
    pub description: String,
    /// The id or the e-mail address of the person who is responsible.
    #[schema(example = "ann@example.com")]
    pub responsible: Option<String>,
    /// The role; default: `caller`.
    #[serde(default = "crate::token::default_role")]
    #[schema(value_type = Role, example = "caller")]
    pub role: String,
    /// Whether tools that need approval run without it.
    #[serde(default)]
    pub elevated: bool,
    /// The tools that it may see and call: names, `bundle:name`, `bundle:*`, `tag:name`; default: every tool.
    #[schema(example = json!(["weather", "web:*"]), max_items = 256)]
    pub tools: Option<Vec<String>>,
    /// How many calls it may make with sessions and tokens together; default: no limit.
    #[serde(default, deserialize_with = "crate::read::optional_object")]
    pub rate_limit: Option<RateBody>,
    /// Names or ids of groups.
    #[serde(default)]
    #[schema(example = json!(["finance"]), max_items = 64)]
    pub groups: Vec<String>,
    /// The tenant; platform admins may name any, others only their own.
    pub tenant: Option<String>,
}

/// Changes of a person or a service account; missing fields are kept.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields, expecting = "an object")]
pub struct ActorPatch {
    /// The name: 1 to 64 characters without control characters.
    #[schema(example = "Ann Smith", min_length = 1, max_length = 64)]
    pub name: Option<String>,
    /// The e-mail address of a person; an empty one removes it.
    #[schema(example = "ann@example.com", max_length = 254)]
    pub email: Option<String>,
    /// What a service account is for: at most 1,000 characters.
    #[schema(max_length = 1000)]
    pub description: Option<String>,
    /// The id or the e-mail address of the person who is responsible for a service account; an empty one removes it.
    #[schema(example = "ann@example.com")]
    pub responsible: Option<String>,
    /// `disabled` ends its sessions, tokens and running work at once; `active` lets it act again.
    pub status: Option<ActorStatus>,
    /// The role in the tenant.
    #[schema(value_type = Option<Role>)]
    pub role: Option<String>,
    /// Whether tools that need approval run without it.
    pub elevated: Option<bool>,
    /// Whether a person administers tenants, for admins of the tenant `default`.
    pub platform: Option<bool>,
    /// The tools that it may see and call; `null` allows every tool.
    #[serde(deserialize_with = "crate::read::some")]
    #[schema(value_type = Option<Vec<String>>, max_items = 256)]
    pub tools: Option<Option<Vec<String>>>,
    /// How many calls it may make in the tenant; `null` removes the limit.
    #[serde(deserialize_with = "crate::token::present_rate")]
    #[schema(value_type = Option<RateBody>)]
    pub rate_limit: Option<Option<RateBody>>,
    /// Names or ids of groups of the tenant; replaces the list.
    #[schema(max_items = 64)]
    pub groups: Option<Vec<String>>,
}

/// To whom something is handed over.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
pub struct HandOver {
    /// The id or the e-mail address of the person who gets it.
    #[schema(example = "bob@example.com")]
    pub to: String,
}

/// What was handed over.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct HandedOver {
    /// The number of chats.
    pub chats: u64,
    /// The number of service accounts.
    pub service_accounts: u64,
}

/// A group, with its members.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct GroupView {
    pub id: Uuid,
    #[schema(example = "finance")]
    pub name: String,
    /// What it is for.
    pub description: String,
    #[schema(example = "default")]
    pub tenant: String,
    /// What its members may do besides what their membership gives.
    pub rights: RightsView,
    pub members: Vec<ActorName>,
    /// Whether an identity provider manages name and members (SCIM).
    pub is_provisioned: bool,
    pub created_at: Timestamp,
    pub modified_at: Timestamp,
}

/// A page of groups.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct GroupList {
    pub groups: Vec<GroupView>,
    pub total: usize,
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub next_page_token: Option<String>,
}

/// A new group.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
pub struct NewGroup {
    /// The name: 1 to 64 characters without control characters.
    #[schema(example = "finance", min_length = 1, max_length = 64)]
    pub name: String,
    /// What it is for: at most 1,000 characters.
    #[serde(default)]
    #[schema(example = "Pays the bills", max_length = 1000)]
    pub description: String,
    /// The role of its members; default: `viewer`.
    #[serde(default = "default_group_role")]
    #[schema(value_type = Role, example = "caller")]
    pub role: String,
    /// Whether tools that need approval run without it.
    #[serde(default)]
    pub elevated: bool,
    /// The tools that its members may see and call besides their own; `null` allows every tool; default: none.
    #[serde(default = "no_tools")]
    #[schema(example = json!(["bank:*"]), max_items = 256)]
    pub tools: Option<Vec<String>>,
    /// Ids or e-mail addresses of its members.
    #[serde(default)]
    #[schema(example = json!(["ann@example.com"]), max_items = 1000)]
    pub members: Vec<String>,
    /// The tenant; platform admins may name any, others only their own.
    pub tenant: Option<String>,
}

fn default_group_role() -> String {
    Role::Viewer.as_str().to_owned()
}

#[expect(clippy::unnecessary_wraps, reason = "the type of the field")]
fn no_tools() -> Option<Vec<String>> {
    Some(Vec::new())
}

/// Changes of a group; missing fields are kept.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields, expecting = "an object")]
pub struct GroupPatch {
    /// The name: 1 to 64 characters without control characters.
    #[schema(example = "finance", min_length = 1, max_length = 64)]
    pub name: Option<String>,
    /// What it is for: at most 1,000 characters.
    #[schema(max_length = 1000)]
    pub description: Option<String>,
    /// The role of its members.
    #[schema(value_type = Option<Role>)]
    pub role: Option<String>,
    /// Whether tools that need approval run without it.
    pub elevated: Option<bool>,
    /// The tools that its members may see and call besides their own; `null` allows every tool.
    #[serde(deserialize_with = "crate::read::some")]
    #[schema(value_type = Option<Vec<String>>, max_items = 256)]
    pub tools: Option<Option<Vec<String>>>,
    /// Ids or e-mail addresses of its members; replaces the list.
    #[schema(max_items = 1000)]
    pub members: Option<Vec<String>>,
    /// Ids or e-mail addresses of new members; those that others add at the same time stay.
    #[schema(max_items = 1000)]
    pub add_members: Vec<String>,
    /// Ids or e-mail addresses of members to remove.
    #[schema(max_items = 1000)]
    pub remove_members: Vec<String>,
}

/// The person or service account that makes a request.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct SessionActor {
    pub id: Uuid,
    pub kind: ActorKind,
    /// The e-mail address of a person.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required, example = "ann@example.com")]
    pub email: Option<String>,
    /// The names of its groups.
    pub groups: Vec<String>,
    /// Whether the token gives a lower role or fewer tools than the actor has: then it sees only what it created itself,
    /// and manages no tokens.
    pub is_reduced: bool,
}

impl From<&ActingAs> for SessionActor {
    fn from(actor: &ActingAs) -> Self {
        Self {
            id: actor.id.0,
            kind: actor.kind,
            email: actor.email.as_deref().map(str::to_owned),
            groups: actor.groups.iter().map(|group| String::from(&**group)).collect(),
            is_reduced: actor.is_reduced,
        }
    }
}
