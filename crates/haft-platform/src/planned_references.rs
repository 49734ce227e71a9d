//! What tools can refer to after a plan is applied: pipelines, artifacts and agents that are not stored yet, or not for
//! long.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use haft_core::artifact::VersionSelector;
use haft_core::implementation::Implementation;
use haft_core::name::{BundleSlug, ToolName};
use haft_core::problem::{Problem, excerpt};
use haft_core::spec::ToolSpec;
use haft_core::tool::Status;

/// The pipelines, artifacts and agents that a plan stores or deletes, by slug and id.
#[derive(Debug, Default)]
pub struct PlannedReferences {
    /// The status after the plan; `None` if it is deleted.
    pipelines: HashMap<String, Option<Status>>,
    /// The newest version after the plan; `None` if it is deleted.
    artifacts: HashMap<String, Option<u32>>,
    /// Whether it exists after the plan.
    agents: HashMap<String, bool>,
    /// The names of the tools that it stores, with and without their bundles.
    tools: HashSet<String>,
}

/// Whether the target of a tool exists after the plan.
#[derive(Debug, PartialEq)]
pub enum PlannedTarget {
    /// The plan says nothing about it.
    Unplanned,
    /// It does.
    Exists,
    /// It does not.
    Missing(Problem),
}

impl PlannedReferences {
    /// Notes the state of a pipeline after the plan.
    pub fn add_pipeline(&mut self, name: &(impl ToString + ?Sized), status: Option<Status>) {
        self.pipelines.insert(name.to_string(), status);
    }

    /// Notes the newest version of an artifact after the plan.
    pub fn add_artifact(&mut self, name: &(impl ToString + ?Sized), newest: Option<u32>) {
        self.artifacts.insert(name.to_string(), newest);
    }

    /// Notes whether an agent exists after the plan.
    pub fn add_agent(&mut self, name: &(impl ToString + ?Sized), exists: bool) {
        self.agents.insert(name.to_string(), exists);
    }

    /// Notes a tool that exists after the plan.
    pub fn add_tool(&mut self, bundle: &BundleSlug, name: &ToolName) {
        self.tools.extend([name.to_string(), format!("{bundle}:{name}")]);
    }

    /// Returns a definition that refers only to tools about which the plan says nothing: the tools of its other steps
    /// are left empty.
    pub fn without_planned_tools<'a>(&self, spec: &'a ToolSpec) -> Cow<'a, ToolSpec> {
        let is_planned = |tool: &str| self.tools.contains(tool.split('@').next().unwrap_or(tool));
        let mut rest = Cow::Borrowed(spec);
        if let Implementation::Steps(steps) = &spec.implementation
            && steps.steps.iter().any(|step| is_planned(&step.tool))
            && let Implementation::Steps(steps) = &mut rest.to_mut().implementation
        {
            steps.steps.iter_mut().filter(|step| is_planned(&step.tool)).for_each(|step| step.tool.clear());
        }
        rest
    }

    /// Looks for the target of a tool.
    pub fn target(&self, spec: &ToolSpec) -> PlannedTarget {
        match &spec.implementation {
            Implementation::RagRetrieval(rag) => match self.pipelines.get(&rag.pipeline_id) {
                None => PlannedTarget::Unplanned,
                Some(Some(_)) => PlannedTarget::Exists,
                Some(None) => missing("pipeline_id", deleted("pipeline", &rag.pipeline_id)),
            },
            Implementation::AgentCall(call) => {
                let (field, name) = match (&call.target_agent_id, &call.target_agent_slug) {
                    (Some(id), _) => ("target_agent_id", id),
                    (None, Some(slug)) => ("target_agent_slug", slug),
                    (None, None) => return PlannedTarget::Unplanned,
                };
                match self.agents.get(name) {
                    None => PlannedTarget::Unplanned,
                    Some(true) => PlannedTarget::Exists,
                    Some(false) => missing(field, deleted("agent", name)),
                }
            }
            Implementation::Artifact(artifact) => {
                let Some(reference) = &artifact.artifact_id else { return PlannedTarget::Unplanned };
                let selected = VersionSelector::parse(artifact.artifact_version.as_deref());
                match (self.artifacts.get(reference), selected) {
                    // An invalid version is found when the definition is compiled.
                    (None, _) | (_, None) => PlannedTarget::Unplanned,
                    (Some(None), _) => missing("artifact_id", deleted("artifact", reference)),
                    (Some(Some(newest)), Some(VersionSelector::Pinned(number))) if number > *newest => {
                        let message = format!(
                            "version {number} of artifact `{}` not found; its newest version will be {newest}",
                            excerpt(reference, 100)
                        );
                        missing("artifact_version", message)
                    }
                    (Some(Some(_)), Some(_)) => PlannedTarget::Exists,
                }
            }
            _ => PlannedTarget::Unplanned,
        }
    }

    /// Returns the pipeline of a tool if it is a draft after the plan.
    pub fn draft_pipeline<'a>(&self, spec: &'a ToolSpec) -> Option<&'a str> {
        let Implementation::RagRetrieval(rag) = &spec.implementation else { return None };
        let status = self.pipelines.get(&rag.pipeline_id).copied().flatten()?;
        (status == Status::Draft).then_some(rag.pipeline_id.as_str())
    }
}

fn missing(field: &str, message: String) -> PlannedTarget {
    PlannedTarget::Missing(Problem::new(format!("implementation.{field}"), "not_found", message))
}

fn deleted(what: &str, name: &str) -> String {
    format!("{what} `{}` is deleted by this plan", excerpt(name, 100))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn tool(implementation: &Value) -> ToolSpec {
        let implementation = serde_json::from_value(implementation.clone()).unwrap();
        ToolSpec::new(ToolName::new("x").unwrap(), implementation)
    }

    #[test]
    fn targets_are_those_after_the_plan() {
        let mut planned = PlannedReferences::default();
        planned.add_pipeline("new", Some(Status::Draft));
        planned.add_pipeline("gone", None);
        planned.add_artifact("count", Some(2));
        planned.add_artifact("old", None);
        planned.add_agent("helper", true);
        planned.add_agent("former", false);
        let check = |implementation: Value, expected: Option<&str>| {
            let shown = match planned.target(&tool(&implementation)) {
                PlannedTarget::Unplanned => None,
                PlannedTarget::Exists => Some("exists".to_owned()),
                PlannedTarget::Missing(problem) => Some(problem.message),
            };
            assert_eq!(shown.as_deref(), expected, "{implementation}");
        };
        let rag = |name: &str| json!({"type": "rag_retrieval", "pipeline_id": name});
        check(rag("new"), Some("exists"));
        check(rag("gone"), Some("pipeline `gone` is deleted by this plan"));
        check(rag("other"), None);
        assert_eq!(planned.draft_pipeline(&tool(&rag("new"))), Some("new"));
        assert_eq!(planned.draft_pipeline(&tool(&rag("other"))), None);
        let artifact = |name: &str, version: &str| json!({"type": "artifact", "artifact_id": name, "artifact_version": version});
        check(artifact("count", "2"), Some("exists"));
        check(artifact("count", "newest"), Some("exists"));
        check(
            artifact("count", "3"),
            Some("version 3 of artifact `count` not found; its newest version will be 2"),
        );
        check(artifact("old", ""), Some("artifact `old` is deleted by this plan"));
        let agent = |name: &str| json!({"type": "agent_call", "target_agent_slug": name});
        check(agent("helper"), Some("exists"));
        check(agent("former"), Some("agent `former` is deleted by this plan"));
        check(agent("other"), None);
        check(json!({"type": "artifact", "runtime": "bash", "source": "echo"}), None);
    }

    #[test]
    fn steps_may_use_tools_of_the_plan() {
        let mut planned = PlannedReferences::default();
        planned.add_tool(&BundleSlug::new("shop").unwrap(), &ToolName::new("orders").unwrap());
        let tools = |names: &[&str]| {
            let steps: Vec<Value> = names
                .iter()
                .enumerate()
                .map(|(id, tool)| json!({"id": format!("s{id}"), "tool": tool}))
                .collect();
            let spec = tool(&json!({"type": "steps", "steps": steps}));
            let rest = planned.without_planned_tools(&spec);
            let Implementation::Steps(rest) = &rest.implementation else { panic!("not steps") };
            rest.steps.iter().map(|step| step.tool.clone()).collect::<Vec<_>>()
        };
        assert_eq!(
            tools(&["orders", "shop:orders@1.0.0", "other", "b:orders"]),
            ["", "", "other", "b:orders"]
        );
        assert_eq!(tools(&["other"]), ["other"]);
    }
}
