//! From what a request says to one tool.

use std::sync::Arc;

use haft_core::catalog::UnreadableFile;
use haft_core::name::TenantId;
use haft_core::outcome::{CallError, ErrorCode};
use haft_core::reference::ToolRef;
use haft_core::runnable::Mode;
use serde_json::json;

use crate::registry::entry::Entry;
use crate::registry::snapshot::Snapshot;

/// Why a reference names no tool.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    /// There is none.
    #[error("there is no tool `{0}`")]
    NotFound(String),
    /// There are several, none of which comes first.
    #[error("`{name}` is ambiguous; name one of: {}", candidates.join(", "))]
    Ambiguous {
        /// What was asked for.
        name: String,
        /// What it could mean.
        candidates: Vec<String>,
    },
    /// It is a file that cannot be read.
    #[error("`{name}` is not ready: {error}")]
    Unreadable {
        /// What was asked for.
        name: String,
        /// Which file it is and what is wrong with it.
        error: String,
    },
}

impl From<ResolveError> for CallError {
    fn from(error: ResolveError) -> Self {
        let message = error.to_string();
        match error {
            ResolveError::NotFound(_) => CallError::new(ErrorCode::NotFound, message),
            ResolveError::Ambiguous { candidates, .. } => CallError::new(ErrorCode::AmbiguousName, message)
                .with_details(json!({"candidates": candidates})),
            ResolveError::Unreadable { name, .. } => {
                CallError::new(ErrorCode::NotReady, message).for_model(format!("`{name}` is not ready"))
            }
        }
    }
}

impl Snapshot {
    /// Finds the one tool that a reference names: built-in, then user, then toolset, then MCP; without a
    /// version the newest by creation.
    pub fn resolve(&self, tenant: &TenantId, reference: &ToolRef) -> Result<&Arc<Entry>, ResolveError> {
        self.resolve_among(tenant, reference, |_| true)
    }

    /// Finds the tool that a call means: in production a newer version that is only a draft does not stand in
    /// the way of a published one.
    pub fn resolve_in(
        &self,
        tenant: &TenantId,
        reference: &ToolRef,
        mode: Mode,
    ) -> Result<&Arc<Entry>, ResolveError> {
        if mode == Mode::Production {
            let published = self.resolve_among(tenant, reference, |entry| entry.tool.published.is_some());
            if !matches!(published, Err(ResolveError::NotFound(_) | ResolveError::Unreadable { .. })) {
                return published;
            }
        }
        self.resolve(tenant, reference)
    }

    fn resolve_among(
        &self,
        tenant: &TenantId,
        reference: &ToolRef,
        counts: impl Fn(&Entry) -> bool,
    ) -> Result<&Arc<Entry>, ResolveError> {
        let not_found = || ResolveError::NotFound(reference.to_string());
        let (bundle, name, version) = match reference {
            ToolRef::Id(id) => return self.tool(tenant, *id).ok_or_else(not_found),
            ToolRef::Name { bundle, name, version } => (bundle, name, version),
        };
        let fitting = || {
            self.names.get(name).into_iter().flat_map(|list| list.iter()).filter(|entry| {
                let tool = &entry.tool;
                tool.tenant == *tenant
                    && bundle.as_ref().is_none_or(|bundle| tool.bundle == *bundle)
                    && version.as_ref().is_none_or(|version| tool.spec.version == *version)
                    && counts(entry)
            })
        };
        let Some(first) = fitting().map(|entry| entry.tool.source).min() else {
            let unreadable = |file: &Arc<UnreadableFile>| ResolveError::Unreadable {
                name: reference.to_string(),
                error: file.error.clone(),
            };
            return Err(self.unreadable_named(tenant, reference).map_or_else(not_found, unreadable));
        };
        let best = || fitting().filter(|entry| entry.tool.source == first);
        let newest =
            best().max_by_key(|entry| (entry.tool.created_at, entry.tool.id)).ok_or_else(not_found)?;
        if best().any(|entry| entry.tool.bundle_id != newest.tool.bundle_id) {
            let mut candidates: Vec<_> = best().map(|entry| entry.qualified.to_string()).collect();
            candidates.sort();
            return Err(ResolveError::Ambiguous { name: name.to_string(), candidates });
        }
        Ok(newest)
    }

    /// Finds the file that cannot be read and whose name is the one that a reference says.
    pub fn unreadable_named(&self, tenant: &TenantId, reference: &ToolRef) -> Option<&Arc<UnreadableFile>> {
        let ToolRef::Name { bundle, name, .. } = reference else { return None };
        self.unreadable(tenant).find(|file| {
            file.name == name.as_str() && bundle.as_ref().is_none_or(|bundle| file.bundle == *bundle)
        })
    }
}
