//! Which executors this program has.

use std::collections::HashMap;
use std::sync::Arc;

use haft_core::executor::{Executor, Prepared};
use haft_core::implementation::Kind;
use haft_core::problem::Problem;
use haft_core::spec::ToolSpec;

/// One executor per kind of implementation.
#[derive(Clone, Default)]
pub struct Executors {
    by_kind: HashMap<Kind, Arc<dyn Executor>>,
}

impl Executors {
    /// Adds an executor; a later one of the same kind replaces an earlier one.
    #[must_use]
    pub fn with(mut self, executor: Arc<dyn Executor>) -> Self {
        self.by_kind.insert(executor.kind(), executor);
        self
    }

    /// Tells, cheaply, whether a tool could run: its kind is known, and what it names is there.
    pub fn available(&self, spec: &ToolSpec) -> Result<(), Problem> {
        self.executor(spec)?.available(spec)
    }

    /// Looks at what takes more than a moment; a kind without an executor has nothing to say.
    pub async fn examine(&self, spec: &ToolSpec) -> Vec<Problem> {
        match self.executor(spec) {
            Ok(executor) => executor.examine(spec).await,
            Err(_) => Vec::new(),
        }
    }

    /// Compiles a tool whose bundle has this folder, relative to the home folder.
    pub fn prepare(
        &self,
        spec: &Arc<ToolSpec>,
        folder: Option<&str>,
    ) -> Result<Arc<dyn Prepared>, Vec<Problem>> {
        self.executor(spec).map_err(|problem| vec![problem])?.prepare(spec, folder)
    }

    fn executor(&self, spec: &ToolSpec) -> Result<&Arc<dyn Executor>, Problem> {
        let kind = spec.implementation.kind();
        self.by_kind.get(&kind).ok_or_else(|| {
            let mut known: Vec<_> = self.by_kind.keys().map(|kind| format!("`{}`", kind.as_str())).collect();
            known.sort();
            let message =
                format!("this program has no executor for `{}`; it runs {}", kind.as_str(), known.join(", "));
            Problem::new("implementation.type", "no_executor", message)
        })
    }
}
