//! The executor, which compiles the steps of a definition.

use std::fmt::Write as _;
use std::sync::{Arc, OnceLock, Weak};

use haft_core::BoxFuture;
use haft_core::executor::{CallContext, DependencyScope, Executor, Prepared};
use haft_core::implementation::{Implementation, Kind, Steps};
use haft_core::name::TenantId;
use haft_core::outcome::{CallError, Outcome};
use haft_core::problem::Problem;
use haft_core::reference::ToolRef;
use haft_core::schema::declared_properties;
use haft_core::spec::ToolSpec;
use haft_definition::check;
use haft_definition::steps::StepGraph;
use serde_json::{Map, Value};

use super::run::StepsRun;
use crate::pipeline::digest_within;
use crate::registry::{Registry, ResolveError};

/// Runs `steps` tools.
#[derive(Debug, Default)]
pub struct StepsExecutor {
    /// Weak, because the registry owns the executors.
    registry: OnceLock<Weak<Registry>>,
}

impl StepsExecutor {
    /// Sets the registry, once, so that a tool is not ready while the tool of a step does not exist.
    pub fn connect(&self, registry: &Arc<Registry>) {
        let _ = self.registry.set(Arc::downgrade(registry));
    }
}

impl Executor for StepsExecutor {
    fn kind(&self) -> Kind {
        Kind::Steps
    }

    fn missing_reference(&self, tenant: &TenantId, spec: &ToolSpec) -> Option<Problem> {
        let Implementation::Steps(steps) = &spec.implementation else { return None };
        // A global tool uses the tool that each tenant has under this name.
        let registry = self.registry.get().and_then(Weak::upgrade).filter(|_| !tenant.is_global())?;
        let snapshot = registry.current();
        steps.steps.iter().enumerate().find_map(|(index, step)| {
            // An invalid reference is found when the definition is compiled.
            let tool: ToolRef = step.tool.parse().ok()?;
            match snapshot.resolve(tenant, &tool) {
                Err(error @ (ResolveError::NotFound { .. } | ResolveError::Unreadable { .. })) => {
                    let field = format!("implementation.steps[{index}].tool");
                    Some(Problem::new(field, "not_found", error.to_string()))
                }
                // Which of several tools it is may depend on the mode of the call.
                Ok(_) | Err(ResolveError::Ambiguous { .. }) => None,
            }
        })
    }

    fn prepare(
        &self,
        spec: &Arc<ToolSpec>,
        _folder: Option<&str>,
    ) -> Result<Arc<dyn Prepared>, Vec<Problem>> {
        let Implementation::Steps(steps) = &spec.implementation else {
            return Err(vec![Problem::new("implementation.type", "wrong_type", "expected `steps`")]);
        };
        let problems = check::implementation_errors(spec);
        if !problems.is_empty() {
            return Err(problems);
        }
        let graph = StepGraph::new(steps)?;
        let mut tools = Vec::with_capacity(steps.steps.len());
        for (index, step) in steps.steps.iter().enumerate() {
            let field = format!("implementation.steps[{index}].tool");
            let tool = step.tool.parse::<ToolRef>();
            tools.push(tool.map_err(|error| vec![Problem::new(field, "invalid_value", error.to_string())])?);
        }
        let arguments = declared_properties(&spec.input_schema.value())
            .into_iter()
            .map(|(name, schema)| (name.to_owned(), schema.get("default").cloned()))
            .collect();
        let registry = self.registry.get().cloned();
        Ok(Arc::new(PreparedSteps { steps: steps.clone(), graph, tools, arguments, registry }))
    }
}

/// The compiled steps of a tool.
pub(super) struct PreparedSteps {
    pub(super) steps: Steps,
    pub(super) graph: StepGraph,
    /// The tool of each step.
    pub(super) tools: Vec<ToolRef>,
    /// The declared arguments with their defaults.
    arguments: Vec<(String, Option<Value>)>,
    /// The registry of its tools.
    registry: Option<Weak<Registry>>,
}

impl PreparedSteps {
    /// Returns what `$args` refers to: the declared arguments, with defaults for those that the call does not have.
    pub(super) fn visible(&self, args: &Map<String, Value>) -> Value {
        let mut visible = Map::new();
        for (name, default) in &self.arguments {
            if let Some(value) = args.get(name).or(default.as_ref()) {
                visible.insert(name.clone(), value.clone());
            }
        }
        Value::Object(visible)
    }
}

impl PreparedSteps {
    /// Returns the digest of the tools that the steps call now. A missing one is a part of it, too.
    async fn digest_of_tools(&self, scope: &DependencyScope<'_>) -> Result<Option<String>, CallError> {
        let Some(registry) = self.registry.as_ref().and_then(Weak::upgrade) else { return Ok(None) };
        let mut digests = Vec::with_capacity(self.tools.len());
        for tool in &self.tools {
            let entry = registry.current().resolve_in(scope.tenant, tool, scope.mode).ok().cloned();
            let plan = match entry {
                Some(entry) => {
                    // Compiling on first use may take seconds: not on a thread of the runtime.
                    entry.compile(scope.mode.into(), registry.executors()).await;
                    let plan = entry.plan(scope.mode.into(), registry.executors());
                    plan.ok().map(|plan| (entry.tool.id, plan))
                }
                None => None,
            };
            digests.push(match plan {
                Some((id, plan)) if scope.is_first(id) => {
                    format!("{id} {}", Box::pin(digest_within(&plan, scope)).await?)
                }
                Some((id, _)) => id.to_string(),
                None => format!("{tool} is missing"),
            });
        }
        Ok(Some(digests.join(" ")))
    }
}

impl Prepared for PreparedSteps {
    fn run<'a>(&'a self, call: &'a CallContext, args: &'a Map<String, Value>) -> BoxFuture<'a, Outcome> {
        Box::pin(StepsRun::new(self, call, args).execute())
    }

    fn dependencies<'a>(
        &'a self,
        scope: &'a DependencyScope<'a>,
    ) -> BoxFuture<'a, Result<Option<String>, CallError>> {
        Box::pin(self.digest_of_tools(scope))
    }

    fn preview(&self, _args: &Map<String, Value>) -> Option<String> {
        let mut text = String::new();
        for step in &self.steps.steps {
            let each = if step.for_each.is_some() { " for each item" } else { "" };
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{}: {}{each} {}", step.id, step.tool, Value::Object(step.args.clone()));
        }
        Some(text.trim_end().to_owned())
    }
}
