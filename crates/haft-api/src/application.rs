//! Connected applications, and the applications that admins create.

use haft_core::Timestamp;
use haft_core::token::Role;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::people::ActorName;

/// An application that a person has connected.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ApplicationView {
    pub id: Uuid,
    /// The name of the application.
    #[schema(example = "Claude")]
    pub name: String,
    /// The OAuth `client_id`.
    #[schema(example = "https://claude.ai/oauth/mcp-oauth-client-metadata")]
    pub client_id: String,
    /// The host that describes the application; `null` if nobody but itself or an admin does.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub client_host: Option<String>,
    /// Where its answers go: a host, or a program on the computer of the person.
    #[schema(example = "claude.ai")]
    pub destination: String,
    #[schema(example = "default")]
    pub tenant: String,
    pub role: Role,
    /// The rules of the tools that it may see and call; `null` allows every tool that the person may use.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub tools: Option<Vec<String>>,
    pub created_at: Timestamp,
    /// When it is disconnected; `null` if it stays connected.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub expires_at: Option<Timestamp>,
    /// When it is disconnected unless it refreshes its tokens before; `null` if it cannot refresh them.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub idle_until: Option<Timestamp>,
    /// When it was last used; `null` if never. Other nodes report a use within a minute.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub last_used_at: Option<Timestamp>,
    /// The person who connected it; `null` if it was connected with a token that has no owner.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub actor: Option<ActorName>,
}

/// A page of connected applications.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ApplicationList {
    pub applications: Vec<ApplicationView>,
    pub total: usize,
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub next_page_token: Option<String>,
}

/// An application that an admin has created.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ApplicationClientView {
    /// The OAuth `client_id`.
    #[schema(example = "haft_client_019a8f50b7b67a019a05a22a6e0af101")]
    pub client_id: String,
    #[schema(example = "Intranet")]
    pub name: String,
    #[schema(example = "default")]
    pub tenant: String,
    /// Where answers may go.
    pub redirect_uris: Vec<String>,
    /// Whether it has a secret.
    pub confidential: bool,
    pub created_at: Timestamp,
    /// When somebody last connected it; `null` if never.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub last_connected_at: Option<Timestamp>,
}

/// The applications that admins of a tenant have created.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ApplicationClientList {
    pub clients: Vec<ApplicationClientView>,
}

/// A new application.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
pub struct NewApplicationClient {
    /// The name: 1 to 64 characters without control characters.
    #[schema(example = "Intranet", min_length = 1, max_length = 64)]
    pub name: String,
    /// Where answers may go: 1 to 20 URLs, with `https`, or on the computer of the person.
    #[schema(example = json!(["https://intranet.example.com/callback"]), min_items = 1, max_items = 20)]
    pub redirect_uris: Vec<String>,
    /// Whether it has a secret, as programs on a server do; default: no.
    #[serde(default)]
    pub confidential: bool,
    /// The tenant; platform admins may name any, others only their own.
    pub tenant: Option<String>,
}

/// A new application with its secret.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct CreatedApplicationClient {
    #[serde(flatten)]
    pub client: ApplicationClientView,
    /// The secret, which no later response contains; `null` if it has none.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub client_secret: Option<String>,
}
