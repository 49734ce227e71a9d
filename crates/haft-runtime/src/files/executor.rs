//! Running file tools.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use haft_core::BoxFuture;
use haft_core::executor::{CallContext, Executor, Prepared};
use haft_core::implementation::{Implementation, Kind, Notation};
use haft_core::outcome::{CallError, Outcome};
use haft_core::problem::Problem;
use haft_core::secret::Secret;
use haft_core::spec::ToolSpec;
use haft_definition::check;
use haft_template::{EscapeContext, Scope, Template, Values};
use serde_json::{Map, Value};
use tokio::sync::Semaphore;

use super::error::FileError;
use super::read::Reading;
use super::roots::Files;
use super::work::in_place;
use super::write::Writing;

/// Runs `file_read` tools.
#[derive(Debug, Clone)]
pub struct FileReadExecutor {
    files: Files,
}

impl FileReadExecutor {
    /// Makes the executor of these roots.
    pub fn new(files: Files) -> Self {
        Self { files }
    }
}

impl Executor for FileReadExecutor {
    fn kind(&self) -> Kind {
        Kind::FileRead
    }

    fn available(&self, spec: &ToolSpec) -> Result<(), Problem> {
        let Implementation::FileRead(file) = &spec.implementation else { return Err(wrong(Kind::FileRead)) };
        self.files.find(file.root.as_deref()).map(|_| ())
    }

    fn prepare(
        &self,
        spec: &Arc<ToolSpec>,
        _folder: Option<&str>,
    ) -> Result<Arc<dyn Prepared>, Vec<Problem>> {
        let Implementation::FileRead(file) = &spec.implementation else {
            return Err(vec![wrong(Kind::FileRead)]);
        };
        let mut plan = Plan::of(spec, &self.files);
        let path = plan.template("path", &file.path);
        let root = self.files.find(file.root.as_deref());
        let (root, path) = plan.settle(root, path)?;
        let reading =
            Reading { root, encoding: file.encoding, most: spec.execution.limits.max_response_bytes };
        Ok(Arc::new(Ready {
            templates: vec![path],
            version: plan.version,
            places: plan.places,
            job: Job::Read(reading),
        }))
    }
}

/// Runs `file_write` tools.
#[derive(Debug, Clone)]
pub struct FileWriteExecutor {
    files: Files,
}

impl FileWriteExecutor {
    /// Makes the executor of these roots.
    pub fn new(files: Files) -> Self {
        Self { files }
    }
}

impl Executor for FileWriteExecutor {
    fn kind(&self) -> Kind {
        Kind::FileWrite
    }

    fn available(&self, spec: &ToolSpec) -> Result<(), Problem> {
        let Implementation::FileWrite(file) = &spec.implementation else {
            return Err(wrong(Kind::FileWrite));
        };
        let root = self.files.find(file.root.as_deref())?;
        if root.read_only {
            let message = format!("the sandbox `{}` is read-only", root.name);
            return Err(Problem::new("implementation.root", "read_only_root", message));
        }
        Ok(())
    }

    fn prepare(
        &self,
        spec: &Arc<ToolSpec>,
        _folder: Option<&str>,
    ) -> Result<Arc<dyn Prepared>, Vec<Problem>> {
        let Implementation::FileWrite(file) = &spec.implementation else {
            return Err(vec![wrong(Kind::FileWrite)]);
        };
        let mut plan = Plan::of(spec, &self.files);
        let path = plan.template("path", &file.path);
        let content = plan.template("content", &file.content);
        let root = self.available(spec).and_then(|()| self.files.find(file.root.as_deref()));
        let (root, (path, content)) = plan.settle(root, path.zip(content))?;
        let writing = Writing {
            root,
            encoding: file.encoding,
            mode: file.mode,
            mkdir: file.mkdir,
            most: spec.execution.limits.max_request_bytes,
        };
        let templates = vec![path, content];
        Ok(Arc::new(Ready {
            templates,
            version: plan.version,
            places: plan.places,
            job: Job::Write(writing),
        }))
    }
}

fn wrong(kind: Kind) -> Problem {
    Problem::new("implementation.type", "wrong_type", format!("expected `{}`", kind.as_str()))
}

/// What both executors collect while they prepare a tool.
struct Plan {
    scope: Scope,
    problems: Vec<Problem>,
    version: String,
    places: Arc<Semaphore>,
}

impl Plan {
    fn of(spec: &ToolSpec, files: &Files) -> Self {
        Self {
            scope: Scope::from_schema(&spec.input_schema),
            problems: check::faults_of_implementation(spec),
            version: spec.version.as_str().to_owned(),
            places: Arc::clone(&files.places),
        }
    }

    fn template(&mut self, field: &str, text: &str) -> Option<Template> {
        let field = format!("implementation.{field}");
        match Template::parse(Notation::Braces, text, &self.scope) {
            Ok(template) => Some(template),
            Err(error) => {
                if self.problems.iter().all(|known| known.field != field) {
                    self.problems.push(error.to_problem(field));
                }
                None
            }
        }
    }

    fn settle<T>(
        &mut self,
        root: Result<&super::Root, Problem>,
        templates: Option<T>,
    ) -> Result<(super::Root, T), Vec<Problem>> {
        match (root, templates) {
            (Ok(root), Some(templates)) if self.problems.is_empty() => Ok((root.clone(), templates)),
            (root, _) => {
                self.problems.extend(root.err());
                Err(std::mem::take(&mut self.problems))
            }
        }
    }
}

#[derive(Debug, Clone)]
enum Job {
    Read(Reading),
    Write(Writing),
}

impl Job {
    fn run(&self, texts: &[String]) -> Result<Value, FileError> {
        let text = |index: usize| texts.get(index).map(String::as_str).unwrap_or_default();
        match self {
            Job::Read(reading) => reading.run(text(0)),
            Job::Write(writing) => writing.run(text(0), text(1)),
        }
    }
}

/// A prepared file tool: the templates of its path, and of its content.
struct Ready {
    templates: Vec<Template>,
    version: String,
    places: Arc<Semaphore>,
    job: Job,
}

impl Prepared for Ready {
    fn run<'a>(&'a self, call: &'a CallContext, args: &'a Map<String, Value>) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            let texts = self.texts(call, args).await?;
            let job = self.job.clone();
            in_place(&self.places, move || job.run(&texts)).await
        })
    }
}

impl Ready {
    async fn texts(&self, call: &CallContext, args: &Map<String, Value>) -> Result<Vec<String>, CallError> {
        let names: BTreeSet<&str> = self.templates.iter().flat_map(Template::secrets).collect();
        let mut secrets: BTreeMap<&str, Secret> = BTreeMap::new();
        for name in names {
            if let Some(secret) = call.secret(name).await? {
                secrets.insert(name, secret);
            }
        }
        let values = Values { args, steps: &Map::new(), secrets: &secrets, version: &self.version };
        let rendered = self.templates.iter().map(|template| template.render(EscapeContext::Text, &values));
        Ok(rendered.map(|text| text.map(|text| text.text)).collect::<Result<_, _>>()?)
    }
}
