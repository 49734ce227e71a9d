//! Decides what the rules say about a call.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use haft_core::name::{AgentSlug, TenantId};
use haft_core::policy::{Approvers, Decision, Effect, PLATFORM_RULE, PolicyRules};
use haft_core::principal::Principal;
use haft_core::problem::{Problem, join};
use serde_json::Value;

use super::attributes::{CallAttributes, Subject};
use super::evaluator::Patterns;
use super::rules::{CompiledRule, RuleSet};
use super::views::Views;

/// A call about which the rules are asked.
#[derive(Debug, Clone, Copy)]
pub struct PolicyRequest<'a> {
    /// Who calls.
    pub principal: &'a Principal,
    /// What is called.
    pub subject: Subject<'a>,
    /// The surface: `rest`, `mcp`, `library`, …
    pub surface: &'a str,
    /// The agent that makes the call.
    pub agent: Option<&'a str>,
    /// The arguments.
    pub args: &'a Value,
    /// On whose behalf the call is made.
    pub above: CallAncestors<'a>,
}

/// What is above a call: rules that deny or ask for approval hold if they name any of it.
#[derive(Debug, Clone, Copy, Default)]
pub struct CallAncestors<'a> {
    /// The surfaces, that of the root first.
    pub surfaces: &'a [Cow<'static, str>],
    /// The agents, outermost first.
    pub agents: &'a [AgentSlug],
}

impl<'a> PolicyRequest<'a> {
    fn attributes(&self) -> CallAttributes<'a> {
        CallAttributes {
            agent: self.agent,
            agents_above: self.above.agents,
            args: Some(self.args),
            ..CallAttributes::new(self.principal, self.subject, self.surface)
        }
    }
}

/// The compiled rules of the platform and of every tenant.
#[derive(Default)]
pub struct Policy {
    platform: RuleSet,
    tenants: HashMap<TenantId, RuleSet>,
    patterns: Arc<Patterns>,
}

/// Rules that do not compile or fail their examples; nothing of them is used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid policy: {}", join(problems))]
pub struct PolicyError {
    /// Every problem, with its field.
    pub problems: Vec<Problem>,
}

/// What the rules say about a call, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// The decision.
    pub decision: Decision,
    /// Every rule that was considered, those of the platform first.
    pub considered: Vec<Considered>,
}

/// A rule that was considered for a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Considered {
    /// The name of the rule.
    pub rule: Arc<str>,
    /// Its effect.
    pub effect: Effect,
    /// Whether it applies to the call.
    pub matched: bool,
    /// Why it applies or not.
    pub why: String,
}

impl Policy {
    /// Compiles the rules of the platform and of the tenants, and checks their examples. This can take seconds: run it
    /// on a thread that may block.
    pub fn compile(platform: &PolicyRules, tenants: &[(TenantId, PolicyRules)]) -> Result<Self, PolicyError> {
        let (mut patterns, mut problems) = (Patterns::new(), Vec::new());
        let platform_set = RuleSet::compile(platform, PLATFORM_RULE, &mut patterns, &mut problems);
        let mut sets = Vec::with_capacity(tenants.len());
        for (tenant, rules) in tenants.iter().filter(|(_, rules)| !rules.rules.is_empty()) {
            let known = problems.len();
            let set = RuleSet::compile(rules, "", &mut patterns, &mut problems);
            name_tenant(tenant, tenants, problems.iter_mut().skip(known));
            sets.push((tenant, rules, set));
        }
        let patterns = Arc::new(patterns);
        if problems.is_empty() {
            let default = TenantId::default_tenant();
            platform_set.check_examples(platform, &default, &patterns, &mut problems);
            for (tenant, rules, set) in &sets {
                let known = problems.len();
                set.check_examples(rules, tenant, &patterns, &mut problems);
                name_tenant(tenant, tenants, problems.iter_mut().skip(known));
            }
        }
        if !problems.is_empty() {
            return Err(PolicyError { problems });
        }
        let tenants = sets.into_iter().map(|(tenant, _, set)| (tenant.clone(), set)).collect();
        Ok(Self { platform: platform_set, tenants, patterns })
    }

    /// Returns whether there are no rules at all.
    pub fn is_empty(&self) -> bool {
        self.platform.is_empty() && self.tenants.is_empty()
    }

    /// Returns what happens to a call: deny wins over approve, approve over allow. Without a rule that applies, the call
    /// is allowed without a rule.
    pub fn decide(&self, request: &PolicyRequest<'_>) -> Decision {
        let Some(sets) = self.sets(&request.principal.tenant) else { return Decision::no_match() };
        let views = Views::new(request.attributes(), request.above.surfaces, &self.patterns);
        let mut strongest: Option<&CompiledRule> = None;
        for rule in sets.iter().flat_map(|set| set.candidates(views.attributes().tool)) {
            // Among equals, the first one decides.
            let is_stronger = strongest.is_none_or(|found| rule.effect > found.effect);
            if is_stronger && rule.applies(&views) {
                strongest = Some(rule);
                if rule.effect == Effect::Deny {
                    break;
                }
            }
        }
        strongest.map_or_else(Decision::no_match, decision)
    }

    /// Returns the denial of what a principal may not call whatever the arguments are. For lists, and for callers
    /// who must not learn what the arguments are.
    pub fn certain_denial<'a>(
        &self,
        principal: &Principal,
        subject: impl Into<Subject<'a>>,
        surface: &str,
        surfaces_above: &[Cow<'static, str>],
    ) -> Option<Decision> {
        let sets = self.sets(&principal.tenant)?;
        let attributes = CallAttributes::new(principal, subject.into(), surface);
        let views = Views::new(attributes, surfaces_above, &self.patterns);
        let mut rules = sets.iter().flat_map(|set| set.candidates(views.attributes().tool));
        rules.find(|rule| rule.effect == Effect::Deny && rule.applies_always(&views)).map(decision)
    }

    /// Returns what happens to a call and why each rule applies or not.
    pub fn explain(&self, request: &PolicyRequest<'_>) -> Explanation {
        let views = Views::new(request.attributes(), request.above.surfaces, &self.patterns);
        let sets = self.sets(&request.principal.tenant);
        let mut strongest: Option<&CompiledRule> = None;
        let mut considered = Vec::new();
        for rule in sets.iter().flatten().flat_map(|set| set.rules()) {
            let (matched, why) = rule.explain(&views);
            if matched && strongest.is_none_or(|found| rule.effect > found.effect) {
                strongest = Some(rule);
            }
            considered.push(Considered { rule: Arc::clone(&rule.label), effect: rule.effect, matched, why });
        }
        Explanation { decision: strongest.map_or_else(Decision::no_match, decision), considered }
    }

    /// Returns who may approve the calls that a rule of a decision holds back; `None` if the rule does not say.
    pub fn approvers(&self, tenant: &TenantId, rule: &str) -> Option<&Approvers> {
        let sets = self.sets(tenant)?;
        let mut rules = sets.into_iter().flat_map(RuleSet::rules);
        rules.find(|known| &*known.label == rule)?.approvers.as_ref()
    }

    /// Returns the rule sets of a tenant; `None` if there are no rules for it.
    fn sets(&self, tenant: &TenantId) -> Option<[&RuleSet; 2]> {
        static EMPTY: std::sync::LazyLock<RuleSet> = std::sync::LazyLock::new(RuleSet::default);
        if self.is_empty() {
            return None;
        }
        let own = self.tenants.get(tenant);
        if own.is_none() && self.platform.is_empty() {
            return None;
        }
        Some([&self.platform, own.unwrap_or(&EMPTY)])
    }
}

/// Adds the tenant to the messages of its problems if there are several tenants.
fn name_tenant<'a>(
    tenant: &TenantId,
    all: &[(TenantId, PolicyRules)],
    problems: impl Iterator<Item = &'a mut Problem>,
) {
    if all.len() > 1 {
        problems.for_each(|problem| problem.message = format!("tenant `{tenant}`: {}", problem.message));
    }
}

fn decision(rule: &CompiledRule) -> Decision {
    Decision { effect: rule.effect, rule: Some(Arc::clone(&rule.label)), reason: rule.reason.clone() }
}
