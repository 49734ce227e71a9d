//! The compiled rules of a tenant or of the platform.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use haft_core::name::TenantId;
use haft_core::policy::{Approvers, Effect, Expectation, PolicyRule, PolicyRules};
use haft_core::problem::Problem;
use serde_json::Value;

use super::attributes::CallAttributes;
use super::condition::{self, Condition};
use super::evaluator::{Patterns, VARIABLES};
use super::matcher::Matcher;
use super::views::{View, Views};

/// How long the examples of a rule set may run.
const MAX_EXAMPLE_TIME: Duration = Duration::from_secs(5);

/// A compiled rule.
pub(super) struct CompiledRule {
    /// The name, with the prefix `platform:` if it is a rule of the platform.
    pub(super) label: Arc<str>,
    pub(super) effect: Effect,
    pub(super) reason: Option<Arc<str>>,
    pub(super) approvers: Option<Approvers>,
    matcher: Matcher,
    condition: Option<Condition>,
}

impl CompiledRule {
    /// Returns whether the rule applies to a call. A condition that fails applies, except that of an allow rule.
    pub(super) fn applies(&self, views: &Views<'_>) -> bool {
        views.of(self.effect).any(|view| self.applies_to(view))
    }

    /// Returns whether the rule applies whatever the arguments are.
    pub(super) fn applies_always(&self, views: &Views<'_>) -> bool {
        self.condition.as_ref().is_none_or(|condition| !condition.uses_args) && self.applies(views)
    }

    fn applies_to(&self, view: &View<'_>) -> bool {
        if !self.matcher.matches(&view.attributes) {
            return false;
        }
        let Some(condition) = &self.condition else { return true };
        view.evaluator.evaluate(condition).unwrap_or_else(|_| self.applies_on_failure())
    }

    /// Returns whether the rule applies to a call, and why in words.
    pub(super) fn explain(&self, views: &Views<'_>) -> (bool, String) {
        let mut views = views.of(self.effect);
        let Some(direct) = views.next().map(|view| self.explain_view(view)) else {
            return (false, String::new());
        };
        if direct.0 {
            return direct;
        }
        let mut above = views.map(|view| {
            let (matched, why) = self.explain_view(view);
            (matched, format!("{why}, for the surface `{}` above the call", view.attributes.surface))
        });
        above.find(|(matched, _)| *matched).unwrap_or(direct)
    }

    fn explain_view(&self, view: &View<'_>) -> (bool, String) {
        if let Some(mismatch) = self.matcher.mismatch(&view.attributes) {
            return (false, mismatch.to_string());
        }
        match self.condition.as_ref().map(|condition| view.evaluator.evaluate(condition)) {
            None => (true, "`match` matches".to_owned()),
            Some(Ok(true)) => (true, "`match` matches and `when` is true".to_owned()),
            Some(Ok(false)) => (false, "`when` is false".to_owned()),
            Some(Err(failure)) => {
                let applies = self.applies_on_failure();
                let counts = if applies { "a match" } else { "no match" };
                let effect = self.effect.as_str();
                (applies, format!("`when` failed: {failure}; for effect `{effect}` this counts as {counts}"))
            }
        }
    }

    /// A condition that fails must not let a call pass.
    fn applies_on_failure(&self) -> bool {
        self.effect != Effect::Allow
    }
}

/// Compiled rules, indexed by tool.
#[derive(Default)]
pub(super) struct RuleSet {
    rules: Vec<CompiledRule>,
    /// The rules that can match only tools of this name, in order.
    by_tool: HashMap<String, Vec<usize>>,
    /// The other rules, in order.
    general: Vec<usize>,
}

impl RuleSet {
    /// Compiles rules and reports every problem.
    pub(super) fn compile(
        rules: &PolicyRules,
        prefix: &str,
        patterns: &mut Patterns,
        problems: &mut Vec<Problem>,
    ) -> Self {
        let sources: Vec<&str> = rules.rules.iter().filter_map(|rule| rule.when.as_deref()).collect();
        let mut conditions = condition::compile(&sources, &VARIABLES, patterns).into_iter();
        let mut set = Self::default();
        for (index, rule) in rules.rules.iter().enumerate() {
            let condition = rule.when.as_ref().and_then(|_| conditions.next()).transpose();
            let condition = condition.unwrap_or_else(|error| {
                let message = format!("rule `{}`: {error}", rule.name);
                problems.push(Problem::new(format!("rules[{index}].when"), "invalid_condition", message));
                None
            });
            set.add(rule, prefix, condition);
        }
        set
    }

    fn add(&mut self, rule: &PolicyRule, prefix: &str, condition: Option<Condition>) {
        let matcher = Matcher::new(&rule.matching, rule.effect);
        let index = self.rules.len();
        match matcher.tool_names() {
            Some(names) => {
                for name in names {
                    let indices = self.by_tool.entry(name.to_owned()).or_default();
                    if indices.last() != Some(&index) {
                        indices.push(index);
                    }
                }
            }
            None => self.general.push(index),
        }
        self.rules.push(CompiledRule {
            label: format!("{prefix}{}", rule.name).into(),
            effect: rule.effect,
            reason: rule.reason.as_deref().map(Arc::from),
            approvers: rule.approvers.clone(),
            matcher,
            condition,
        });
    }

    /// Checks the examples of the rules that this was compiled from.
    pub(super) fn check_examples(
        &self,
        rules: &PolicyRules,
        tenant: &TenantId,
        patterns: &Arc<Patterns>,
        problems: &mut Vec<Problem>,
    ) {
        let deadline = Instant::now() + MAX_EXAMPLE_TIME;
        for (index, (rule, compiled)) in rules.rules.iter().zip(&self.rules).enumerate() {
            for (number, example) in rule.examples.iter().enumerate() {
                let field = format!("rules[{index}].examples[{number}]");
                if Instant::now() > deadline {
                    let message = format!("the examples take longer than {} s", MAX_EXAMPLE_TIME.as_secs());
                    problems.push(Problem::new(field, "too_large", message));
                    return;
                }
                let args = Value::Object(example.args.clone());
                let attributes = CallAttributes::of_example(example, tenant, &args);
                let (applies, why) = compiled.explain(&Views::new(attributes, &[], patterns));
                let found = if applies { Expectation::Match } else { Expectation::NoMatch };
                if found != example.expect {
                    let message = format!(
                        "rule `{}`, example {}: expected `{}`, got `{}`: {why}",
                        rule.name,
                        number + 1,
                        example.expect.as_str(),
                        found.as_str()
                    );
                    problems.push(Problem::new(field, "failed_example", message));
                }
            }
        }
    }

    /// Returns whether there are no rules.
    pub(super) fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Returns all rules.
    pub(super) fn rules(&self) -> &[CompiledRule] {
        &self.rules
    }

    /// Returns the rules that can match a tool, in order.
    pub(super) fn candidates(&self, tool: &str) -> impl Iterator<Item = &CompiledRule> {
        let mut named = self.by_tool.get(tool).map_or(&[][..], Vec::as_slice).iter().peekable();
        let mut general = self.general.iter().peekable();
        std::iter::from_fn(move || {
            let next = match (named.peek(), general.peek()) {
                (Some(a), Some(b)) if a < b => named.next(),
                (Some(_), None) => named.next(),
                _ => general.next(),
            };
            self.rules.get(*next?)
        })
    }
}
