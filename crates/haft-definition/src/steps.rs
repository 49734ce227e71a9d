//! The order of the steps of a tool: which steps must have ended before another one starts.

use std::collections::{BTreeSet, HashMap};

use haft_core::implementation::{Condition, Step, Steps};
use haft_core::mapping;
use haft_core::problem::{Problem, excerpt};
use serde_json::Value;

/// The steps that each step waits for: the step at index `i` starts after those at `dependencies[i]`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StepGraph {
    /// The indexes of the steps that must have ended, for each step.
    pub dependencies: Vec<BTreeSet<usize>>,
}

impl StepGraph {
    /// Follows the references and `after` of every step. Unknown steps, duplicate ids and cycles are errors.
    pub fn new(steps: &Steps) -> Result<Self, Vec<Problem>> {
        let (mut problems, mut indexes) = (Vec::new(), HashMap::new());
        for (index, step) in steps.steps.iter().enumerate() {
            if indexes.insert(step.id.as_str(), index).is_some() {
                let message =
                    format!("duplicate step `{}`; every step needs its own id", excerpt(&step.id, 60));
                problems.push(Problem::new(field(index, "id"), "duplicate", message));
            }
        }
        let mut dependencies = Vec::with_capacity(steps.steps.len());
        for (index, step) in steps.steps.iter().enumerate() {
            let mut own = BTreeSet::new();
            for (name, key) in names(step) {
                match indexes.get(name.as_str()) {
                    Some(&other) => drop(own.insert(other)),
                    None => problems.push(unknown_step(&name, field(index, key), steps)),
                }
            }
            dependencies.push(own);
        }
        for name in steps.output.iter().flat_map(referenced) {
            if !indexes.contains_key(name.as_str()) {
                problems.push(unknown_step(&name, "implementation.output".to_owned(), steps));
            }
        }
        let graph = Self { dependencies };
        if problems.is_empty()
            && let Some(cycle) = graph.cycle()
        {
            problems.push(cycle_problem(&cycle, steps));
        }
        if problems.is_empty() { Ok(graph) } else { Err(problems) }
    }

    /// Returns the steps of a cycle, in order.
    fn cycle(&self) -> Option<Vec<usize>> {
        let mut waiting: Vec<BTreeSet<usize>> = self.dependencies.clone();
        let mut done = vec![false; waiting.len()];
        while let Some(next) =
            (0..waiting.len()).find(|&i| !is_set(&done, i) && waiting.get(i).is_some_and(BTreeSet::is_empty))
        {
            if let Some(flag) = done.get_mut(next) {
                *flag = true;
            }
            for others in &mut waiting {
                others.remove(&next);
            }
        }
        // Every step that is left waits for another one that is left: following them leads into a cycle.
        let mut at = (0..waiting.len()).find(|&i| !is_set(&done, i))?;
        let mut path = Vec::new();
        loop {
            if let Some(start) = path.iter().position(|&seen| seen == at) {
                return Some(path.split_off(start));
            }
            path.push(at);
            at = *waiting.get(at)?.first()?;
        }
    }
}

fn is_set(flags: &[bool], index: usize) -> bool {
    flags.get(index).copied().unwrap_or_default()
}

/// Returns the path of a field of a step.
pub(crate) fn field(index: usize, key: &str) -> String {
    format!("implementation.steps[{index}].{key}")
}

/// Returns the steps that a step refers to, each with the field.
fn names(step: &Step) -> Vec<(String, &'static str)> {
    let mut names: Vec<(String, &'static str)> =
        step.after.iter().map(|name| (name.clone(), "after")).collect();
    let mut add = |value: &Value, key| names.extend(referenced(value).into_iter().map(|name| (name, key)));
    for value in step.args.values() {
        add(value, "args");
    }
    for (value, key) in [(&step.for_each, "for_each"), (&step.fallback, "fallback")] {
        if let Some(value) = value {
            add(value, key);
        }
    }
    if let Some(condition) = &step.when {
        for value in &operands(condition) {
            add(value, "when");
        }
    }
    names
}

/// Returns the mappings of a condition.
pub(crate) fn operands(condition: &Condition) -> Vec<Value> {
    let mut values = Vec::new();
    condition.operands(&mut |value| values.push(value.clone()));
    values
}

/// Returns the ids of the steps that a mapping refers to.
fn referenced(mapping: &Value) -> Vec<String> {
    let mut names = Vec::new();
    mapping::STEPS.visit(mapping, &mut |reference, _| {
        if reference.name == "steps"
            && let Some(id) = reference.path.first()
        {
            names.push((*id).to_owned());
        }
    });
    names
}

fn unknown_step(name: &str, field: String, steps: &Steps) -> Problem {
    let ids: Vec<&str> = steps.steps.iter().map(|step| step.id.as_str()).collect();
    Problem::new(field, "unknown_step", crate::dialect::unknown("step", name, &ids))
}

fn cycle_problem(cycle: &[usize], steps: &Steps) -> Problem {
    let id = |index: &usize| steps.steps.get(*index).map(|step| excerpt(&step.id, 60)).unwrap_or_default();
    let first = cycle.first().copied().unwrap_or_default();
    let message = if cycle.len() == 1 {
        format!("step `{}` refers to itself; remove the reference", id(&first))
    } else {
        let path: Vec<String> =
            cycle.iter().chain(cycle.first()).map(|index| format!("`{}`", id(index))).collect();
        format!("the steps wait for each other: {}; remove one of the references", path.join(" → "))
    };
    Problem::new(format!("implementation.steps[{first}]"), "cycle", message)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn graph(steps: Value) -> Result<Vec<Vec<usize>>, String> {
        let steps: Steps = serde_json::from_value(steps).unwrap();
        match StepGraph::new(&steps) {
            Ok(graph) => Ok(graph.dependencies.iter().map(|all| all.iter().copied().collect()).collect()),
            Err(problems) => Err(haft_core::problem::join(&problems)),
        }
    }

    #[test]
    fn references_and_after_order_the_steps() {
        let steps = json!({"steps": [
            {"id": "a", "tool": "t"},
            {"id": "b", "tool": "t", "args": {"x": ["$steps.a.value and $steps.c.ok"]}},
            {"id": "c", "tool": "t", "after": ["a"]},
            {"id": "d", "tool": "t", "when": {"all": ["$steps.b.ok", "$steps.c.value == 1"]}},
            {"id": "e", "tool": "t", "for_each": "$steps.d.value", "fallback": "$steps.a.value"},
        ]});
        assert_eq!(graph(steps).unwrap(), [vec![], vec![0, 2], vec![0], vec![1, 2], vec![0, 3]]);
    }

    #[test]
    fn mistakes_are_named() {
        for (steps, expected) in [
            (
                json!([{"id": "a", "tool": "t", "after": ["a"]}]),
                "`implementation.steps[0]`: step `a` refers to itself; remove the reference",
            ),
            (
                json!([
                    {"id": "x", "tool": "t"},
                    {"id": "a", "tool": "t", "args": {"v": "$steps.c.value"}},
                    {"id": "b", "tool": "t", "args": {"v": "$steps.a.value"}},
                    {"id": "c", "tool": "t", "after": ["b", "x"]},
                ]),
                "`implementation.steps[1]`: the steps wait for each other: `a` → `c` → `b` → `a`; remove one of the references",
            ),
            (
                json!([{"id": "fetch", "tool": "t"}, {"id": "b", "tool": "t", "args": {"v": "$steps.fech.value"}}]),
                "`implementation.steps[1].args`: unknown step `fech`; did you mean `fetch`?",
            ),
            (
                json!([{"id": "a", "tool": "t"}, {"id": "a", "tool": "t"}]),
                "`implementation.steps[1].id`: duplicate step `a`; every step needs its own id",
            ),
        ] {
            assert_eq!(graph(json!({ "steps": steps })).unwrap_err(), expected);
        }
    }
}
