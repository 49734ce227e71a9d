//! The `script` executor: bash and python scripts.

use std::path::PathBuf;
use std::sync::Arc;

use haft_core::BoxFuture;
use haft_core::executor::{Executor, Prepared};
use haft_core::implementation::{Implementation, Kind, Script, ScriptRuntime};
use haft_core::problem::Problem;
use haft_core::spec::ToolSpec;

use super::bash::{self, BashScript};
use crate::process::Processes;
use crate::python::{Dependencies, PythonPool, PythonScript};

/// Runs scripts.
pub struct ScriptExecutor {
    processes: Processes,
    interpreters: PythonPool,
    /// The folder that contains the folders of bundles.
    home: Option<PathBuf>,
}

impl ScriptExecutor {
    /// Creates the executor.
    pub fn new(processes: Processes, interpreters: PythonPool) -> Self {
        Self { processes, interpreters, home: None }
    }

    /// Reads `requirements.txt` and `wheels` in the folders of bundles, which are relative to `home`.
    #[must_use]
    pub fn with_home(mut self, home: Option<PathBuf>) -> Self {
        self.home = home;
        self
    }
}

impl Executor for ScriptExecutor {
    fn kind(&self) -> Kind {
        Kind::Script
    }

    fn examine<'a>(&'a self, spec: &'a ToolSpec) -> BoxFuture<'a, Vec<Problem>> {
        Box::pin(async move {
            match &spec.implementation {
                Implementation::Script(Script { runtime: ScriptRuntime::Bash, body, .. }) => {
                    self.processes.examine_bash(&bash::bash_source(body, None)).await
                }
                Implementation::Script(Script { runtime: ScriptRuntime::Python, body, .. }) => {
                    self.interpreters.examine(spec, body).await
                }
                _ => Vec::new(),
            }
        })
    }

    fn prepare(&self, spec: &Arc<ToolSpec>, folder: Option<&str>) -> Result<Arc<dyn Prepared>, Vec<Problem>> {
        let wrong = |code, message| vec![Problem::new("implementation.type", code, message)];
        let Implementation::Script(script) = &spec.implementation else {
            return Err(wrong("wrong_type", "expected `script`"));
        };
        match script.runtime {
            ScriptRuntime::Bash => Ok(Arc::new(BashScript::prepare(spec, &script.body, &self.processes))),
            ScriptRuntime::Python => {
                let folder = self.home.as_ref().zip(folder).map(|(home, folder)| home.join(folder));
                let dependencies = Dependencies::new(spec, folder)?;
                Ok(Arc::new(PythonScript::prepare(spec, &script.body, dependencies, &self.interpreters)?))
            }
        }
    }
}
