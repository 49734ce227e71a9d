//! What a surface asks of the pipeline.

use std::sync::Arc;
use std::time::Duration;

use haft_core::executor::EventSink;
pub use haft_core::executor::Principal;
use haft_core::reference::ToolRef;
use haft_core::runnable::Mode;
pub use haft_core::token::Caller;
use serde_json::{Map, Value};

use crate::registry::ResolvedTool;

/// Which tool a call means.
#[derive(Clone)]
pub enum CallTarget {
    /// The one that a reference names.
    Named(ToolRef),
    /// One that the surface has found in the registry just now.
    Found(ResolvedTool),
}

impl From<ToolRef> for CallTarget {
    fn from(tool: ToolRef) -> Self {
        CallTarget::Named(tool)
    }
}

/// What a surface asks of a tool.
#[derive(Clone)]
pub struct Request {
    /// For whom; [`Pipeline::principal`](super::Pipeline::principal) makes one.
    pub principal: Arc<Principal>,
    /// The arguments.
    pub args: Map<String, Value>,
    /// In which mode.
    pub mode: Mode,
    /// Through which surface.
    pub surface: &'static str,
    /// A shorter or longer time than the definition's, under a cap.
    pub timeout: Option<Duration>,
    /// Who watches a call that somebody waits for; one in the background has watchers of its own.
    pub events: Option<Arc<dyn EventSink>>,
    /// What is said of the call itself, if anything.
    pub labels: Option<Box<Labels>>,
}

/// What is said of a call and goes to its record.
#[derive(Debug, Clone, Default)]
pub struct Labels {
    /// The key under which a repetition finds this call.
    pub idempotency_key: Option<String>,
    /// The request that brought the call.
    pub request_id: Option<String>,
    /// The chat it belongs to.
    pub chat_id: Option<String>,
    /// The message it belongs to.
    pub message_id: Option<String>,
}

impl Labels {
    /// Returns the labels of a call that a request of this id brought.
    pub fn of_request(request_id: Option<String>) -> Option<Box<Self>> {
        request_id.map(|id| Box::new(Self { request_id: Some(id), ..Self::default() }))
    }
}
