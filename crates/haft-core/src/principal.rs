//! Who calls: the same type on every surface.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::actor::{ActingAs, ActorKind, ENVIRONMENT_TOKEN, LOCAL_OWNER, LOCAL_OWNER_KEY, owner_key};
use crate::callable::CallableKind;
use crate::id::{ActorId, RunId, TokenId};
use crate::limit::CallRate;
use crate::name::{AgentSlug, PipelineSlug, TenantId};
use crate::resource::ResourceKind;
use crate::token::{Role, TokenRecord};
use crate::tool::Tool;
use crate::tool_pattern::{InvalidToolPattern, ToolPattern};

/// The maximum number of rules in an [`AllowList`].
const MAX_RULES: usize = 256;

/// The built-in tools that every allow-list includes, so that a client with a compact list can use it.
const FINDERS: [&str; 2] = ["search_tools", "describe_tool"];

/// Who calls, with all that decides what they may do. It is stored with a call that waits, so that the call can be
/// authorised again when it runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Principal {
    /// The tenant whose tools, files and secrets are used.
    pub tenant: TenantId,
    /// The stored token; `None` for the local token, the token of the environment, and embedding programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<TokenId>,
    /// The person or service account that the credential belongs to; `None` for a token without an owner, and for embedding
    /// programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<Arc<ActingAs>>,
    /// The name of the person or service account, of the token, or of the program.
    pub name: Arc<str>,
    /// The role.
    pub role: Role,
    /// Whether tools that need approval run without it.
    #[serde(default)]
    pub elevated: bool,
    /// Whether it administers the platform: tenants, and the tokens of every tenant.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub platform: bool,
    /// The tools that it may see and call.
    #[serde(default, skip_serializing_if = "AllowList::is_unlimited")]
    pub tools: AllowList,
    /// The person on whose behalf the call is made, if the surface knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<Arc<str>>,
    /// The agent that calls on its behalf, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<Arc<ActingAgent>>,
    /// The rate limit of the token. It is not stored with a call: the one in force when the call runs counts.
    #[serde(skip)]
    pub rate_limit: Option<CallRate>,
    /// The rate limits of the tokens that its token comes from, the first one first; its calls count for them, too. Like
    /// the own one, they are not stored with a call.
    #[serde(skip)]
    pub ancestor_rates: Arc<[(TokenId, CallRate)]>,
    /// The rate limit of its person or service account, which holds for all credentials together. It is not stored with a
    /// call either.
    #[serde(skip)]
    pub member_rate: Option<CallRate>,
}

impl Principal {
    /// Creates a principal without elevation that may call every tool of its tenant.
    pub fn new(tenant: TenantId, name: impl Into<Arc<str>>, role: Role) -> Self {
        Self {
            tenant,
            token: None,
            actor: None,
            name: name.into(),
            role,
            elevated: false,
            platform: false,
            tools: AllowList::default(),
            user: None,
            agent: None,
            rate_limit: None,
            ancestor_rates: Arc::default(),
            member_rate: None,
        }
    }

    /// Returns an anonymous principal with the role `caller`.
    pub fn anonymous(tenant: TenantId) -> Self {
        Self::new(tenant, "", Role::Caller)
    }

    /// Returns what identifies it within its tenant, as the owner of what it creates: the id of its person or service
    /// account unless the credential is reduced, the id of its token, or its name.
    pub fn id(&self) -> Arc<str> {
        let is_reduced = self.actor.as_ref().is_some_and(|actor| actor.is_reduced);
        if let Some(actor) = self.actor_id().filter(|_| !is_reduced) {
            return owner_key(actor);
        }
        self.token.map_or_else(|| Arc::clone(&self.name), |id| id.to_string().into())
    }

    /// Returns the id of its person or service account, or of its token if that has no owner.
    pub fn actor_or_token_id(&self) -> Option<Uuid> {
        self.actor.as_ref().map(|actor| actor.id.0).or(self.token.map(|token| token.0))
    }

    /// Returns what may identify it as the owner of something: a token owns what it created before it had an owner.
    pub fn own_ids(&self) -> Vec<Arc<str>> {
        let own = self.id();
        let of_token = self.token.map(|id| id.to_string().into());
        std::iter::once(Arc::clone(&own)).chain(of_token.filter(|id| *id != own)).collect()
    }

    /// Returns whether it owns what another principal created.
    pub fn owns_of(&self, creator: &Self) -> bool {
        self.own_ids().contains(&creator.id())
    }

    /// Returns whether the same person or service account is behind both, whatever credentials they use.
    pub fn is_same_actor(&self, other: &Self) -> bool {
        // A token that had no owner when it made a request may have one now.
        let is_same_token = self.token.is_some() && self.token == other.token;
        is_same_token
            || match (self.actor_id(), other.actor_id()) {
                (Some(actor), Some(other)) => actor == other,
                (None, None) => self.id() == other.id(),
                (Some(_), None) | (None, Some(_)) => false,
            }
    }

    /// Returns whether a person is behind it.
    pub fn is_person(&self) -> bool {
        let is_person = |actor: &Arc<ActingAs>| actor.kind == ActorKind::Person;
        self.actor.as_ref().map_or_else(|| self.actor_id().is_some(), is_person)
    }

    /// Returns its person or service account. A stored principal may be older than people: then those of the tokens that
    /// are not stored are the local owner.
    fn actor_id(&self) -> Option<ActorId> {
        let is_local = || {
            let is_known = [LOCAL_OWNER_KEY, ENVIRONMENT_TOKEN].contains(&&*self.name);
            self.token.is_none() && is_known && self.tenant.is_default()
        };
        self.actor.as_ref().map_or_else(|| is_local().then_some(LOCAL_OWNER), |actor| Some(actor.id))
    }

    /// Returns the name by which rules know it: that of its token or its service account. That of a person is for people
    /// only, who are identified by id or e-mail address; the tokens that are not stored have one nevertheless.
    pub fn rule_name(&self) -> &str {
        match self.actor.as_deref() {
            Some(actor) if actor.kind == ActorKind::Person => actor.token_name.as_deref().unwrap_or_default(),
            _ => &self.name,
        }
    }

    /// Returns the rate limits that apply to it, each with the token whose calls it counts. A token that comes from another
    /// one usually has the same rate limit: then it has no counter of its own.
    pub fn token_rates(&self) -> impl Iterator<Item = (TokenId, CallRate)> {
        let is_new = |own: &(TokenId, CallRate)| self.ancestor_rates.iter().all(|(_, rate)| *rate != own.1);
        self.ancestor_rates.iter().copied().chain(self.token.zip(self.rate_limit).filter(is_new))
    }

    /// Returns the person or service account with a rate limit, and that rate.
    pub fn actor_rate(&self) -> Option<(ActorId, CallRate)> {
        self.actor.as_ref().map(|actor| actor.id).zip(self.member_rate)
    }

    /// Returns whether it may see and call a tool: one that its allow-list names, or a built-in tool that finds and
    /// describes what it may call and reveals nothing else.
    pub fn allows(&self, tool: &Tool) -> bool {
        let is_finder = tool.built_in && FINDERS.contains(&tool.spec.name.as_str());
        // An agent has the tools that it lists and no others, not even those that find tools.
        (is_finder || self.tools.allows(tool)) && self.agent.as_ref().is_none_or(|agent| agent.allows(tool))
    }

    /// Returns whether it may run an agent: its allow-list has `agents:SLUG`, or there is none.
    pub fn allows_agent(&self, slug: &AgentSlug) -> bool {
        self.allows_resource(CallableKind::Agent, slug.as_str())
    }

    /// Returns whether it may query a retrieval pipeline: its allow-list has `pipelines:SLUG`, or there is none.
    pub fn allows_pipeline(&self, slug: &PipelineSlug) -> bool {
        self.allows_resource(CallableKind::Pipeline, slug.as_str())
    }

    /// Returns whether it may call an agent or a retrieval pipeline.
    pub fn allows_resource(&self, kind: CallableKind, slug: &str) -> bool {
        self.tools.allows_resource(kind.bundle(), slug)
    }

    /// Returns the patterns of the slugs of the resources that it may see, where `*` stands for any text; `None` for all.
    /// Editors see what they may change; others what their allow-list names, as `agents:SLUG`, `pipelines:SLUG` or
    /// `artifacts:SLUG`.
    pub fn visible_slugs(&self, kind: ResourceKind) -> Option<Vec<String>> {
        self.slug_patterns(kind).map(|patterns| patterns.map(str::to_owned).collect())
    }

    fn slug_patterns(&self, kind: ResourceKind) -> Option<impl Iterator<Item = &str>> {
        let rules = self.tools.0.as_ref().filter(|_| self.role < Role::Editor)?;
        Some(rules.iter().filter_map(move |rule| rule.slug_pattern(kind.plural())))
    }

    /// Returns whether it may see a resource.
    pub fn sees_resource(&self, kind: ResourceKind, slug: &str) -> bool {
        self.slug_patterns(kind)
            .is_none_or(|mut patterns| patterns.any(|pattern| matches_pattern(pattern, slug)))
    }

    /// Returns whether it may see every resource of a kind.
    pub fn sees_all(&self, kind: ResourceKind) -> bool {
        self.slug_patterns(kind).is_none_or(|mut patterns| patterns.any(|pattern| pattern == "*"))
    }

    /// Returns the principal of the calls that an agent makes on its behalf: never more than it may do itself, and never
    /// elevated, because nobody has seen what the model calls.
    #[must_use]
    pub fn acting(&self, agent: ActingAgent) -> Self {
        Self { agent: Some(Arc::new(agent)), elevated: false, ..self.clone() }
    }

    /// Returns a principal that runs tools that need approval without it.
    #[must_use]
    pub fn elevated(mut self, elevated: bool) -> Self {
        self.elevated = elevated;
        self
    }
}

impl From<&TokenRecord> for Principal {
    fn from(token: &TokenRecord) -> Self {
        Self {
            // A nil id marks a token that is not stored.
            token: Some(token.id).filter(|id| !id.0.is_nil()),
            platform: token.platform,
            tools: token.tools.clone(),
            rate_limit: token.rate_limit,
            ..Self::new(token.tenant.clone(), token.name.as_str(), token.role).elevated(token.elevated)
        }
    }
}

/// An agent that calls tools on behalf of a principal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActingAgent {
    /// Its slug.
    pub slug: AgentSlug,
    /// The run that the call belongs to.
    pub run: RunId,
    /// The tools that it lists.
    pub tools: AllowList,
    /// The tools that it excludes from those.
    #[serde(default)]
    pub excluded: Option<AllowList>,
    /// The agents above it, outermost first, so that a circle of agents is found.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ancestors: Vec<AgentSlug>,
    /// The agent whose call started the run: the run has no tool that this agent does not have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Arc<ActingAgent>>,
}

impl ActingAgent {
    fn allows(&self, tool: &Tool) -> bool {
        let lists = |agent: &Self| {
            agent.tools.allows(tool) && !agent.excluded.as_ref().is_some_and(|list| list.allows(tool))
        };
        std::iter::successors(Some(self), |agent| agent.parent.as_deref()).all(lists)
    }
}

/// The tools that a principal may see and call: all of them, or those that match a rule, which is a [`ToolPattern`].
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(try_from = "Option<Vec<String>>", into = "Option<Vec<String>>")]
pub struct AllowList(Option<Arc<[ToolPattern]>>);

/// An invalid allow-list.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AllowListError {
    /// Too many rules.
    #[error("{0} rules; the limit is {MAX_RULES}")]
    TooMany(usize),
    /// A rule that is empty, too long, or contains other characters.
    #[error(
        "invalid rule `{0}`: expected a tool name, `bundle:name`, `bundle:*` or `tag:name`, where `*` stands for any text"
    )]
    Invalid(String),
}

impl AllowList {
    /// Parses rules.
    pub fn new<T: AsRef<str>>(rules: impl IntoIterator<Item = T>) -> Result<Self, AllowListError> {
        let rules = rules.into_iter().map(|rule| rule.as_ref().parse()).collect::<Result<Vec<_>, _>>()?;
        if rules.len() > MAX_RULES {
            return Err(AllowListError::TooMany(rules.len()));
        }
        Ok(Self(Some(rules.into())))
    }

    /// Creates a list of exact names, which may be any number.
    pub fn of_names<T: Into<String>>(names: impl IntoIterator<Item = T>) -> Self {
        Self(Some(names.into_iter().map(ToolPattern::of_name).collect()))
    }

    /// Creates a list that allows nothing.
    pub fn of_none() -> Self {
        Self(Some(Arc::default()))
    }

    /// Returns whether it allows every tool.
    pub fn is_unlimited(&self) -> bool {
        self.0.is_none()
    }

    /// Returns whether it allows a tool.
    pub fn allows(&self, tool: &Tool) -> bool {
        self.0.as_ref().is_none_or(|rules| rules.iter().any(|rule| rule.matches(tool)))
    }

    fn allows_resource(&self, bundle: &str, slug: &str) -> bool {
        self.0.as_ref().is_none_or(|rules| rules.iter().any(|rule| rule.matches_resource(bundle, slug)))
    }

    /// Returns the rules that match a tool, as text.
    pub fn matching(&self, tool: &Tool) -> Vec<String> {
        let rules = self.0.iter().flat_map(|rules| rules.iter());
        rules.filter(|rule| rule.matches(tool)).map(ToolPattern::to_string).collect()
    }

    /// Returns the rules, as text, that match an agent or a retrieval pipeline.
    pub fn matching_resource(&self, bundle: &str, slug: &str) -> Vec<String> {
        let rules = self.0.iter().flat_map(|rules| rules.iter());
        rules.filter(|rule| rule.matches_resource(bundle, slug)).map(ToolPattern::to_string).collect()
    }

    /// Returns a list that allows what one of both allows.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        let (Some(rules), Some(others)) = (&self.0, &other.0) else { return Self(None) };
        let new = others.iter().filter(|other| !rules.contains(other));
        Self(Some(rules.iter().chain(new).cloned().collect()))
    }

    /// Returns a list that allows nothing but what both allow: the rules of each that the other one covers. Two rules that
    /// overlap without one covering the other, such as `get_*` and `*_file`, leave nothing.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let (Some(rules), Some(others)) = (&self.0, &other.0) else {
            return if self.0.is_none() { other.clone() } else { self.clone() };
        };
        let covered = |rules: &[ToolPattern], rule: &ToolPattern| rules.iter().any(|own| own.covers(rule));
        let own = rules.iter().filter(|rule| covered(others, rule));
        let new = others.iter().filter(|rule| covered(rules, rule) && !rules.contains(rule));
        Self(Some(own.chain(new).cloned().collect()))
    }

    /// Returns whether it allows every tool that another list allows.
    pub fn covers(&self, other: &Self) -> bool {
        let Some(rules) = &self.0 else { return true };
        let Some(others) = &other.0 else { return false };
        others.iter().all(|other| rules.iter().any(|rule| rule.covers(other)))
    }

    /// Returns the rules as text, or `None` if every tool is allowed.
    pub fn rules(&self) -> Option<Vec<String>> {
        self.0.as_ref().map(|rules| rules.iter().map(ToolPattern::to_string).collect())
    }
}

impl TryFrom<Option<Vec<String>>> for AllowList {
    type Error = AllowListError;

    fn try_from(rules: Option<Vec<String>>) -> Result<Self, AllowListError> {
        rules.map_or(Ok(Self::default()), Self::new)
    }
}

impl From<AllowList> for Option<Vec<String>> {
    fn from(list: AllowList) -> Self {
        list.rules()
    }
}

impl From<InvalidToolPattern> for AllowListError {
    fn from(InvalidToolPattern(text): InvalidToolPattern) -> Self {
        Self::Invalid(text)
    }
}

/// Matches a text against a pattern in which `*` matches any text. Linear in the text for each `*`.
pub fn matches_pattern(pattern: &str, text: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut text) = text.strip_prefix(first) else { return false };
    let mut parts = rest.split('*').peekable();
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return text.ends_with(part);
        }
        let Some((_, after)) = text.split_once(part) else { return false };
        text = after;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Timestamp;
    use crate::id::{BundleId, ToolId};
    use crate::name::BundleSlug;
    use crate::tool::{Source, Status, Usage};

    #[test]
    fn patterns() {
        for (pattern, text, expected) in [
            ("fetch", "fetch", true),
            ("fetch", "fetch_all", false),
            ("*", "", true),
            ("fetch*", "fetch_all", true),
            ("*_all", "fetch_all", true),
            ("f*l", "fetch_all", true),
            ("f*e*a*l", "fetch_all", true),
            ("a*a", "a", false),
            ("*aa*aa*", "aaa", false),
            ("f**l", "fetch_all", true),
            ("F*", "fetch", false),
        ] {
            assert_eq!(matches_pattern(pattern, text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn a_list_covers_the_lists_that_allow_no_more() {
        let list = |rules: &[&str]| AllowList::new(rules).unwrap();
        for (wide, narrow, expected) in [
            (list(&["fetch*"]), list(&["fetch", "web:fetch_all", "fetch_*"]), true),
            (list(&["web:*", "tag:safe"]), list(&["web:fetch", "tag:safe"]), true),
            (list(&["*"]), list(&["tag:safe", "a:b"]), true),
            (list(&["*:*"]), list(&["tag:safe", "b"]), true),
            (list(&["web:*"]), list(&["fetch"]), false),
            (list(&["fetch_*"]), list(&["fetch*"]), false),
            (list(&["f*x*l"]), list(&["f*l"]), false),
            (list(&["fetch"]), list(&["tag:safe"]), false),
            (list(&["tag:safe"]), list(&["tag:other"]), false),
            (list(&["tag:safe*"]), list(&["tag:safest"]), true),
            (list(&["tag:safe"]), list(&["fetch"]), false),
            (list(&["fetch"]), list(&[]), true),
            (list(&[]), list(&["fetch"]), false),
        ] {
            assert_eq!(wide.covers(&narrow), expected, "{:?} {:?}", wide.rules(), narrow.rules());
            assert!(AllowList::default().covers(&narrow) && !narrow.covers(&AllowList::default()));
        }
    }

    #[test]
    fn two_lists_allow_together_what_both_allow() {
        let list = |rules: &[&str]| AllowList::new(rules).unwrap();
        for (one, other, both, either) in [
            (
                list(&["web:*"]),
                list(&["web:fetch", "mail"]),
                list(&["web:fetch"]),
                list(&["web:*", "web:fetch", "mail"]),
            ),
            (list(&["a", "b"]), list(&["b", "c"]), list(&["b"]), list(&["a", "b", "c"])),
            (list(&["get_*"]), list(&["*_file"]), list(&[]), list(&["get_*", "*_file"])),
            (list(&["a"]), AllowList::default(), list(&["a"]), AllowList::default()),
            (list(&[]), list(&["a"]), list(&[]), list(&["a"])),
        ] {
            assert_eq!(one.intersection(&other), both, "{:?} {:?}", one.rules(), other.rules());
            assert_eq!(one.union(&other), either, "{:?} {:?}", one.rules(), other.rules());
            assert!(one.covers(&other.intersection(&one)) && other.covers(&one.intersection(&other)));
        }
    }

    #[test]
    fn an_allow_list_includes_the_tools_that_find_tools() {
        let principal = Principal {
            tools: AllowList::new(["web:fetch", "tag:safe"]).unwrap(),
            ..Principal::anonymous(TenantId::default_tenant())
        };
        for (bundle, name, tag, built_in, expected) in [
            ("web", "fetch", "x", false, true),
            ("web", "other", "x", false, false),
            ("web", "other", "safe", false, true),
            ("builtin", "search_tools", "x", true, true),
            ("builtin", "describe_tool", "x", true, true),
            ("builtin", "bash", "x", true, false),
            ("web", "search_tools", "x", false, false),
        ] {
            assert_eq!(principal.allows(&tool(bundle, name, tag, built_in)), expected, "{bundle}:{name}");
        }
    }

    #[test]
    fn an_agent_has_no_more_tools_than_the_agents_above_it() {
        let agent = |tools: &[&str], excluded: &[&str], parent: Option<ActingAgent>| ActingAgent {
            slug: AgentSlug::new("a").unwrap(),
            run: RunId(uuid::Uuid::nil()),
            tools: AllowList::new(tools).unwrap(),
            excluded: (!excluded.is_empty()).then(|| AllowList::new(excluded).unwrap()),
            ancestors: Vec::new(),
            parent: parent.map(Arc::new),
        };
        let root = agent(&["web:*", "mail:send"], &["delete"], None);
        let child = agent(&["*"], &["upload"], Some(root));
        let grandchild = agent(&["web:*", "exec"], &[], Some(child));
        let principal = Principal::anonymous(TenantId::default_tenant()).acting(grandchild);
        let stored = serde_json::to_value(&principal).unwrap();
        let principal: Principal = serde_json::from_value(stored).unwrap();
        for (bundle, name, expected) in [
            ("web", "fetch", true),
            ("web", "upload", false),
            ("web", "delete", false),
            ("builtin", "exec", false),
            ("mail", "send", false),
        ] {
            assert_eq!(principal.allows(&tool(bundle, name, "x", false)), expected, "{bundle}:{name}");
        }
    }

    #[test]
    fn the_type_of_a_tool_is_derived() {
        use crate::lifecycle::LegacyFields;
        use crate::tool::ToolType;
        let with = |implementation: serde_json::Value, built_in: bool, legacy: Option<LegacyFields>| {
            let mut tool = tool("b", "n", "t", built_in);
            let spec = Arc::make_mut(&mut tool.spec);
            spec.implementation = serde_json::from_value(implementation).unwrap();
            tool.lifecycle.legacy = legacy.map(Arc::new);
            tool.tool_type()
        };
        let mcp = serde_json::json!({"type": "mcp", "server": "s", "tool_name": "t"});
        let artifact = serde_json::json!({"type": "artifact", "artifact_id": "a"});
        let http = serde_json::json!({"type": "http", "url": "https://a.example"});
        let keyed = LegacyFields { builtin_key: Some("web_search".into()), ..LegacyFields::default() };
        let system = LegacyFields { is_system: true, ..LegacyFields::default() };
        for (implementation, built_in, legacy, expected) in [
            (&mcp, true, None, ToolType::BuiltIn),
            (&mcp, false, None, ToolType::Mcp),
            (&artifact, false, None, ToolType::Artifact),
            (&http, false, None, ToolType::Custom),
            (&http, false, Some(keyed), ToolType::BuiltIn),
            (&artifact, false, Some(system), ToolType::BuiltIn),
            (&http, false, Some(LegacyFields::default()), ToolType::Custom),
        ] {
            assert_eq!(with(implementation.clone(), built_in, legacy), expected, "{implementation}");
        }
    }

    fn tool(bundle: &str, name: &str, tag: &str, built_in: bool) -> Tool {
        let spec = serde_json::json!({
            "name": name, "version": "1.0.0", "description": "d", "tags": [tag],
            "implementation": {"type": "function", "function": "f"},
        });
        Tool {
            id: ToolId(uuid::Uuid::nil()),
            tenant: TenantId::default_tenant(),
            bundle_id: BundleId(uuid::Uuid::nil()),
            bundle: BundleSlug::new(bundle).unwrap(),
            spec: Arc::new(serde_json::from_value(spec).unwrap()),
            revision: 1,
            published: None,
            status: Status::Draft,
            enabled: true,
            built_in,
            fault: None,
            source: Source::User,
            path: None,
            usage: Usage::default(),
            created_at: Timestamp::UNIX_EPOCH,
            modified_at: Timestamp::UNIX_EPOCH,
            published_at: None,
            lifecycle: crate::lifecycle::Lifecycle::default(),
        }
    }

    #[test]
    fn rules_are_parsed_and_written() {
        let list = AllowList::new(["fetch", "web:*", "github:issues_*", "tag:read-only"]).unwrap();
        let json = serde_json::to_string(&list).unwrap();
        assert_eq!(json, r#"["fetch","web:*","github:issues_*","tag:read-only"]"#);
        assert_eq!(serde_json::from_str::<AllowList>(&json).unwrap(), list);
        assert_eq!(serde_json::from_str::<AllowList>("null").unwrap(), AllowList::default());
        for invalid in ["", ":", "a:", ":b", "tag:", "a b", "a:b:c", &"x".repeat(300)] {
            assert!(AllowList::new([invalid]).is_err(), "{invalid}");
        }
        assert_eq!(
            AllowList::new(["a b"]).unwrap_err().to_string(),
            "invalid rule `a b`: expected a tool name, `bundle:name`, `bundle:*` or `tag:name`, where `*` stands for any text"
        );
    }
}
