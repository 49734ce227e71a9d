//! The executors of a program.

use std::collections::HashMap;
use std::sync::Arc;

use haft_core::executor::{Executor, Prepared};
use haft_core::implementation::Kind;
use haft_core::name::TenantId;
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

    /// Checks, without compiling, that the kind of a tool is supported and that what it names exists.
    pub fn available(&self, spec: &ToolSpec) -> Result<(), Problem> {
        self.executor(spec)?.available(spec)
    }

    /// Returns the problem if a tool refers to something that its tenant does not have now.
    pub fn missing_reference(&self, tenant: &TenantId, spec: &ToolSpec) -> Option<Problem> {
        self.of(spec)?.missing_reference(tenant, spec)
    }

    /// Returns the executor of a tool.
    pub(crate) fn of(&self, spec: &ToolSpec) -> Option<&Arc<dyn Executor>> {
        self.by_kind.get(&spec.implementation.kind())
    }

    /// Makes the checks that take longer, such as the syntax of scripts.
    pub async fn examine(&self, spec: &ToolSpec) -> Vec<Problem> {
        match self.executor(spec) {
            Ok(executor) => executor.examine(spec).await,
            Err(_) => Vec::new(),
        }
    }

    /// Compiles a tool; `folder` is that of its bundle, relative to the home folder.
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
            let message = format!(
                "no executor for `{}` in this program; supported: {}",
                kind.as_str(),
                known.join(", ")
            );
            Problem::new("implementation.type", "no_executor", message)
        })
    }
}
