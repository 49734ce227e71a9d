//! The `python` executor: functions of toolsets.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use haft_core::BoxFuture;
use haft_core::executor::{CallContext, Executor, Prepared};
use haft_core::implementation::{Implementation, Kind};
use haft_core::outcome::{CallError, ErrorCode, Outcome};
use haft_core::problem::Problem;
use haft_core::spec::ToolSpec;
use serde_json::{Map, Value};

use super::environment::Dependencies;
use super::interpreters::{Job, PythonPool};
use super::recipe::Source;
use super::request::{Operation, Request};
use super::server::PythonResult;
use super::toolset::{Entrypoint, Toolset};
use crate::process::{
    Account, Environment, ProcessEnd, ValueSource, check_size, declared, level, network_hint, outcome, texts,
    workspace_bind,
};

/// Runs `module:function(workspace, **kwargs)` of a toolset.
pub struct PythonExecutor {
    interpreters: PythonPool,
    /// The folder that contains the folders of bundles.
    home: Option<PathBuf>,
    /// The folder that contains the unpacked packages of toolsets.
    packages: Option<PathBuf>,
}

impl PythonExecutor {
    /// Creates the executor; the folders of bundles are relative to `home`.
    pub fn new(interpreters: PythonPool, home: Option<PathBuf>) -> Self {
        Self { interpreters, home, packages: None }
    }

    /// Runs functions of installed packages, which are unpacked in folders of this one.
    #[must_use]
    pub fn with_packages(mut self, packages: PathBuf) -> Self {
        self.packages = Some(packages);
        self
    }
}

impl Executor for PythonExecutor {
    fn kind(&self) -> Kind {
        Kind::Python
    }

    fn prepare(&self, spec: &Arc<ToolSpec>, folder: Option<&str>) -> Result<Arc<dyn Prepared>, Vec<Problem>> {
        let Implementation::Python(python) = &spec.implementation else {
            return Err(vec![Problem::new("implementation.type", "wrong_type", "expected `python`")]);
        };
        let entry = Entrypoint::parse(&python.entrypoint).map_err(|problem| vec![problem])?;
        let package =
            python.package.as_deref().filter(|hash| hash.bytes().all(|byte| byte.is_ascii_alphanumeric()));
        let folder = match (package, folder) {
            (Some(package), _) => self.packages.as_ref().map(|packages| packages.join(package)),
            (None, folder) => self.home.as_ref().zip(folder).map(|(home, folder)| home.join(folder)),
        };
        let Some(folder) = folder else {
            let message = "python functions need the folder of a bundle, but this definition has none";
            return Err(vec![Problem::new("implementation.entrypoint", "no_folder", message)]);
        };
        entry.check_in(&folder).map_err(|problem| vec![problem])?;
        let dependencies = Dependencies::new(spec, Some(folder.clone()))?;
        let mut recipe = self.interpreters.recipe(spec, Source::Check);
        // All functions of a module share one interpreter.
        "toolset".clone_into(&mut recipe.name);
        Ok(Arc::new(PythonFunction {
            spec: Arc::clone(spec),
            toolset: Toolset::new(folder, &entry.module, recipe),
            entry,
            dependencies,
            interpreters: self.interpreters.clone(),
        }))
    }
}

/// A prepared function of a toolset.
struct PythonFunction {
    spec: Arc<ToolSpec>,
    entry: Entrypoint,
    toolset: Toolset,
    dependencies: Dependencies,
    interpreters: PythonPool,
}

impl PythonFunction {
    async fn call(&self, call: &CallContext, args: &Map<String, Value>) -> Outcome {
        let packages = self.interpreters.packages(call, &self.spec, &self.dependencies).await?;
        let call = packages.extended.as_ref().unwrap_or(call);
        let toolset = self.toolset.current().await.map_err(|error| {
            CallError::new(ErrorCode::NotReady, format!("failed to read the toolset's folder: {error}"))
                .for_model("this tool is unavailable")
        })?;
        let processes = self.interpreters.processes();
        let place = processes.place(&self.spec, call)?;
        let environment = Environment::new(&processes.settings().path, &place, call);
        let mut kwargs = args.clone();
        for (name, value) in declared(&self.spec, args) {
            kwargs.entry(name).or_insert(value);
        }
        check_size(&self.spec, serde_json::to_vec(&kwargs).map_or(0, |text| text.len()))?;
        let operation = Operation::Function { entry: self.entry.text.clone(), kwargs };
        let request = Request { operation, env: texts(environment.variables), large: Vec::new() };
        let shown = place.files().to_string_lossy().into_owned();
        let (tenant, files) = (Some(call.tenant().clone()), Vec::new());
        let other = toolset.recipe.adapted(
            level(&self.spec, call.tenant()),
            packages.folder.as_deref(),
            workspace_bind(call),
        );
        let (recipe, digest) =
            other.as_ref().map_or((&*toolset.recipe, toolset.digest), |(recipe, digest)| (recipe, *digest));
        let job = Job { tenant, account: Account::of(call), recipe, digest, place, request, files };
        let result = self.interpreters.call(call, &self.spec, job).await?;
        self.returned(call, &result, &shown)
    }

    /// Returns the value or the exception of the function. Its output goes to the record of the call.
    fn returned(&self, call: &CallContext, result: &PythonResult, files: &str) -> Outcome {
        let end = ProcessEnd {
            ending: result.ending,
            stdout: &result.stdout,
            stderr: &result.stderr,
            spec: &self.spec,
            files,
            missing: &[],
        };
        let ended = outcome(call, &end, ValueSource::Separate);
        let response: Value = serde_json::from_slice(&result.result).unwrap_or_default();
        let raised = response.get("error").and_then(Value::as_str);
        let with_hint = |line: &str| match network_hint(&self.spec, line) {
            Some(hint) => format!("{line} ({hint})"),
            None => line.to_owned(),
        };
        match (ended, raised, response.get("value")) {
            (Ok(_), None, Some(value)) => Ok(value.clone()),
            (Err(error), Some(line), _) if error.code == ErrorCode::ExecutionFailed => {
                Err(CallError { message: with_hint(line), ..error })
            }
            (Ok(_), Some(line), _) => Err(CallError::new(ErrorCode::ExecutionFailed, with_hint(line))),
            (Ok(_), None, None) => {
                let message = format!("`{}` ended the process without a result", self.entry.text);
                Err(CallError::new(ErrorCode::ExecutionFailed, message))
            }
            (Err(error), ..) => Err(error),
        }
    }
}

impl Prepared for PythonFunction {
    fn run<'a>(&'a self, call: &'a CallContext, args: &'a Map<String, Value>) -> BoxFuture<'a, Outcome> {
        Box::pin(self.call(call, args))
    }

    fn works_with_files(&self) -> bool {
        true
    }

    fn grace(&self) -> Duration {
        self.interpreters.grace(&self.dependencies)
    }
}
