//! The users of a tool or a resource: the tools and agents that refer to it.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use haft_core::agent::AgentDefinition;
use haft_core::callable::CallableKind;
use haft_core::catalog::StoreError;
use haft_core::id::ToolId;
use haft_core::implementation::Implementation;
use haft_core::name::TenantId;
use haft_core::outcome::ErrorCode;
use haft_core::policy::PolicyRule;
use haft_core::principal::{AllowList, matches_pattern};
use haft_core::reference::ToolRef;
use haft_core::resource::Resource;
use haft_core::spec::ToolSpec;
use haft_core::tool_pattern::ToolPattern;
use haft_runtime::registry::{Entry, Snapshot};
use haft_store::ResourceQuery;
use serde_json::json;
use uuid::Uuid;

use crate::context::Context;
use crate::error::ServiceError;
use crate::resource_kind::ServedKind;

/// How many users an error names.
const MAX_NAMED: usize = 20;
/// The field that names the replacement of a tool. Such a reference does not need its target.
const REPLACED_BY: &str = "replaced_by";

/// The target of references by tools and agents: a tool, or a resource of any kind.
pub trait UseTarget: Sync {
    /// Returns its noun for messages.
    fn noun(&self) -> &'static str;

    /// Returns its name: the slug, or `bundle:name@version`.
    fn label(&self) -> String;

    /// Returns the tenant whose tools and agents may refer to it.
    fn owner(&self) -> &TenantId;

    /// Returns its id in the records of calls.
    fn call_id(&self) -> Option<ToolId>;

    /// Returns the field by which a tool refers to it.
    fn field_in(&self, snapshot: &Snapshot, entry: &Entry) -> Option<&'static str>;

    /// Returns the rules of a list that match it, by its name or a pattern.
    fn matching_rules(&self, list: &AllowList) -> Vec<String>;

    /// Returns whether a policy rule matches it.
    fn is_ruled_by(&self, rule: &PolicyRule) -> bool;

    /// Returns the rules of `tools` in which an agent names exactly this target.
    fn named_in<'a>(&self, snapshot: &Snapshot, agent: &'a AgentDefinition) -> Vec<&'a str>;

    /// Returns whether agents that match it only by a pattern count as users.
    fn is_tool(&self) -> bool {
        false
    }
}

impl<S: ServedKind> UseTarget for Resource<S> {
    fn noun(&self) -> &'static str {
        S::KIND.noun()
    }

    fn label(&self) -> String {
        self.definition.slug().to_owned()
    }

    fn owner(&self) -> &TenantId {
        &self.tenant
    }

    fn call_id(&self) -> Option<ToolId> {
        S::CALLABLE.and_then(|_| self.id.to_string().parse().ok())
    }

    fn field_in(&self, _snapshot: &Snapshot, entry: &Entry) -> Option<&'static str> {
        // Tools of another owner refer to the resources of their callers, whose slugs may be the same.
        if entry.tool.tenant != self.tenant {
            return None;
        }
        let (id, slug) = (self.id.to_string(), self.definition.slug());
        let mut references = specs(entry).flat_map(|spec| S::references(&spec.implementation));
        references.find(|(_, reference)| *reference == id || *reference == slug).map(|(field, _)| field)
    }

    fn matching_rules(&self, list: &AllowList) -> Vec<String> {
        let kind = S::CALLABLE.map(CallableKind::bundle);
        kind.map(|bundle| list.matching_resource(bundle, self.definition.slug())).unwrap_or_default()
    }

    fn is_ruled_by(&self, rule: &PolicyRule) -> bool {
        let names = |patterns: &Vec<String>| {
            AllowList::new(patterns).is_ok_and(|list| !self.matching_rules(&list).is_empty())
        };
        rule.matching.tags.is_none() && rule.matching.tools.as_ref().is_some_and(names)
    }

    fn named_in<'a>(&self, _snapshot: &Snapshot, agent: &'a AgentDefinition) -> Vec<&'a str> {
        let name = S::CALLABLE.map(|kind| format!("{}:{}", kind.bundle(), self.definition.slug()));
        let rules = agent.tools.iter().map(String::as_str);
        rules.filter(|rule| name.as_deref() == Some(*rule)).collect()
    }
}

/// A tool, as a tenant sees it.
pub struct UsedTool<'a> {
    /// The tool.
    pub entry: &'a Entry,
    /// The tenant whose tools and agents may refer to it.
    pub tenant: &'a TenantId,
}

impl UseTarget for UsedTool<'_> {
    fn noun(&self) -> &'static str {
        "tool"
    }

    fn label(&self) -> String {
        self.entry.qualified.to_string()
    }

    fn owner(&self) -> &TenantId {
        self.tenant
    }

    fn call_id(&self) -> Option<ToolId> {
        Some(self.entry.tool.id)
    }

    fn field_in(&self, snapshot: &Snapshot, entry: &Entry) -> Option<&'static str> {
        if entry.tool.id == self.entry.tool.id {
            return None;
        }
        let is_it = |text: &str| {
            let reference = text.parse::<ToolRef>();
            let found = reference.ok().and_then(|tool| snapshot.resolve(self.tenant, &tool).ok());
            found.is_some_and(|found| found.tool.id == self.entry.tool.id)
        };
        let calls = |spec: &ToolSpec| match &spec.implementation {
            Implementation::Steps(steps) => steps.steps.iter().any(|step| is_it(&step.tool)),
            _ => false,
        };
        if specs(entry).any(|spec| calls(spec)) {
            return Some("implementation.steps");
        }
        let replaced_by = entry.tool.deprecation().and_then(|deprecation| deprecation.replaced_by.as_deref());
        replaced_by.is_some_and(is_it).then_some(REPLACED_BY)
    }

    fn matching_rules(&self, list: &AllowList) -> Vec<String> {
        list.matching(&self.entry.tool)
    }

    /// Matches the name, the bundle or the tags.
    fn is_ruled_by(&self, rule: &PolicyRule) -> bool {
        let tool = &self.entry.tool;
        let names = |patterns: &Vec<String>| AllowList::new(patterns).is_ok_and(|list| list.allows(tool));
        let has_tag = |patterns: &Vec<String>| {
            patterns.iter().any(|pattern| tool.spec.tags.iter().any(|tag| matches_pattern(pattern, tag)))
        };
        let (tools, tags) = (rule.matching.tools.as_ref(), rule.matching.tags.as_ref());
        (tools.is_some() || tags.is_some()) && tools.is_none_or(names) && tags.is_none_or(has_tag)
    }

    /// A rule that also matches another tool does not need this one.
    fn named_in<'b>(&self, snapshot: &Snapshot, agent: &'b AgentDefinition) -> Vec<&'b str> {
        let tool = &self.entry.tool;
        let needs_it = |rule: &&str| {
            let pattern = ToolPattern::from(*rule);
            pattern.exact_name().is_some()
                && pattern.matches(tool)
                && !snapshot
                    .with_name(self.tenant, tool.spec.name.as_str())
                    .any(|other| other.tool.id != tool.id && pattern.matches(&other.tool))
        };
        agent.tools.iter().map(String::as_str).filter(needs_it).collect()
    }

    fn is_tool(&self) -> bool {
        true
    }
}

/// Returns the newest and the published definition of a tool.
fn specs(entry: &Entry) -> impl Iterator<Item = &Arc<ToolSpec>> {
    let published = entry.tool.published.as_ref().map(|(_, spec)| spec);
    published.into_iter().chain([&entry.tool.spec])
}

/// The tools and agents that use a target.
#[derive(Debug, Default)]
pub struct Users {
    /// The tools that refer to it, and those whose steps call one of these.
    pub tools: Vec<ToolUser>,
    /// The agents that list it, or may call a tool that refers to it.
    pub agents: Vec<AgentUser>,
}

/// A tool that uses a target.
#[derive(Debug)]
pub struct ToolUser {
    /// Its id.
    pub id: ToolId,
    /// The tool, as `bundle:name@version`.
    pub tool: String,
    /// The field that refers to the target, or to a tool that does.
    pub field: &'static str,
    /// Whether it requires the target.
    pub needs_it: bool,
}

/// An agent that uses a target.
#[derive(Debug)]
pub struct AgentUser {
    /// Its id.
    pub id: Uuid,
    /// Its slug.
    pub agent: String,
    /// The rules of `tools` that match.
    pub rules: Vec<String>,
    /// Whether one of them names the target itself.
    pub needs_it: bool,
}

/// Finds the users of a target in newest and published definitions.
pub async fn users(app: &Context, target: &impl UseTarget) -> Result<Users, StoreError> {
    let (snapshot, tenant) = (app.registry().snapshot(), target.owner());
    let direct: Vec<(&Arc<Entry>, &'static str)> = snapshot
        .tools(tenant)
        .filter_map(|entry| Some((entry, target.field_in(&snapshot, entry)?)))
        .collect();
    let user = |entry: &Entry, field, needs_it| ToolUser {
        id: entry.tool.id,
        tool: entry.qualified.to_string(),
        field,
        needs_it,
    };
    let mut tools: Vec<ToolUser> =
        direct.iter().map(|&(entry, field)| user(entry, field, field != REPLACED_BY)).collect();
    let needing = || direct.iter().filter(|(_, field)| *field != REPLACED_BY).map(|&(entry, _)| entry);
    let ids: HashSet<ToolId> = needing().map(|entry| entry.tool.id).collect();
    if !ids.is_empty() {
        let known: HashSet<ToolId> = tools.iter().map(|tool| tool.id).collect();
        let indirect = snapshot
            .tools(tenant)
            .filter(|entry| !known.contains(&entry.tool.id) && calls_one_of(&snapshot, entry, &ids));
        tools.extend(indirect.map(|entry| user(entry, "implementation.steps", false)));
    }
    let all = ResourceQuery { limit: i32::MAX.unsigned_abs(), ..ResourceQuery::default() };
    let (agents, _) = app.store().agents().list(tenant, &all).await?;
    let own_id = target.call_id().map(|id| id.0);
    let callers: Vec<&Arc<Entry>> = needing().collect();
    let others = agents.iter().filter(|agent| Some(agent.id.0) != own_id);
    let agents = others.filter_map(|agent| agent_user(&snapshot, agent, target, &callers)).collect();
    Ok(Users { tools, agents })
}

/// Rejects the deletion of a target that is in use.
pub async fn require_unused(app: &Context, target: &impl UseTarget) -> Result<(), ServiceError> {
    let users = users(app, target).await?;
    let tools: Vec<String> =
        users.tools.into_iter().filter(|tool| tool.needs_it).map(|tool| tool.tool).collect();
    let agents: Vec<String> = users
        .agents
        .into_iter()
        .filter(|agent| agent.needs_it)
        .map(|agent| format!("agents:{}", agent.agent))
        .collect();
    let used_by: Vec<&String> = tools.iter().chain(&agents).collect();
    if used_by.is_empty() {
        return Ok(());
    }
    let named: Vec<String> = used_by.iter().take(MAX_NAMED).map(|user| format!("`{user}`")).collect();
    let more = match used_by.len() - named.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let (kind, label) = (target.noun(), target.label());
    let message = format!(
        "{kind} `{label}` is in use by {}{more}; change these, or delete it anyway with `force=true` (`haft {kind} delete \
         --force`)",
        named.join(", ")
    );
    let details = json!({"used_by": used_by, "tools": tools, "agents": agents});
    Err(ServiceError::new(ErrorCode::Conflict, message).with_details(details))
}

fn calls_one_of(snapshot: &Snapshot, entry: &Entry, ids: &HashSet<ToolId>) -> bool {
    let Implementation::Steps(steps) = &entry.tool.spec.implementation else { return false };
    steps.steps.iter().any(|step| {
        let reference = step.tool.parse::<ToolRef>();
        let called = reference.ok().and_then(|tool| snapshot.resolve(&entry.tool.tenant, &tool).ok());
        called.is_some_and(|called| ids.contains(&called.tool.id))
    })
}

fn agent_user(
    snapshot: &Snapshot,
    agent: &Resource<AgentDefinition>,
    target: &impl UseTarget,
    tools: &[&Arc<Entry>],
) -> Option<AgentUser> {
    let mut rules = BTreeSet::new();
    let mut needs_it = false;
    for definition in [&agent.definition, agent.serving()] {
        let named = target.named_in(snapshot, definition);
        needs_it |= !named.is_empty();
        rules.extend(named.into_iter().map(str::to_owned));
        // Invalid rules are rejected when the agent is saved.
        let Ok((list, excluded)) = definition.tool_lists() else { continue };
        if target.is_tool() && excluded.as_ref().is_none_or(|list| target.matching_rules(list).is_empty()) {
            rules.extend(target.matching_rules(&list));
        }
        let may_call =
            tools.iter().filter(|entry| !excluded.as_ref().is_some_and(|list| list.allows(&entry.tool)));
        rules.extend(may_call.flat_map(|entry| list.matching(&entry.tool)));
    }
    if rules.is_empty() {
        return None;
    }
    let rules = rules.into_iter().collect();
    Some(AgentUser { id: agent.id.0, agent: agent.definition.slug.to_string(), rules, needs_it })
}
