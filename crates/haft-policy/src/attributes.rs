//! What rules can ask about a call, whether it is a real one or an example.

use haft_core::actor::ActingAs;
use haft_core::callable::{CallableKind, CallableResource};
use haft_core::id::TokenId;
use haft_core::name::{AgentSlug, TenantId};
use haft_core::policy::RuleExample;
use haft_core::principal::{Principal, matches_pattern};
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

/// The person or service account of a call.
#[derive(Clone, Copy)]
pub(super) enum ActorAttributes<'a> {
    None,
    Known(&'a ActingAs),
    /// As an example of a rule names them.
    Example {
        person: Option<&'a str>,
        groups: &'a [String],
    },
}

impl<'a> ActorAttributes<'a> {
    /// Returns whether a pattern is its id or its e-mail address.
    pub(super) fn is_identified_by(&self, pattern: &str) -> bool {
        match self {
            Self::None => false,
            Self::Known(actor) => actor.is_identified_by(pattern),
            Self::Example { person, .. } => person.is_some_and(|person| {
                matches_pattern(pattern, person)
                    || matches_pattern(&pattern.to_lowercase(), &person.to_lowercase())
            }),
        }
    }

    /// Returns the text by which conditions know it: the e-mail address, or the id.
    pub(super) fn person(&self) -> String {
        match self {
            Self::None => String::new(),
            Self::Known(actor) => actor.email.as_deref().map_or_else(|| actor.id.to_string(), str::to_owned),
            Self::Example { person, .. } => person.unwrap_or_default().to_owned(),
        }
    }

    /// Returns the names of its groups.
    pub(super) fn groups(&self) -> Vec<&'a str> {
        match self {
            Self::None => Vec::new(),
            Self::Known(actor) => actor.groups.iter().map(|group| &**group).collect(),
            Self::Example { groups, .. } => groups.iter().map(String::as_str).collect(),
        }
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
    /// The person or service account, if there is one.
    pub(super) actor: ActorAttributes<'a>,
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
            token: principal.rule_name(),
            token_id: principal.token,
            actor: principal.actor.as_deref().map_or(ActorAttributes::None, ActorAttributes::Known),
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
            actor: ActorAttributes::Example { person: example.person.as_deref(), groups: &example.groups },
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
