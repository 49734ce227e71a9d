//! Models of every provider behind one trait, [`Model`].
//!
//! [`connect`] creates a model from its [`ModelSettings`]. A request is a [`ModelRequest`], the answer a stream of
//! [`ModelEvent`]s; [`complete`] collects it. All traffic goes through [`ModelEgress`], the egress guard of the runtime.
//! Dropping a stream cancels the request.
//!
//! This module sends one request and reads one answer. It runs no tools and stores nothing.

mod answer;
mod arguments;
mod collect;
mod connect;
mod egress;
mod error;
mod event;
mod exchange;
mod fallback;
mod http_model;
mod image;
mod name;
mod price;
mod provider;
mod provider_error;

mod request;
mod retrying;
mod script;
mod settings;
mod sse;
mod stream;
mod text_calls;
mod text_tools;
mod wire;

#[cfg(test)]
mod arguments_tests;
#[cfg(test)]
mod text_tools_tests;

pub use answer::{MAX_ARGUMENTS_BYTES, MAX_TOOL_CALLS};
pub use arguments::parse_arguments;
pub use collect::{ModelResponse, ResponseCollector, collect, complete};
pub use connect::connect;
pub use egress::{ModelEgress, ModelEgressError, denied_address};
pub use error::{ModelError, ModelErrorKind};
pub use event::{FinishReason, ModelEvent, Usage};
pub use exchange::{MAX_RESPONSE_BYTES, Timeouts};
pub use fallback::Fallback;
pub use image::ImageSource;
pub use price::{Cost, Prices};
pub use provider::{Provider, ProviderChoice};
pub use request::{
    ContentPart, ModelMessage, ModelRequest, OutputSchema, ReasoningEffort, ReasoningProof, ToolCall,
    ToolChoice, ToolDefinition, ToolResult,
};
pub use retrying::{RetryPolicy, Retrying};
pub use script::{Script, ScriptError, Scripted};
pub use settings::{ConfiguredBy, ModelSettings};
pub use sse::MAX_EVENT_BYTES;
pub use stream::{EventStream, Model};
pub use text_calls::{TextCalls, find_text_calls};
pub use text_tools::TextTools;
