//! Whether an agent has the tools that it lists. Only the catalog in memory is read: lists show many agents.

use std::sync::Arc;

use haft_core::agent::Agent;
use haft_core::principal::AllowList;
use haft_runtime::registry::{Entry, Snapshot};

use super::check::{Rules, Strictness, state};
use crate::context::Context;

/// How many reasons are shown.
const MAX_REASONS: usize = 5;

/// Returns why an agent is not ready: its file is invalid, or a rule of its tools selects no tool that can run, or it has no
/// model.
pub fn fault(app: &Context, snapshot: &Snapshot, agent: &Agent) -> Option<String> {
    if let Some(error) = &agent.error {
        return Some(error.clone());
    }
    let definition =
        agent.runnable(app.settings().mode).map_or(&agent.definition, |(_, definition)| definition);
    let strictness = Strictness::of_saving(app, definition);
    let excluded = match AllowList::new(&definition.exclude_tools) {
        Ok(excluded) => excluded,
        Err(error) => return Some(format!("`exclude_tools`: {error}")),
    };
    let rules = Rules { snapshot, tenant: &agent.tenant, strictness, excluded: &excluded };
    let tools = definition.tools.iter().filter_map(|rule| missing(&rules, rule));
    let mut reasons: Vec<String> = app.models().missing(&definition.model).into_iter().chain(tools).collect();
    let more = reasons.len().saturating_sub(MAX_REASONS);
    reasons.truncate(MAX_REASONS);
    if more > 0 {
        reasons.push(format!("{more} more"));
    }
    (!reasons.is_empty()).then(|| reasons.join("; "))
}

/// Returns why a rule selects no tool that can run. It is enough that one can: a bundle may have drafts.
fn missing(rules: &Rules<'_>, rule: &str) -> Option<String> {
    let list = match AllowList::new([rule]) {
        Ok(list) => list,
        Err(error) => return Some(error.to_string()),
    };
    let (mut is_matched, mut reason) = (false, None);
    for entry in candidates(rules, rule).filter(|entry| list.allows(&entry.tool)) {
        is_matched = true;
        if rules.excluded.allows(&entry.tool) {
            continue;
        }
        match state(rules, entry) {
            Ok(()) => return None,
            Err(why) if reason.is_none() => {
                reason = Some(format!("`{}:{}` {why}", entry.tool.bundle, entry.tool.spec.name));
            }
            Err(_) => {}
        }
    }
    if is_matched { reason } else { Some(format!("no tool matches `{rule}`")) }
}

/// Returns the tools that a rule may select: those with its name, or all if it is a pattern or a tag.
fn candidates<'a>(rules: &'a Rules<'_>, rule: &'a str) -> Box<dyn Iterator<Item = &'a Arc<Entry>> + 'a> {
    let (bundle, name) = rule.split_once(':').unwrap_or(("", rule));
    if bundle == "tag" || name.contains('*') {
        Box::new(rules.snapshot.tools(rules.tenant))
    } else {
        Box::new(rules.snapshot.with_name(rules.tenant, name))
    }
}
