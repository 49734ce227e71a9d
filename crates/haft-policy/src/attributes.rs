//! What rules can ask about a call, whether it is a real one or an example.

use haft_core::callable::{CallableKind, CallableResource};
use haft_core::id::TokenId;
use haft_core::name::{AgentSlug, TenantId};
use haft_core::policy::RuleExample;
use haft_core::principal::Principal;
use haft_core::token::Role;
use haft_core::tool::Tool;
use serde_json::Value;

/// The bundle of an example that names none.
const DEFAULT_BUNDLE: &str = "user-created";
/// The surface of an example that names none.
const DEFAULT_SURFACE: &str = "rest";

/// What is called.
#[derive(Debug, Clone, Copy)]
pub enum Subject<'a> {
    /// A tool.
    Tool(&'a Tool),
    /// An agent or a retrieval pipeline.
    Resource(&'a CallableResource),
}

impl<'a> From<&'a Tool> for Subject<'a> {
    fn from(tool: &'a Tool) -> Self {
        Self::Tool(tool)
    }
}

impl<'a> From<&'a CallableResource> for Subject<'a> {
    fn from(resource: &'a CallableResource) -> Self {
        Self::Resource(resource)
    }
}

/// The attributes of a call.
#[derive(Clone, Copy)]
pub(super) struct CallAttributes<'a> {
    pub(super) tenant: &'a str,
    pub(super) role: &'a str,
    pub(super) elevated: bool,
    /// The name of the token.
    pub(super) token: &'a str,
    pub(super) token_id: Option<TokenId>,
    pub(super) agent: Option<&'a str>,
    /// The agents above that one, outermost first.
    pub(super) agents_above: &'a [AgentSlug],
    /// The bundle of the tool; `agents` or `pipelines` for what is not a tool.
    pub(super) bundle: &'a str,
    /// The name of the tool, or the slug of the agent or the pipeline.
    pub(super) tool: &'a str,
    /// What is called, if it is not a tool.
    pub(super) resource: Option<CallableKind>,
    pub(super) tags: &'a [String],
    pub(super) surface: &'a str,
    /// The arguments; `None` if they are not known yet.
    pub(super) args: Option<&'a Value>,
}

impl<'a> CallAttributes<'a> {
    /// Returns the attributes of a call whose arguments are not known.
    pub(super) fn new(principal: &'a Principal, subject: Subject<'a>, surface: &'a str) -> Self {
        let (bundle, tool, tags, resource) = match subject {
            Subject::Tool(tool) => (tool.bundle.as_str(), tool.spec.name.as_str(), &*tool.spec.tags, None),
            Subject::Resource(resource) => {
                (resource.kind.bundle(), &*resource.slug, &[][..], Some(resource.kind))
            }
        };
        Self {
            tenant: principal.tenant.as_str(),
            role: principal.role.as_str(),
            elevated: principal.elevated,
            token: &principal.name,
            token_id: principal.token,
            agent: acting_agent(principal),
            agents_above: agents_above(principal),
            bundle,
            tool,
            resource,
            tags,
            surface,
            args: None,
        }
    }

    /// Returns the attributes of an example of a rule. `agents:SLUG` and `pipelines:SLUG` are an agent and a pipeline.
    pub(super) fn of_example(example: &'a RuleExample, tenant: &'a TenantId, args: &'a Value) -> Self {
        let (bundle, tool) = example.tool.split_once(':').unwrap_or((DEFAULT_BUNDLE, &example.tool));
        Self {
            tenant: example.tenant.as_deref().unwrap_or(tenant.as_str()),
            role: example.role.as_deref().unwrap_or(Role::Caller.as_str()),
            elevated: false,
            token: example.token.as_deref().unwrap_or_default(),
            token_id: None,
            agent: example.agent.as_deref(),
            agents_above: &[],
            bundle,
            tool,
            resource: [CallableKind::Agent, CallableKind::Pipeline]
                .into_iter()
                .find(|kind| kind.bundle() == bundle),
            tags: &example.tags,
            surface: example.surface.as_deref().unwrap_or(DEFAULT_SURFACE),
            args: Some(args),
        }
    }
}

/// Returns the slug of the agent that calls on behalf of a principal.
pub fn acting_agent(principal: &Principal) -> Option<&str> {
    principal.agent.as_ref().map(|agent| agent.slug.as_str())
}

/// Returns the agents above the one that calls on behalf of a principal, outermost first.
pub fn agents_above(principal: &Principal) -> &[AgentSlug] {
    principal.agent.as_ref().map_or(&[], |agent| agent.ancestors.as_slice())
}
