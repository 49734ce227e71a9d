//! Reads a text or a JSON value with one or several agents.

use haft_core::agent::AgentDefinition;
use haft_core::problem::{Problem, excerpt};
use serde_json::{Map, Value};

use super::fields::{Naming, agent};
use super::team;
use crate::dialect::{Bounds, Fields, MAX_TEXT, Report, describe, locate_foreign, read_foreign};

/// The largest number of agents in one text.
pub const MAX_AGENTS: usize = 200;

/// The bounds of a text with agents.
const BOUNDS: Bounds = Bounds { nodes: 50_000, bytes: MAX_TEXT };

/// An agent that was read, with warnings for its author.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadAgent {
    /// The definition.
    pub definition: AgentDefinition,
    /// Warnings, such as unknown fields.
    pub warnings: Vec<Problem>,
}

/// Reads the agents of a YAML or JSON text. `file_stem` is the slug of an agent that has none.
pub fn read(text: &str, file_stem: &str) -> Result<Vec<ReadAgent>, Vec<Problem>> {
    if text.len() > MAX_TEXT {
        let message = format!("the text has {} bytes; the limit is {MAX_TEXT}", text.len());
        return Err(vec![Problem::new("", "too_large", message)]);
    }
    let documents = documents(text);
    let (mut agents, mut errors) = (Vec::new(), Vec::new());
    for (offset, document) in &documents {
        let stem = (documents.len() == 1).then_some(file_stem);
        let found = read_foreign(document, BOUNDS)
            .map_err(|problem| vec![problem])
            .and_then(|value| from_value(value, stem));
        match found {
            Ok(mut found) => {
                for agent in &mut found {
                    locate(document, *offset, &mut agent.warnings);
                }
                agents.extend(found);
            }
            Err(mut problems) => {
                locate(document, *offset, &mut problems);
                errors.extend(problems);
            }
        }
    }
    if errors.is_empty() {
        errors.extend(duplicates(&agents));
    }
    if errors.is_empty() { Ok(agents) } else { Err(errors) }
}

/// Reads one agent from JSON.
pub fn from_json(value: Value) -> Result<ReadAgent, Vec<Problem>> {
    let mut agents = from_value(value, None)?;
    match (agents.pop(), agents.is_empty()) {
        (Some(agent), true) => Ok(agent),
        (None, _) => Err(vec![Problem::new("", "empty", "expected an agent")]),
        (Some(_), false) => {
            let message = format!("expected one agent, found {}; send them one by one", agents.len() + 1);
            Err(vec![Problem::new("", "too_many", message)])
        }
    }
}

fn from_value(value: Value, stem: Option<&str>) -> Result<Vec<ReadAgent>, Vec<Problem>> {
    let map = match value {
        Value::Object(map) => map,
        Value::Array(items) => return team::list(items, "", &team::Shared::default()),
        Value::Null => return Err(vec![Problem::new("", "empty", "the text has no agent")]),
        other => {
            let message =
                format!("expected a map with `slug`, `model` and `instructions`, found {}", describe(&other));
            return Err(vec![Problem::new("", "wrong_type", message)]);
        }
    };
    if team::is_team(&map) {
        return team::read(map);
    }
    one("", map, &Naming { key: None, stem }, &team::Shared::default()).map(|agent| vec![agent])
}

/// Reads one agent; `path` is its path in the document.
pub(super) fn one(
    path: &str,
    map: Map<String, Value>,
    naming: &Naming<'_>,
    shared: &team::Shared,
) -> Result<ReadAgent, Vec<Problem>> {
    let report = Report::default();
    let definition = agent(Fields::new(path, map, &report), naming, shared);
    let (errors, warnings) = report.into_parts();
    match definition {
        Some(definition) if errors.is_empty() => Ok(ReadAgent { definition, warnings }),
        _ if errors.is_empty() => Err(vec![Problem::new(path, "invalid", "the agent cannot be read")]),
        _ => Err(errors),
    }
}

/// Returns the documents of a YAML stream that are not empty, each with the number of lines before it.
fn documents(text: &str) -> Vec<(u32, &str)> {
    let mut found = Vec::new();
    let (mut start, mut at, mut line_number, mut first_line) = (0, 0, 0u32, 0u32);
    for line in text.split_inclusive('\n') {
        at += line.len();
        line_number += 1;
        if line.trim_end() == "---" {
            found.push((first_line, text.get(start..at - line.len()).unwrap_or_default()));
            (start, first_line) = (at, line_number);
        }
    }
    found.push((first_line, text.get(start..).unwrap_or_default()));
    let is_empty =
        |part: &str| part.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#'));
    found.retain(|(_, part)| !is_empty(part));
    if found.is_empty() { vec![(0, text)] } else { found }
}

fn locate(text: &str, offset: u32, problems: &mut [Problem]) {
    locate_foreign(text, problems);
    for line in problems.iter_mut().filter_map(|problem| problem.line.as_mut()) {
        *line = line.saturating_add(offset);
    }
}

fn duplicates(agents: &[ReadAgent]) -> Option<Problem> {
    if agents.len() > MAX_AGENTS {
        let message = format!("the text has {} agents; the limit is {MAX_AGENTS}", agents.len());
        return Some(Problem::new("", "too_many", message));
    }
    let mut slugs = std::collections::HashSet::new();
    let twice = agents.iter().find(|agent| !slugs.insert(&agent.definition.slug))?;
    let message = format!("two agents have the slug `{}`", excerpt(twice.definition.slug.as_str(), 64));
    Some(Problem::new("", "duplicate", message))
}
