//! Bash bodies.

use std::ffi::OsString;
use std::sync::Arc;

use bytes::Bytes;
use haft_core::Work;
use haft_core::executor::{CallContext, Prepared};
use haft_core::implementation::ScriptRuntime;
use haft_core::outcome::Outcome;
use haft_core::problem::Problem;
use haft_core::spec::ToolSpec;
use haft_core::template::{Scope, SecretName, script_secrets};
use haft_sandbox::{Command, Ending, File, Level};
use serde_json::{Map, Value};

use crate::process::{Environment, Job, Processes};

/// The file in which bash finds the body.
const SCRIPT: &str = "script";

/// A bash body, ready to run.
pub(super) struct Bash {
    spec: Arc<ToolSpec>,
    body: Bytes,
    secrets: Vec<SecretName>,
    /// Whether the body reads its arguments from the file, and so takes large ones.
    reads_file: bool,
    processes: Processes,
}

impl Bash {
    pub(super) fn prepare(spec: &Arc<ToolSpec>, body: &str, processes: &Processes) -> Self {
        Self {
            spec: Arc::clone(spec),
            body: Bytes::from(body.to_owned()),
            secrets: script_secrets(ScriptRuntime::Bash, body, &Scope::of(&spec.input_schema)),
            reads_file: body.contains("HAFT_ARGS_FILE"),
            processes: processes.clone(),
        }
    }

    async fn call(&self, call: &CallContext, args: &Map<String, Value>) -> Outcome {
        let place = self.processes.place(&self.spec)?;
        let mut environment = Environment::new(&self.processes.settings().path, &place);
        let all = environment.add_arguments(&self.spec, args, &place, self.reads_file)?;
        let missing = environment.add_secrets(call, &self.secrets).await?;
        let command_line = bash(place.files().join(SCRIPT).into());
        let files = vec![all, File { name: SCRIPT, content: self.body.clone() }];
        let job = Job { spec: &self.spec, place, command_line, env: environment.variables, files, missing };
        self.processes.run(call, job).await
    }
}

impl Prepared for Bash {
    fn run<'a>(&'a self, call: &'a CallContext, args: &'a Map<String, Value>) -> Work<'a, Outcome> {
        Box::pin(self.call(call, args))
    }
}

/// Returns the command line that runs a file: nothing of the machine's or a user's set-up is read.
pub(crate) fn bash(script: OsString) -> Vec<OsString> {
    vec!["bash".into(), "--noprofile".into(), "--norc".into(), script]
}

/// Looks at the syntax of a body without running it.
pub(super) async fn examine(body: &str, processes: &Processes) -> Vec<Problem> {
    let sandbox = processes.sandbox();
    // The sandbox itself says why it cannot run things, to those who ask for that.
    let Ok(place) = sandbox.place(Level::Isolated, None) else { return Vec::new() };
    let script = place.files().join(SCRIPT);
    let prefix = format!("{}: ", script.display());
    let argv = ["bash".into(), "-n".into(), script.into_os_string()];
    let mut command =
        Command::new(place, argv).env("PATH", &processes.settings().path).env("LANG", "C.UTF-8");
    command.files.push(File { name: SCRIPT, content: Bytes::from(body.to_owned()) });
    let Ok(finished) = sandbox.run(command, &mut |_, _| {}).await else { return Vec::new() };
    if finished.ending == Ending::Exited(0) {
        return Vec::new();
    }
    let said = finished.stderr.text();
    let mut problems: Vec<Problem> =
        said.lines().filter_map(|line| problem(line.strip_prefix(&prefix)?)).collect();
    // The second line repeats the text of the first one's fault.
    problems.truncate(1);
    if problems.is_empty() {
        problems.push(Problem::new(BODY, "syntax", format!("bash does not understand it: {}", said.trim())));
    }
    problems
}

const BODY: &str = "implementation.body";

/// Reads `line 3: what is wrong`.
fn problem(line: &str) -> Option<Problem> {
    let (number, what) = line.strip_prefix("line ")?.split_once(": ")?;
    Some(Problem::new(BODY, "syntax", format!("bash: {what} (line {number} of the body)")))
}
