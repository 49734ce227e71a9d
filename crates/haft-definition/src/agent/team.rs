//! Texts with several agents: `agents: {reporter: {…}}`, `agents: […]` and teams with `members`.

use haft_core::problem::{Problem, excerpt};
use serde_json::{Map, Value};

use super::document::{ReadAgent, one};
use super::fields::Naming;
use crate::dialect::{Fields, Report, describe, item_path, join};

/// What the agents of a team have in common, unless they say otherwise.
#[derive(Debug, Clone, Default)]
pub(super) struct Shared {
    pub(super) model: Option<Value>,
    pub(super) fallback: Option<Value>,
    pub(super) supervision: Option<Value>,
    pub(super) budget: Option<Value>,
    pub(super) variables: Option<Value>,
}

/// The keys of the agents of a team.
const LISTS: [&str; 2] = ["agents", "members"];

/// Returns whether a document has several agents.
pub(super) fn is_team(map: &Map<String, Value>) -> bool {
    LISTS.iter().any(|key| map.get(*key).is_some_and(|value| value.is_object() || value.is_array()))
}

pub(super) fn read(map: Map<String, Value>) -> Result<Vec<ReadAgent>, Vec<Problem>> {
    let report = Report::default();
    let mut fields = Fields::new("", map, &report);
    // The name of the team itself is for its readers.
    fields.ignore(&["name", "description", "version", "kind"]);
    let shared = Shared {
        model: fields.value("model"),
        fallback: fields.value("fallback"),
        supervision: fields.value("supervision"),
        budget: fields.value("budget"),
        variables: fields.value("variables"),
    };
    let lists = LISTS.map(|key| (key, fields.value(key)));
    drop(fields);
    let (errors, warnings) = report.into_parts();
    let (mut agents, mut problems) = (Vec::new(), errors);
    for (key, list) in lists {
        let found = match list {
            Some(Value::Object(map)) => self::map(map, key, &shared),
            Some(Value::Array(items)) => self::list(items, key, &shared),
            Some(other) => {
                let message = format!("expected a map or a list of agents, found {}", describe(&other));
                Err(vec![Problem::new(key, "wrong_type", message)])
            }
            None => Ok(Vec::new()),
        };
        match found {
            Ok(found) => agents.extend(found),
            Err(found) => problems.extend(found),
        }
    }
    if problems.is_empty() && agents.is_empty() {
        problems.push(Problem::new("agents", "empty", "the team has no agents"));
    }
    if let Some(first) = agents.first_mut() {
        first.warnings.splice(0..0, warnings);
    }
    if problems.is_empty() { Ok(agents) } else { Err(problems) }
}

/// Reads agents by their slug.
fn map(map: Map<String, Value>, path: &str, shared: &Shared) -> Result<Vec<ReadAgent>, Vec<Problem>> {
    let entries = map.into_iter().map(|(key, value)| {
        let path = join(path, &excerpt(&key, 60));
        (path, Some(key), value)
    });
    all(entries, shared)
}

/// Reads a list of agents.
pub(super) fn list(items: Vec<Value>, path: &str, shared: &Shared) -> Result<Vec<ReadAgent>, Vec<Problem>> {
    let entries = items.into_iter().enumerate().map(|(index, value)| (item_path(path, index), None, value));
    all(entries, shared)
}

fn all(
    entries: impl Iterator<Item = (String, Option<String>, Value)>,
    shared: &Shared,
) -> Result<Vec<ReadAgent>, Vec<Problem>> {
    let (mut agents, mut problems) = (Vec::new(), Vec::new());
    for (path, key, value) in entries {
        let Value::Object(map) = value else {
            let message = format!("expected a map, found {}", describe(&value));
            problems.push(Problem::new(path, "wrong_type", message));
            continue;
        };
        match one(&path, map, &Naming { key: key.as_deref(), stem: None }, shared) {
            Ok(agent) => agents.push(agent),
            Err(found) => problems.extend(found),
        }
    }
    if problems.is_empty() { Ok(agents) } else { Err(problems) }
}
