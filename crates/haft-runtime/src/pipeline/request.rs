//! What a surface asks of the pipeline.

use std::sync::Arc;
use std::time::Duration;

use haft_core::executor::EventSink;
use haft_core::name::TenantId;
use haft_core::reference::ToolRef;
use haft_core::runnable::Mode;
pub use haft_core::token::Caller;
use serde_json::{Map, Value};

use crate::registry::Entry;

/// Which tool a call means.
#[derive(Clone)]
pub enum Wanted {
    /// The one that a reference names.
    Named(ToolRef),
    /// One that the surface has found in the registry already.
    Found(Arc<Entry>),
}

impl From<ToolRef> for Wanted {
    fn from(tool: ToolRef) -> Self {
        Wanted::Named(tool)
    }
}

/// What a surface asks for.
#[derive(Clone)]
pub struct Request {
    /// For whom.
    pub tenant: TenantId,
    /// Which tool.
    pub tool: Wanted,
    /// The arguments.
    pub args: Map<String, Value>,
    /// In which mode.
    pub mode: Mode,
    /// Who calls.
    pub caller: Caller,
    /// Through which surface.
    pub surface: &'static str,
    /// A shorter or longer time than the definition's, under a cap.
    pub timeout: Option<Duration>,
    /// The key under which a repetition finds this call.
    pub idempotency_key: Option<String>,
    /// Who watches a call that somebody waits for; one in the background has watchers of its own.
    pub events: Option<Arc<dyn EventSink>>,
    /// What goes into the record only.
    pub labels: Labels,
}

/// What goes into the record only.
#[derive(Debug, Clone, Default)]
pub struct Labels {
    /// The request that brought the call.
    pub request_id: Option<String>,
    /// The chat it belongs to.
    pub chat_id: Option<String>,
    /// The message it belongs to.
    pub message_id: Option<String>,
}
