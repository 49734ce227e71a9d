//! Bash bodies.

use std::ffi::OsString;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use haft_core::BoxFuture;
use haft_core::executor::{CallContext, Prepared};
use haft_core::implementation::ScriptRuntime;
use haft_core::outcome::{CallError, ErrorCode, Outcome};
use haft_core::problem::{self, Problem};
use haft_core::spec::ToolSpec;
use haft_sandbox::File;
use haft_template::{Scope, SecretName, script_secrets};
use serde_json::{Map, Value};
use tokio::sync::OnceCell;

use crate::process::{Account, Environment, Job, Processes, Reading, STOPS_WITHIN, required};

/// The file in which bash finds the body.
const SCRIPT: &str = "script";

/// A bash body, ready to run.
pub(super) struct Bash {
    spec: Arc<ToolSpec>,
    body: Arc<str>,
    secrets: Vec<SecretName>,
    /// Whether the body reads its arguments from the file, and so takes large ones.
    reads_file: bool,
    /// Whether it reads them as one variable.
    reads_all: bool,
    /// What is wrong with the syntax, once that is known.
    wrong: OnceCell<Vec<Problem>>,
    processes: Processes,
}

impl Bash {
    pub(super) fn prepare(spec: &Arc<ToolSpec>, body: &str, processes: &Processes) -> Self {
        Self {
            spec: Arc::clone(spec),
            body: body.into(),
            secrets: script_secrets(ScriptRuntime::Bash, body, &Scope::from_schema(&spec.input_schema)),
            reads_file: body.contains("HAFT_ARGS_FILE"),
            reads_all: body.contains("HAFT_ARGS"),
            wrong: OnceCell::new(),
            processes: processes.clone(),
        }
    }

    async fn call(&self, call: &CallContext, args: &Map<String, Value>) -> Outcome {
        self.check_syntax(call).await?;
        let place = self.processes.place(&self.spec)?;
        let mut environment = Environment::new(&self.processes.settings().path, &place);
        let all = environment.add_arguments(&self.spec, args, &place, self.reads_file)?;
        if self.reads_all && !self.reads_file {
            environment.holds_all()?;
        }
        let missing = environment.add_secrets(call, &self.secrets).await?;
        let command_line = bash(place.files().join(SCRIPT).into());
        let files = vec![all, File { name: SCRIPT, content: Bytes::from(self.body.to_string()) }];
        let job = Job { spec: &self.spec, place, command_line, env: environment.variables, files, missing };
        self.processes.run(call, job).await
    }

    /// Looks at the syntax before the first run: bash itself would run everything up to a fault. A file that was
    /// put into a folder has been looked at by nobody.
    async fn check_syntax(&self, call: &CallContext) -> Result<(), CallError> {
        let look = async || {
            let _turn = self.processes.turn(Account::of(call)).await;
            let place = self.processes.place(&self.spec)?;
            let within = call.deadline.saturating_duration_since(Instant::now());
            let reading = reading(&self.body, self.spec.image.as_deref());
            self.processes.read_bash(place, &reading, within).await
        };
        match self.wrong.get_or_try_init(look).await?.as_slice() {
            [] => Ok(()),
            problems => Err(CallError::new(ErrorCode::NotReady, problem::join(problems))
                .for_model("this tool cannot run: its script is not valid")),
        }
    }
}

impl Prepared for Bash {
    fn run<'a>(&'a self, call: &'a CallContext, args: &'a Map<String, Value>) -> BoxFuture<'a, Outcome> {
        Box::pin(self.call(call, args))
    }

    fn fault(&self) -> Option<String> {
        self.wrong.get().filter(|problems| !problems.is_empty()).map(|problems| problem::join(problems))
    }

    fn secrets(&self) -> Vec<&str> {
        required(&self.secrets).collect()
    }

    fn grace(&self) -> Duration {
        STOPS_WITHIN
    }
}

/// Returns the command line that runs a file: nothing of the machine's or a user's set-up is read.
pub(crate) fn bash(script: OsString) -> Vec<OsString> {
    vec!["bash".into(), "--noprofile".into(), "--norc".into(), script]
}

/// Returns what bash is to read of a tool, in one of its own kind of places where it has an image.
pub(super) fn reading<'a>(body: &'a str, image: Option<&'a str>) -> Reading<'a> {
    Reading { text: body, field: "implementation.body", what: "body", image }
}
