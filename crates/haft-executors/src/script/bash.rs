//! Bash scripts.

use std::ffi::OsString;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use haft_core::BoxFuture;
use haft_core::executor::{CallContext, Prepared};
use haft_core::implementation::ScriptRuntime;
use haft_core::outcome::{CallError, ErrorCode, Outcome};
use haft_core::problem::{self, Problem};
use haft_core::secret::MASK;
use haft_core::spec::ToolSpec;
use haft_sandbox::File;
use haft_template::{Scope, SecretName, reserved_variable, script_secrets};
use serde_json::{Map, Value};
use tokio::sync::OnceCell;

use crate::preview;
use crate::process::{Account, BashSource, Environment, Job, Processes, STOP_GRACE, required};

/// The name of the script file.
const SCRIPT: &str = "script";

/// A prepared bash script.
pub(super) struct BashScript {
    spec: Arc<ToolSpec>,
    body: Arc<str>,
    secrets: Vec<SecretName>,
    /// Whether the script reads its arguments from the file, and so accepts large ones.
    reads_file: bool,
    /// Whether it reads all of them from one variable.
    reads_all: bool,
    /// The syntax errors, once they are known.
    syntax_errors: OnceCell<Vec<Problem>>,
    processes: Processes,
}

impl BashScript {
    pub(super) fn prepare(spec: &Arc<ToolSpec>, body: &str, processes: &Processes) -> Self {
        Self {
            spec: Arc::clone(spec),
            body: body.into(),
            secrets: script_secrets(
                ScriptRuntime::Bash,
                body,
                &Scope::from_schema(&spec.input_schema.value()),
            ),
            reads_file: body.contains("HAFT_ARGS_FILE"),
            reads_all: body.contains("HAFT_ARGS"),
            syntax_errors: OnceCell::new(),
            processes: processes.clone(),
        }
    }

    async fn call(&self, call: &CallContext, args: &Map<String, Value>) -> Outcome {
        self.check_syntax(call).await?;
        let place = self.processes.place(&self.spec, call)?;
        let mut environment = Environment::new(&self.processes.settings().path, &place, call);
        let all = environment.add_arguments(&self.spec, args, &place, self.reads_file)?;
        if self.reads_all && !self.reads_file {
            environment.require_args_variable()?;
        }
        let missing = environment.add_secrets(call, &self.secrets).await?;
        let command_line = bash(place.files().join(SCRIPT).into());
        let files = vec![all, File { name: SCRIPT, content: Bytes::from(self.body.to_string()) }];
        let job = Job { spec: &self.spec, place, command_line, env: environment.variables, files, missing };
        self.processes.run(call, job).await
    }

    /// Checks the syntax before the first run: bash itself would run everything up to the error. A file that was copied
    /// into a folder was never checked.
    async fn check_syntax(&self, call: &CallContext) -> Result<(), CallError> {
        let check = async || {
            let _slot = self.processes.slot(Account::of(call)).await;
            let place = self.processes.place(&self.spec, call)?;
            let within = call.deadline.saturating_duration_since(Instant::now());
            let source = bash_source(&self.body, self.spec.image.as_deref());
            self.processes.check_bash(place, &source, within).await
        };
        match self.syntax_errors.get_or_try_init(check).await?.as_slice() {
            [] => Ok(()),
            problems => Err(CallError::new(ErrorCode::NotReady, problem::join(problems))
                .for_model("this tool is unavailable: its script is invalid")),
        }
    }
}

impl Prepared for BashScript {
    fn run<'a>(&'a self, call: &'a CallContext, args: &'a Map<String, Value>) -> BoxFuture<'a, Outcome> {
        Box::pin(self.call(call, args))
    }

    fn fault(&self) -> Option<String> {
        self.syntax_errors
            .get()
            .filter(|problems| !problems.is_empty())
            .map(|problems| problem::join(problems))
    }

    fn works_with_files(&self) -> bool {
        true
    }

    fn secrets(&self) -> Vec<&str> {
        required(&self.secrets).collect()
    }

    fn preview(&self, args: &Map<String, Value>) -> Option<String> {
        let masked = self.secrets.iter().map(|secret| (secret.name.as_str(), MASK.to_owned()));
        let given = args.iter().filter(|(name, value)| !reserved_variable(name) && !value.is_null());
        let given = given.map(|(name, value)| (name.as_str(), preview::variable_text(value)));
        let variables = preview::assignments(given.chain(masked));
        let separator = if variables.is_empty() { "" } else { "\n" };
        Some(format!("{variables}{separator}{}", self.body))
    }

    fn grace(&self) -> Duration {
        STOP_GRACE
    }
}

/// Returns the command line that runs a script, without start-up files and with `pipefail`.
pub(crate) fn bash(script: OsString) -> Vec<OsString> {
    vec!["bash".into(), "--noprofile".into(), "--norc".into(), "-o".into(), "pipefail".into(), script]
}

/// Returns the script of a tool for a syntax check.
pub(super) fn bash_source<'a>(body: &'a str, image: Option<&'a str>) -> BashSource<'a> {
    BashSource { text: body, field: "implementation.body", what: "body", image }
}
