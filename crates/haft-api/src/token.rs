//! Access tokens, and who is logged in.

use haft_core::limit::CallRate;
use haft_core::token::Role;
use haft_core::{Timestamp, duration};
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::people::{ActorName, SessionActor};

/// A token, without its value.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct TokenView {
    pub id: Uuid,
    #[schema(example = "ci")]
    pub name: String,
    #[schema(example = "default")]
    pub tenant: String,
    pub role: Role,
    /// Whether tools that need approval run without it.
    pub elevated: bool,
    /// Whether it administers tenants.
    pub platform: bool,
    /// The rules of the tools that it may see and call; `null` allows every tool.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub tools: Option<Vec<String>>,
    /// How many calls it may make; `null` for no limit.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub rate_limit: Option<RateBody>,
    pub created_at: Timestamp,
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub expires_at: Option<Timestamp>,
    /// When it was last used; `null` if never. Other nodes report a use within a minute.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub last_used_at: Option<Timestamp>,
    /// When the value before the last rotation stops working; `null` if it does not work.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub previous_expires_at: Option<Timestamp>,
    /// The token with which the login was approved that this token comes from; `null` if it comes from no login. Revoking
    /// that one revokes this one.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub parent_id: Option<Uuid>,
    /// The person or service account that it belongs to; `null` if it has no owner.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub actor: Option<ActorName>,
}

/// A new token with its value.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct CreatedToken {
    #[serde(flatten)]
    pub record: TokenView,
    /// The value, which no later response contains.
    #[schema(example = "haft_…")]
    pub token: String,
    /// Warnings, such as a rule of `tools` that matches no tool.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// A page of tokens.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct TokenList {
    pub tokens: Vec<TokenView>,
    pub total: usize,
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub next_page_token: Option<String>,
}

/// A new token.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
pub struct NewToken {
    /// The name of the token: 1 to 64 characters without control characters.
    #[schema(example = "ci", min_length = 1, max_length = 64)]
    pub name: String,
    /// The role; default: `caller`, or the role of the owner.
    #[schema(value_type = Option<Role>, example = "caller")]
    pub role: Option<String>,
    /// Whether tools that need approval run without it.
    #[serde(default)]
    pub elevated: bool,
    /// Whether it administers tenants, for admins of the tenant `default`.
    #[serde(default)]
    pub platform: bool,
    /// The tools that it may see and call: names, `bundle:name`, `bundle:*`, `tag:name`; default: every tool.
    #[schema(example = json!(["weather", "web:*"]), max_items = 256)]
    pub tools: Option<Vec<String>>,
    /// How many calls it may make; default: no limit.
    #[serde(default, deserialize_with = "crate::read::optional_object")]
    pub rate_limit: Option<RateBody>,
    /// The lifetime, for example `12h` or `90d`; default: no expiry.
    #[schema(example = "90d")]
    pub expires_in: Option<String>,
    /// The tenant; platform admins may name any, others only their own.
    pub tenant: Option<String>,
    /// To whom it belongs: `me`, or the id or name of a service account of the tenant. The token never does more than its
    /// owner may do. Default: nobody for admins, so the token has no owner; `me` for everybody else.
    #[schema(example = "me")]
    pub owner: Option<String>,
}

pub(crate) fn default_role() -> String {
    Role::Caller.as_str().to_owned()
}

/// The options of a rotation.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields, expecting = "an object")]
pub struct RotateToken {
    /// How long the old value works besides the new one, at most `7d`; default: it stops working at once.
    #[schema(example = "10m")]
    pub grace: Option<String>,
    /// The new lifetime, from now on; default: the expiry stays.
    #[schema(example = "90d")]
    pub expires_in: Option<String>,
}

/// A number of calls per period.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
pub struct RateBody {
    /// The number of calls.
    #[schema(example = 60, minimum = 1, maximum = 1_000_000_000)]
    pub calls: u32,
    /// The period, a duration such as `1m`, at most a day.
    #[schema(example = "1m")]
    pub per: String,
}

impl From<CallRate> for RateBody {
    fn from(rate: CallRate) -> Self {
        Self { calls: rate.calls, per: duration::format(rate.period) }
    }
}

/// Changes of a token.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
pub struct TokenPatch {
    /// How many calls it may make; `null` removes the limit.
    #[serde(default, deserialize_with = "present_rate")]
    #[schema(value_type = Option<RateBody>)]
    pub rate_limit: Option<Option<RateBody>>,
    /// Gives a token without an owner to `me`, or to a service account: its id or name. The value stays the same.
    #[serde(default)]
    #[schema(example = "nightly-report")]
    pub owner: Option<String>,
}

/// Reads a field that is present, so that `null` differs from a missing field.
#[expect(clippy::option_option, reason = "missing, null, or a rate")]
pub(crate) fn present_rate<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Option<RateBody>>, D::Error> {
    crate::read::optional_object(deserializer).map(Some)
}

/// Who makes the request.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct SessionView {
    #[schema(example = "default")]
    pub tenant: String,
    /// The name of the person or service account, or of a token without an owner.
    #[schema(example = "ci")]
    pub name: String,
    /// The person or service account; `null` for a token without an owner.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub actor: Option<SessionActor>,
    /// What identifies the owner of a chat that this session creates.
    #[schema(example = "local")]
    pub owner_id: String,
    /// The id of the token; `null` for that of the home folder and that of the environment, which are not stored.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub token_id: Option<Uuid>,
    pub role: Role,
    /// Whether tools that need approval run without it.
    pub elevated: bool,
    /// Whether it administers tenants.
    pub platform: bool,
    /// The rules of the tools that it may see and call; `null` allows every tool.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub tools: Option<Vec<String>>,
    /// How many calls it may make; `null` for no limit.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub rate_limit: Option<RateBody>,
    /// Whether a browser session authenticates the request, not a token.
    pub is_session: bool,
    /// When the session, or the token, expires.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub expires_at: Option<Timestamp>,
}

/// A link that logs a browser in.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct LoginLinkView {
    /// The URL to open in a browser; it works once.
    #[schema(example = "http://127.0.0.1:18789/login?code=…")]
    pub url: String,
    pub expires_at: Timestamp,
}
