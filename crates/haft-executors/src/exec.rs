//! The `exec` executor: runs a program with arguments, or a bash command, in the sandbox.
//!
//! No value is part of the text that a shell reads: in a command, values travel in environment variables.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use haft_core::BoxFuture;
use haft_core::executor::{CallContext, Executor, Prepared};
use haft_core::implementation::{Implementation, Kind};
use haft_core::outcome::{CallError, Outcome};
use haft_core::problem::Problem;
use haft_core::spec::ToolSpec;
use haft_sandbox::Input;
use haft_template::{ExecInvocation, ExecTemplate, Scope, Values};
use serde_json::{Map, Value};

use crate::preview;
use crate::process::{BashSource, Environment, Job, Processes, STOP_GRACE, check_size, required};

/// The maximum number of texts of a command with conditions whose syntax is checked.
const MAX_CHECKED_SCRIPTS: usize = 8;

/// Runs `exec` tools.
pub struct ExecExecutor {
    processes: Processes,
}

impl ExecExecutor {
    /// Makes an executor that starts its programs as `processes`.
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
            let Implementation::Exec(exec) = &spec.implementation else { return Vec::new() };
            // Errors of the templates are reported where the definition is checked.
            let Ok(template) = ExecTemplate::compile(exec, &Scope::from_schema(&spec.input_schema.value()))
            else {
                return Vec::new();
            };
            for text in template.scripts().take(MAX_CHECKED_SCRIPTS) {
                let source =
                    BashSource { text, field: "implementation.command", what: "command", image: None };
                let problems = self.processes.examine_bash(&source).await;
                if !problems.is_empty() {
                    return problems;
                }
            }
            Vec::new()
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
        let template = ExecTemplate::compile(exec, &Scope::from_schema(&spec.input_schema.value()))?;
        Ok(Arc::new(PreparedExec { spec: Arc::clone(spec), template, processes: self.processes.clone() }))
    }
}

struct PreparedExec {
    spec: Arc<ToolSpec>,
    template: ExecTemplate,
    processes: Processes,
}

impl PreparedExec {
    async fn call(&self, call: &CallContext, args: &Map<String, Value>) -> Outcome {
        let mut secrets = BTreeMap::new();
        for secret in self.template.secrets() {
            if let Some(value) = call.secret(&secret.name).await? {
                secrets.insert(secret.name.as_str(), value);
            }
        }
        let values =
            Values { args, steps: &Map::new(), secrets: &secrets, version: self.spec.version.as_str() };
        let ExecInvocation { argv, env, stdin } = self.template.render(&values).map_err(CallError::from)?;
        let place = self.processes.place(&self.spec, call)?;
        let mut environment = Environment::new(&self.processes.settings().path, &place, call);
        let texts = env.iter().map(|(_, value)| value).chain(&stdin);
        let arguments = if self.template.is_argv() { argv.iter().map(String::len).sum() } else { 0 };
        check_size(&self.spec, texts.map(|text| text.expose().len()).sum::<usize>() + arguments)?;
        for (name, value) in &env {
            environment.add(name, value.expose())?;
        }
        let input = match stdin {
            Some(text) => Input::Bytes(Bytes::from(text.expose().to_owned())),
            None => Input::Empty,
        };
        let job = Job {
            spec: &self.spec,
            place,
            command_line: argv.into_iter().map(Into::into).collect(),
            env: environment.variables,
            files: Vec::new(),
            missing: Vec::new(),
        };
        self.processes.run_with_input(call, job, input).await
    }
}

impl Prepared for PreparedExec {
    fn run<'a>(&'a self, call: &'a CallContext, args: &'a Map<String, Value>) -> BoxFuture<'a, Outcome> {
        Box::pin(self.call(call, args))
    }

    fn works_with_files(&self) -> bool {
        true
    }

    fn secrets(&self) -> Vec<&str> {
        required(self.template.secrets()).collect()
    }

    fn preview(&self, args: &Map<String, Value>) -> Option<String> {
        let secrets = preview::masked(self.template.secrets().iter().map(|secret| secret.name.as_str()));
        let version = self.spec.version.as_str();
        let values = Values { args, steps: &Map::new(), secrets: &secrets, version };
        let ExecInvocation { argv, env, stdin } = self.template.render(&values).ok()?;
        let variables = env.iter().map(|(name, value)| (name.as_str(), value.expose().to_owned()));
        let mut text = preview::assignments(variables);
        match argv.last() {
            Some(command) if !self.template.is_argv() => text.push_str(command),
            _ => text.push_str(&preview::command_line(argv.iter().map(String::as_str))),
        }
        if let Some(stdin) = stdin {
            text.push_str("\n\n# standard input:\n");
            text.push_str(stdin.expose());
        }
        Some(text)
    }

    fn grace(&self) -> Duration {
        STOP_GRACE
    }
}
