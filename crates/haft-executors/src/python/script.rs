//! Python scripts.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use haft_core::BoxFuture;
use haft_core::executor::{CallContext, Prepared};
use haft_core::implementation::ScriptRuntime;
use haft_core::outcome::{CallError, Outcome};
use haft_core::problem::Problem;
use haft_core::secret::Secret;
use haft_core::spec::ToolSpec;
use haft_template::{PythonTemplate, Scope, SecretName, Values, script_secrets};
use serde_json::{Map, Value};

use super::environment::Dependencies;
use super::interpreters::{Job, PythonPool};
use super::recipe::{Digest, Recipe, Source};
use super::request::{Operation, Request};
use crate::preview;
use crate::process::{
    Account, Environment, ProcessEnd, ValueSource, level, outcome, required, texts, workspace_bind,
};

/// The file with the arguments in a warm interpreter, in a private folder in memory.
const ARGS_FILE: &str = "/dev/shm/args.json";

/// A prepared python script.
pub(crate) struct PythonScript {
    spec: Arc<ToolSpec>,
    template: PythonTemplate,
    secrets: Vec<SecretName>,
    recipe: Recipe,
    digest: Digest,
    dependencies: Dependencies,
    interpreters: PythonPool,
}

impl PythonScript {
    /// Compiles the templates of the script.
    pub(crate) fn prepare(
        spec: &Arc<ToolSpec>,
        body: &str,
        dependencies: Dependencies,
        interpreters: &PythonPool,
    ) -> Result<Self, Vec<Problem>> {
        let scope = Scope::from_schema(&spec.input_schema.value());
        let template = PythonTemplate::compile(body, &scope).map_err(|errors| {
            errors.iter().map(|error| error.to_problem("implementation.body")).collect::<Vec<_>>()
        })?;
        let source = Source::Script { body: body.to_owned(), plain: template.is_plain() };
        let recipe = interpreters.recipe(spec, source);
        Ok(Self {
            spec: Arc::clone(spec),
            secrets: script_secrets(ScriptRuntime::Python, body, &scope),
            digest: recipe.digest(),
            template,
            recipe,
            dependencies,
            interpreters: interpreters.clone(),
        })
    }

    async fn call(&self, call: &CallContext, args: &Map<String, Value>) -> Outcome {
        let packages = self.interpreters.packages(call, &self.spec, &self.dependencies).await?;
        let call = packages.extended.as_ref().unwrap_or(call);
        let processes = self.interpreters.processes();
        let place = processes.place(&self.spec, call)?;
        let mut environment = Environment::new(&processes.settings().path, &place, call);
        let file = environment.add_arguments(&self.spec, args, &place, true)?;
        let missing = environment.add_secrets(call, &self.secrets).await?;
        let body = self.body(call, args).await?;
        let warm = place.has_own_processes();
        let (files, args_file) = if warm {
            environment.set("HAFT_ARGS_FILE", Path::new(ARGS_FILE));
            (Vec::new(), Some(environment.args.clone()))
        } else {
            (vec![file], None)
        };
        let operation = Operation::Script { body, args_file };
        let Environment { variables, large, .. } = environment;
        let request = Request { operation, env: texts(variables), large };
        let shown = place.files().to_string_lossy().into_owned();
        let tenant = Some(call.tenant().clone());
        let other = self.recipe.adapted(
            level(&self.spec, call.tenant()),
            packages.folder.as_deref(),
            workspace_bind(call),
        );
        let (recipe, digest) =
            other.as_ref().map_or((&self.recipe, self.digest), |(recipe, digest)| (recipe, *digest));
        let job = Job { tenant, account: Account::of(call), recipe, digest, place, request, files };
        let result = self.interpreters.call(call, &self.spec, job).await?;
        let end = ProcessEnd {
            ending: result.ending,
            stdout: &result.stdout,
            stderr: &result.stderr,
            spec: &self.spec,
            files: &shown,
            missing: &missing,
        };
        outcome(call, &end, ValueSource::Stdout)
    }

    /// Returns the body with its values, or `None` if it has no placeholders and was compiled in advance.
    async fn body(&self, call: &CallContext, args: &Map<String, Value>) -> Result<Option<String>, CallError> {
        if self.template.is_plain() {
            return Ok(None);
        }
        let mut secrets: BTreeMap<&str, Secret> = BTreeMap::new();
        for name in self.template.secrets() {
            if let Some(secret) = call.secret(name).await? {
                secrets.insert(name, secret);
            }
        }
        let version = self.spec.version.as_str();
        let values = Values { args, steps: &Map::new(), secrets: &secrets, version };
        let body = self.template.render(&values).map_err(CallError::from)?;
        Ok(Some(body.into_owned()))
    }
}

impl Prepared for PythonScript {
    fn run<'a>(&'a self, call: &'a CallContext, args: &'a Map<String, Value>) -> BoxFuture<'a, Outcome> {
        Box::pin(self.call(call, args))
    }

    fn works_with_files(&self) -> bool {
        true
    }

    fn secrets(&self) -> Vec<&str> {
        required(&self.secrets).chain(self.template.secrets()).collect()
    }

    fn preview(&self, args: &Map<String, Value>) -> Option<String> {
        let secrets = preview::masked(self.template.secrets());
        let version = self.spec.version.as_str();
        let values = Values { args, steps: &Map::new(), secrets: &secrets, version };
        let body = self.template.render(&values).ok()?;
        Some(format!("# arguments: {}\n{body}", Value::Object(args.clone())))
    }

    fn grace(&self) -> Duration {
        self.interpreters.grace(&self.dependencies)
    }
}
