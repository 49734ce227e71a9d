//! The `exec` executor: command templates, confined.
//!
//! No value is ever part of the text that the shell reads: values travel as variables.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use haft_core::BoxFuture;
use haft_core::executor::{CallContext, Executor, Prepared};
use haft_core::implementation::{Implementation, Kind};
use haft_core::outcome::{CallError, Outcome};
use haft_core::problem::Problem;
use haft_core::spec::ToolSpec;
use haft_template::{CommandTemplate, Scope, Values};
use serde_json::{Map, Value};

use crate::process::{BashSource, Environment, Job, Processes, STOP_GRACE, check_size, required};

/// Runs command templates.
pub struct ExecExecutor {
    processes: Processes,
}

impl ExecExecutor {
    /// Makes the executor of commands.
    pub fn new(processes: Processes) -> Self {
        Self { processes }
    }
}

impl Executor for ExecExecutor {
    fn kind(&self) -> Kind {
        Kind::Exec
    }

    fn examine<'a>(&'a self, spec: &'a ToolSpec) -> BoxFuture<'a, Vec<Problem>> {
        Box::pin(async move {
            match &spec.implementation {
                // What a template becomes is looked at where it is compiled.
                Implementation::Exec(exec) if !exec.command.contains("{{") => {
                    let (text, field) = (exec.command.as_str(), "implementation.command");
                    let source = BashSource { text, field, what: "command", image: None };
                    self.processes.examine_bash(&source).await
                }
                _ => Vec::new(),
            }
        })
    }

    fn prepare(
        &self,
        spec: &Arc<ToolSpec>,
        _folder: Option<&str>,
    ) -> Result<Arc<dyn Prepared>, Vec<Problem>> {
        let Implementation::Exec(exec) = &spec.implementation else {
            return Err(vec![Problem::new("implementation.type", "wrong_type", "expected `exec`")]);
        };
        let template = CommandTemplate::compile(&exec.command, &exec.env, &Scope::of(&spec.input_schema))?;
        Ok(Arc::new(Ready { spec: Arc::clone(spec), template, processes: self.processes.clone() }))
    }
}

struct Ready {
    spec: Arc<ToolSpec>,
    template: CommandTemplate,
    processes: Processes,
}

impl Ready {
    async fn call(&self, call: &CallContext, args: &Map<String, Value>) -> Outcome {
        let mut secrets = BTreeMap::new();
        for secret in self.template.secrets() {
            if let Some(value) = call.secret(&secret.name).await? {
                secrets.insert(secret.name.as_str(), value);
            }
        }
        let values =
            Values { args, steps: &Map::new(), secrets: &secrets, version: self.spec.version.as_str() };
        let command = self.template.render(&values).map_err(CallError::from)?;
        let place = self.processes.place(&self.spec)?;
        let mut environment = Environment::new(&self.processes.settings().path, &place);
        check_size(&self.spec, command.env.iter().map(|(_, value)| value.expose().len()).sum())?;
        for (name, value) in &command.env {
            environment.add(name, value.expose())?;
        }
        let command_line = ["bash", "--noprofile", "--norc", "-c", command.script].map(Into::into).to_vec();
        let env = environment.variables;
        let job = Job { spec: &self.spec, place, command_line, env, files: Vec::new(), missing: Vec::new() };
        self.processes.run(call, job).await
    }
}

impl Prepared for Ready {
    fn run<'a>(&'a self, call: &'a CallContext, args: &'a Map<String, Value>) -> BoxFuture<'a, Outcome> {
        Box::pin(self.call(call, args))
    }

    fn secrets(&self) -> Vec<&str> {
        required(self.template.secrets()).collect()
    }

    fn grace(&self) -> Duration {
        STOP_GRACE
    }
}
