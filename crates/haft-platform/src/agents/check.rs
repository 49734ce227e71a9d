//! Checks the tools and the model of an agent when it is saved or published.

use std::collections::BTreeMap;

use haft_agent::run::missing_variables;
use haft_core::agent::AgentDefinition;
use haft_core::name::TenantId;
use haft_core::outcome::ErrorCode;
use haft_core::principal::AllowList;
use haft_core::problem::{Problem, excerpt, join, nearest};
use haft_core::runnable::{Mode, NotRunnable};
use haft_runtime::registry::{Entry, Snapshot};
use serde_json::json;

use crate::context::Context;
use crate::error::ServiceError;

/// How many variables without a value are named.
const MAX_VARIABLES: usize = 20;

/// What is required of the tools of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strictness {
    /// Every rule matches a tool.
    Draft,
    /// Every tool that a rule matches is published and can run.
    Published,
}

impl Strictness {
    /// Returns what saving an agent requires.
    pub fn of_saving(app: &Context, definition: &AgentDefinition) -> Self {
        let must_be_published = definition.require_published || app.settings().mode == Mode::Production;
        if must_be_published { Self::Published } else { Self::Draft }
    }
}

/// The result of a check.
#[derive(Debug, Default)]
pub struct AgentCheck {
    /// The reason.
    pub errors: Vec<Problem>,
    /// What may be wrong.
    pub warnings: Vec<Problem>,
    /// The rules that match no tool.
    pub missing: Vec<String>,
}

/// Checks an agent against the tools of a tenant.
pub fn check(
    app: &Context,
    tenant: &TenantId,
    definition: &AgentDefinition,
    strictness: Strictness,
) -> AgentCheck {
    let mut found = AgentCheck::default();
    let snapshot = app.registry().snapshot();
    let excluded = match AllowList::new(&definition.exclude_tools) {
        Ok(excluded) => excluded,
        Err(error) => {
            found.errors.push(Problem::new("exclude_tools", "invalid_rule", error.to_string()));
            return found;
        }
    };
    for (index, rule) in definition.tools.iter().enumerate() {
        let field = format!("tools[{index}]");
        match AllowList::new([rule]) {
            Ok(list) => check_rule(
                &Rules { snapshot: &snapshot, tenant, strictness, excluded: &excluded },
                &Rule { field, text: rule, list },
                &mut found,
            ),
            Err(error) => found.errors.push(Problem::new(field, "invalid_rule", error.to_string())),
        }
    }
    for (index, rule) in definition.exclude_tools.iter().enumerate() {
        let is_used = AllowList::new([rule])
            .is_ok_and(|list| snapshot.tools(tenant).any(|entry| list.allows(&entry.tool)));
        if !is_used {
            let message = format!("no tool matches `{rule}`, so nothing is excluded");
            found.warnings.push(Problem::new(format!("exclude_tools[{index}]"), "unknown_tool", message));
        }
    }
    check_instructions(definition, &mut found);
    let models = [("model", Some(&definition.model)), ("fallback", definition.fallback.as_ref())];
    for (field, model) in models {
        if let Some(Err(error)) = model.map(|model| app.models().check(model)) {
            found.errors.push(Problem::new(field, "invalid_model", error.message));
        }
    }
    found
}

/// Finds variables that every run must set. Instructions that cannot be read would fail every run.
fn check_instructions(definition: &AgentDefinition, found: &mut AgentCheck) {
    let field = "instructions";
    let names = match missing_variables(definition) {
        Ok(names) => names,
        Err(error) => return found.errors.push(error.to_problem(field)),
    };
    found.warnings.extend(names.iter().take(MAX_VARIABLES).map(|name| {
        let name = excerpt(name, 64);
        let message = format!(
            "`instructions` uses `{{{{{name}}}}}`, which has no default in `variables`: every run must set it"
        );
        Problem::new(field, "missing_variable", message)
    }));
}

/// Rejects an agent whose check has errors; returns the warnings.
pub fn require_valid(check: AgentCheck) -> Result<Vec<Problem>, ServiceError> {
    if check.errors.is_empty() {
        return Ok(check.warnings);
    }
    Err(ServiceError::invalid_definition(&check.errors))
}

/// Rejects the publication of an agent whose check has errors.
pub fn require_publishable(slug: &str, check: &AgentCheck) -> Result<(), ServiceError> {
    if check.errors.is_empty() {
        return Ok(());
    }
    let message = format!("cannot publish `{slug}`: {}", join(&check.errors));
    Err(ServiceError::new(ErrorCode::NotReady, message).with_details(json!({"problems": check.errors})))
}

/// What the rules of an agent are checked against.
pub(super) struct Rules<'a> {
    pub(super) snapshot: &'a Snapshot,
    pub(super) tenant: &'a TenantId,
    pub(super) strictness: Strictness,
    pub(super) excluded: &'a AllowList,
}

struct Rule<'a> {
    field: String,
    text: &'a str,
    list: AllowList,
}

fn check_rule(rules: &Rules<'_>, rule: &Rule<'_>, found: &mut AgentCheck) {
    let matching: Vec<_> =
        rules.snapshot.tools(rules.tenant).filter(|entry| rule.list.allows(&entry.tool)).collect();
    if matching.is_empty() {
        let names = rules.snapshot.tools(rules.tenant).map(|entry| entry.tool.spec.name.as_str());
        let bare = rule.text.rsplit_once(':').map_or(rule.text, |(_, name)| name);
        let hint = nearest(bare, names).map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
        let message = format!("no tool matches `{}`{hint}", rule.text);
        found.errors.push(Problem::new(&rule.field, "unknown_tool", message));
        found.missing.push(rule.text.to_owned());
        return;
    }
    // Of several versions of a tool, one has to run.
    let mut tools: BTreeMap<(&str, &str), Result<(), String>> = BTreeMap::new();
    for entry in matching.into_iter().filter(|entry| !rules.excluded.allows(&entry.tool)) {
        let key = (entry.tool.bundle.as_str(), entry.tool.spec.name.as_str());
        let state = state(rules, entry);
        let best = tools.entry(key).or_insert_with(|| state.clone());
        if state.is_ok() {
            *best = state;
        }
    }
    let problems = tools.into_iter().filter_map(|((bundle, name), state)| {
        let message = format!("`{bundle}:{name}` {}", state.err()?);
        Some(Problem::new(&rule.field, "tool_not_runnable", message))
    });
    match rules.strictness {
        Strictness::Published => found.errors.extend(problems),
        Strictness::Draft => found.warnings.extend(problems),
    }
}

/// Returns why a tool cannot run.
pub(super) fn state(rules: &Rules<'_>, entry: &Entry) -> Result<(), String> {
    let mode = match rules.strictness {
        Strictness::Published => Mode::Production,
        Strictness::Draft => Mode::Debug,
    };
    entry.runnable(rules.snapshot.is_bundle_enabled(entry), mode).map_err(|reason| match reason {
        NotRunnable::BundleDisabled => "is disabled: its bundle is disabled".to_owned(),
        NotRunnable::ToolDisabled | NotRunnable::StatusDisabled => "is disabled".to_owned(),
        NotRunnable::NotReady => {
            format!(
                "is not ready: {}",
                entry.fault().unwrap_or_else(|| "its definition is invalid".to_owned())
            )
        }
        NotRunnable::PolicyDenied => "cannot run: its policy is `deny`".to_owned(),
        NotRunnable::NotPublished => "is not published".to_owned(),
        NotRunnable::Removed => "was removed".to_owned(),
    })
}
