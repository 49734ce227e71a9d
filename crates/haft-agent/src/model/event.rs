//! What a model sends while it answers.

use serde::{Deserialize, Serialize};

use super::image::ImageSource;
use super::price::Cost;
use super::request::{ReasoningProof, ToolCall};

/// One event of an answer.
///
/// An answer starts with one `start`, and ends with one `finish`, unless it fails. Text, reasoning and tool calls may
/// alternate. A tool call that the maximum number of tokens cut off has a start and no end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ModelEvent {
    /// The model answers.
    Start {
        /// The name of the model that answers; with a fallback it may be the second one.
        model: String,
    },
    /// More text of the answer.
    TextDelta {
        /// The text.
        text: String,
    },
    /// More text of the reasoning.
    ReasoningDelta {
        /// The text.
        text: String,
    },
    /// A block of reasoning is complete.
    ReasoningEnd {
        /// What the provider needs to accept it again.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        proof: Option<ReasoningProof>,
    },
    /// The model starts to write a tool call.
    ToolCallStart {
        /// The number of the call in this answer, from 0.
        index: usize,
        /// The id of the call.
        id: String,
        /// The name of the tool.
        name: String,
    },
    /// More text of the arguments of a call.
    ToolCallDelta {
        /// The number of the call.
        index: usize,
        /// Part of the JSON text.
        arguments: String,
    },
    /// A tool call is complete.
    ToolCallEnd {
        /// The number of the call.
        index: usize,
        /// The call.
        call: ToolCall,
    },
    /// An image of the answer.
    Image {
        /// Its bytes or its address.
        source: ImageSource,
    },
    /// The tokens of the request and the answer.
    Usage {
        /// The number of tokens.
        usage: Usage,
        /// The cost, if prices are configured.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        cost: Option<Cost>,
    },
    /// The answer is complete.
    Finish {
        /// Why it ended.
        reason: FinishReason,
    },
}

/// Why an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// The model was done.
    Stop,
    /// The model waits for the results of its tool calls.
    ToolCalls,
    /// The maximum number of tokens was reached: the answer is incomplete.
    Length,
    /// A filter of the provider ended the answer.
    ContentFilter,
    /// The model refused to answer; its text says why.
    Refusal,
    /// The model wrote a malformed tool call.
    MalformedCall,
}

/// The tokens of one request and its answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// All tokens of the request, cached ones included.
    pub input: u64,
    /// All tokens of the answer, reasoning included.
    pub output: u64,
    /// The tokens of the request that the provider read from its cache.
    pub cached: u64,
    /// The tokens of the request that the provider wrote to its cache.
    pub cache_written: u64,
    /// The tokens of the answer that were reasoning.
    pub reasoning: u64,
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.cached = self.cached.saturating_add(other.cached);
        self.cache_written = self.cache_written.saturating_add(other.cache_written);
        self.reasoning = self.reasoning.saturating_add(other.reasoning);
    }
}
