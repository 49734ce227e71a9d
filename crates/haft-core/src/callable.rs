//! What can be called besides tools: agents and retrieval pipelines.

use std::sync::Arc;

use uuid::Uuid;

/// A kind of what can be called besides tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CallableKind {
    /// An agent. A call of it starts a run.
    Agent,
    /// A retrieval pipeline. A call of it queries its documents.
    Pipeline,
}

impl CallableKind {
    /// Returns the word for messages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Pipeline => "pipeline",
        }
    }

    /// Returns the bundle part of patterns: `agents` in `agents:SLUG`, `pipelines` in `pipelines:SLUG`.
    pub const fn bundle(self) -> &'static str {
        match self {
            Self::Agent => "agents",
            Self::Pipeline => "pipelines",
        }
    }
}

/// An agent or a retrieval pipeline, as far as the pipeline of calls has to know it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallableResource {
    /// The kind.
    pub kind: CallableKind,
    /// The id.
    pub id: Uuid,
    /// The slug.
    pub slug: Arc<str>,
    /// The revision to call; 0 if no revision can run.
    pub revision: u32,
}

impl CallableResource {
    /// Returns the name in records and patterns: `agents:SLUG` or `pipelines:SLUG`.
    pub fn qualified(&self) -> String {
        format!("{}:{}", self.kind.bundle(), self.slug)
    }
}
