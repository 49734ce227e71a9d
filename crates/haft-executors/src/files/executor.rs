//! The executors of `file_read` and `file_write`.

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
use haft_template::{EscapeContext, RenderError, Scope, Template, Values};
use serde_json::{Map, Value};

use super::error::FileError;
use super::read::FileRead;
use super::roots::{Access, Files};
use super::work::run_blocking;
use super::write::FileWrite;
use crate::preview;

/// Runs `file_read` tools.
#[derive(Debug, Clone)]
pub struct FileReadExecutor {
    files: Files,
}

impl FileReadExecutor {
    /// Creates the executor for these roots.
    pub fn new(files: Files) -> Self {
        Self { files }
    }
}

impl Executor for FileReadExecutor {
    fn kind(&self) -> Kind {
        Kind::FileRead
    }

    fn available(&self, spec: &ToolSpec) -> Result<(), Problem> {
        let Implementation::FileRead(file) = &spec.implementation else {
            return Err(wrong_type(Kind::FileRead));
        };
        self.files.check(file.root.as_deref(), Access::Read).map(drop)
    }

    fn prepare(
        &self,
        spec: &Arc<ToolSpec>,
        _folder: Option<&str>,
    ) -> Result<Arc<dyn Prepared>, Vec<Problem>> {
        let Implementation::FileRead(file) = &spec.implementation else {
            return Err(vec![wrong_type(Kind::FileRead)]);
        };
        let mut preparation = Preparation::new(spec);
        let path = preparation.template("path", &file.path);
        let root = self.files.check(file.root.as_deref(), Access::Read);
        let (root, path) = preparation.finish(root, path)?;
        let reading =
            FileRead { root, encoding: file.encoding, max_bytes: spec.execution.limits.max_response_bytes };
        Ok(Arc::new(PreparedFile {
            templates: vec![path],
            version: preparation.version,
            files: self.files.clone(),
            root: file.root.clone(),
            operation: Operation::Read(reading),
        }))
    }
}

/// Runs `file_write` tools.
#[derive(Debug, Clone)]
pub struct FileWriteExecutor {
    files: Files,
}

impl FileWriteExecutor {
    /// Creates the executor for these roots.
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
            return Err(wrong_type(Kind::FileWrite));
        };
        self.files.check(file.root.as_deref(), Access::Write).map(drop)
    }

    fn prepare(
        &self,
        spec: &Arc<ToolSpec>,
        _folder: Option<&str>,
    ) -> Result<Arc<dyn Prepared>, Vec<Problem>> {
        let Implementation::FileWrite(file) = &spec.implementation else {
            return Err(vec![wrong_type(Kind::FileWrite)]);
        };
        let mut preparation = Preparation::new(spec);
        let path = preparation.template("path", &file.path);
        let content = preparation.template("content", &file.content);
        let root = self.files.check(file.root.as_deref(), Access::Write);
        let (root, (path, content)) = preparation.finish(root, path.zip(content))?;
        let writing = FileWrite {
            root,
            encoding: file.encoding,
            mode: file.mode,
            mkdir: file.mkdir,
            max_bytes: spec.execution.limits.max_request_bytes,
        };
        let templates = vec![path, content];
        Ok(Arc::new(PreparedFile {
            templates,
            version: preparation.version,
            files: self.files.clone(),
            root: file.root.clone(),
            operation: Operation::Write(writing),
        }))
    }
}

fn wrong_type(kind: Kind) -> Problem {
    Problem::new("implementation.type", "wrong_type", format!("expected `{}`", kind.as_str()))
}

/// Collects the parts and problems of a tool while it is prepared.
struct Preparation {
    scope: Scope,
    problems: Vec<Problem>,
    version: String,
}

impl Preparation {
    fn new(spec: &ToolSpec) -> Self {
        Self {
            scope: Scope::from_schema(&spec.input_schema.value()),
            problems: check::implementation_errors(spec),
            version: spec.version.as_str().to_owned(),
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

    fn finish<T>(
        &mut self,
        root: Result<super::Root, Problem>,
        templates: Option<T>,
    ) -> Result<(super::Root, T), Vec<Problem>> {
        match (root, templates) {
            (Ok(root), Some(templates)) if self.problems.is_empty() => Ok((root, templates)),
            (root, _) => {
                self.problems.extend(root.err());
                Err(std::mem::take(&mut self.problems))
            }
        }
    }
}

#[derive(Debug, Clone)]
enum Operation {
    Read(FileRead),
    Write(FileWrite),
}

impl Operation {
    fn run(&self, texts: &[String]) -> Result<Value, FileError> {
        let text = |index: usize| texts.get(index).map(String::as_str).unwrap_or_default();
        match self {
            Operation::Read(reading) => reading.run(text(0)),
            Operation::Write(writing) => writing.run(text(0), text(1)),
        }
    }

    /// Returns the operation in another root.
    fn in_root(&self, root: super::Root) -> Self {
        match self {
            Operation::Read(reading) => Operation::Read(FileRead { root, ..reading.clone() }),
            Operation::Write(writing) => Operation::Write(FileWrite { root, ..writing.clone() }),
        }
    }
}

/// A prepared file tool: the templates of its path and content.
struct PreparedFile {
    templates: Vec<Template>,
    version: String,
    files: Files,
    /// The name of the root; each tenant has its own.
    root: Option<String>,
    operation: Operation,
}

impl Prepared for PreparedFile {
    fn run<'a>(&'a self, call: &'a CallContext, args: &'a Map<String, Value>) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            let texts = self.texts(call, args).await?;
            let root = self.files.of_call(call, self.root.as_deref())?;
            let operation = self.operation.in_root(root);
            run_blocking(&self.files.permits, move || operation.run(&texts)).await
        })
    }

    fn works_with_files(&self) -> bool {
        true
    }

    fn preview(&self, args: &Map<String, Value>) -> Option<String> {
        let secrets = preview::masked(self.templates.iter().flat_map(Template::secrets));
        let texts = self.render(args, &secrets).ok()?;
        let path = texts.first()?;
        let root = self.root.as_ref().map(|root| format!(" in `{root}`")).unwrap_or_default();
        Some(match &self.operation {
            Operation::Read(_) => format!("read the file `{path}`{root}"),
            Operation::Write(_) => {
                let content = texts.get(1).map(String::as_str).unwrap_or_default();
                format!("write {} bytes to the file `{path}`{root}:\n\n{content}", content.len())
            }
        })
    }
}

impl PreparedFile {
    async fn texts(&self, call: &CallContext, args: &Map<String, Value>) -> Result<Vec<String>, CallError> {
        let names: BTreeSet<&str> = self.templates.iter().flat_map(Template::secrets).collect();
        let mut secrets: BTreeMap<&str, Secret> = BTreeMap::new();
        for name in names {
            if let Some(secret) = call.secret(name).await? {
                secrets.insert(name, secret);
            }
        }
        Ok(self.render(args, &secrets)?)
    }

    fn render(
        &self,
        args: &Map<String, Value>,
        secrets: &BTreeMap<&str, Secret>,
    ) -> Result<Vec<String>, RenderError> {
        let values = Values { args, steps: &Map::new(), secrets, version: &self.version };
        let rendered = self.templates.iter().map(|template| template.render(EscapeContext::Text, &values));
        rendered.map(|text| text.map(|text| text.text)).collect()
    }
}
