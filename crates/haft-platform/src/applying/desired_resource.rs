//! An agent, a pipeline or a code artifact as a folder defines it.

use haft_core::agent::AgentDefinition;
use haft_core::tool::Status;

/// A resource of the folder.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct DesiredResource<S> {
    pub(super) file: String,
    pub(super) definition: S,
    /// The value in the file; without one, the stored value is kept.
    pub(super) enabled: Option<bool>,
    /// The value in the file; without one, the resource is published.
    pub(super) status: Option<Status>,
}

pub(super) type DesiredAgent = DesiredResource<AgentDefinition>;
