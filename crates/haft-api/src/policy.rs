//! Explanations of policy decisions.

use haft_core::exact_json;
use haft_core::policy::Effect;
use haft_core::token::Role;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// The call to explain.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
pub struct ExplainBody {
    /// The tool: id, name or `bundle:name`; the latter two optionally with `@version`.
    #[schema(example = "greet")]
    pub tool: String,
    /// The arguments.
    #[serde(default, deserialize_with = "exact_json::object")]
    #[schema(value_type = Object, example = json!({"name": "Ada"}))]
    pub args: Map<String, Value>,
    /// Who calls; default: you.
    #[serde(default, rename = "as", deserialize_with = "crate::read::optional_object")]
    pub caller: Option<ExplainCaller>,
}

/// The caller to explain.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default, expecting = "an object")]
pub struct ExplainCaller {
    /// The name or id of a token. Its role, elevation and allow-list apply; with `role` it need not exist.
    #[schema(example = "ci")]
    pub token: Option<String>,
    /// The id, the e-mail address or the name of a person, instead of a token; for admins.
    #[schema(example = "ann@example.com")]
    pub person: Option<String>,
    /// The role; default: the role of the token or the person, or `caller`.
    #[schema(example = "caller")]
    pub role: Option<Role>,
    /// Whether tools that need approval run without it; default: as the token.
    pub elevated: Option<bool>,
    /// The tenant; only admins of the platform may name another one.
    pub tenant: Option<String>,
    /// The agent that makes the call; default: none.
    pub agent: Option<String>,
    /// The surface; default: `rest`.
    #[schema(example = "rest")]
    pub surface: Option<String>,
    /// The agents above the one that makes the call, outermost first; default: none.
    #[schema(example = json!(["planner"]))]
    pub agents_above: Vec<String>,
    /// The surfaces on whose behalf the call is made, from the root; default: none.
    #[schema(example = json!(["mcp"]))]
    pub surfaces_above: Vec<String>,
}

/// The decision about a call and its reasons.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ExplanationView {
    pub effect: Effect,
    /// The rule that decided; `null` if the call is allowed because no rule matches. The checks of haft itself have the
    /// prefix `built-in:`, the rules of the platform `platform:`.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required, example = "large-payments")]
    pub rule: Option<String>,
    /// The reason of the rule, as callers see it.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub reason: Option<String>,
    /// All evaluated checks and rules: the checks of haft, the rules of the platform, the rules of the tenant.
    pub considered: Vec<ConsideredView>,
}

/// An evaluated rule or check.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ConsideredView {
    #[schema(example = "large-payments")]
    pub rule: String,
    /// Its effect on matching calls.
    pub effect: Effect,
    /// Whether it matches the call.
    pub matched: bool,
    /// Why it matches or not.
    #[schema(example = "`when` is false")]
    pub why: String,
}
