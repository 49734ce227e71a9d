//! Sign-on: the issuers of OpenID Connect, and what a login would get.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::people::RightsView;

/// An issuer of the configuration.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct IssuerView {
    #[schema(example = "corp")]
    pub id: String,
    #[schema(example = "Example Corp")]
    pub name: String,
    /// The issuer identifier.
    #[schema(example = "https://login.example.com")]
    pub issuer: String,
    #[schema(example = "haft")]
    pub client_id: String,
    /// The redirect URI to register at the issuer.
    #[schema(example = "https://haft.example.com/login/oidc/corp/callback")]
    pub callback_url: String,
    pub scopes: Vec<String>,
    /// The audiences of bearer tokens; without any, tokens of the issuer are no credentials.
    pub audiences: Vec<String>,
    /// Whether a person may be found by a verified e-mail address.
    pub link_by_email: bool,
    pub rules: Vec<SignOnRuleView>,
    /// Whether its metadata and keys are known.
    pub is_ready: bool,
    /// Why they could not be fetched last.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub error: Option<String>,
}

/// A rule of an issuer.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct SignOnRuleView {
    /// The condition; `null` matches every login.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required, example = "'ops' in claims.groups")]
    pub when: Option<String>,
    #[schema(example = "default")]
    pub tenant: String,
    pub rights: RightsView,
    /// Names of groups of the tenant.
    pub groups: Vec<String>,
    /// The claim whose values are names of groups.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub groups_claim: Option<String>,
}

/// All issuers.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct IssuerList {
    pub issuers: Vec<IssuerView>,
}

/// The claims of a login to try.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SignOnTestBody {
    /// The id of the issuer; may be missing if there is only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "corp")]
    pub issuer: Option<String>,
    /// The claims of an ID token.
    #[schema(example = json!({"sub": "00u1", "email": "ann@example.com", "email_verified": true, "groups": ["ops"]}))]
    pub claims: Map<String, Value>,
}

/// What a login would get, and why.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct SignOnTest {
    /// The id of the issuer.
    pub issuer: String,
    pub subject: String,
    /// Whom the login would log in.
    pub person: SignOnTestPerson,
    /// Every rule, in the order of the configuration.
    pub rules: Vec<SignOnTestRule>,
    /// What the rules give, by tenant.
    pub tenants: Vec<SignOnTestTenant>,
    /// What is wrong with the claims or the rules.
    pub warnings: Vec<String>,
}

/// Whom a login would log in.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct SignOnTestPerson {
    pub outcome: SignOnOutcome,
    /// The id of a person who exists.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub id: Option<Uuid>,
    pub name: String,
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub email: Option<String>,
}

/// How a login finds its person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SignOnOutcome {
    /// The person has logged in at the issuer before.
    Known,
    /// A person with the verified e-mail address, who has not logged in at the issuer before.
    Linked,
    /// A new person.
    New,
    /// The person is disabled.
    Disabled,
    /// No rule matches, and nobody has invited the person.
    NothingAssigned,
}

impl SignOnOutcome {
    /// Returns what happens, as a sentence without a period.
    pub const fn description(self) -> &'static str {
        match self {
            Self::Known => "logs in: has logged in at the issuer before",
            Self::Linked => "logs in: found by the verified e-mail address",
            Self::New => "logs in as a new person",
            Self::Disabled => "rejected: the person is disabled",
            Self::NothingAssigned => "rejected: no rule matches, and nobody has invited the person",
        }
    }
}

/// Whether a rule matches.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct SignOnTestRule {
    /// Counted from 1.
    pub number: usize,
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub when: Option<String>,
    pub tenant: String,
    #[schema(example = "caller")]
    pub role: String,
    pub matched: bool,
    /// Why the condition has no value; then it does not match.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub error: Option<String>,
}

/// What the rules give in a tenant.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct SignOnTestTenant {
    pub tenant: String,
    pub rights: RightsView,
    /// The names of the groups.
    pub groups: Vec<String>,
}
