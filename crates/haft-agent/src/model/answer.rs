//! Builds the events of an answer from the pieces of any wire format, within limits.

use std::collections::{HashMap, HashSet, VecDeque};

use serde_json::Value;
use uuid::Uuid;

use super::arguments::{from_value, parse_arguments};
use super::error::{Failure, ModelErrorKind};
use super::event::{FinishReason, ModelEvent, Usage};
use super::image::ImageSource;
use super::request::{ReasoningProof, ToolCall};

/// The maximum number of tool calls in one answer.
pub const MAX_TOOL_CALLS: usize = 128;

/// The maximum size of the arguments of one call.
pub const MAX_ARGUMENTS_BYTES: usize = 1024 * 1024;

/// The maximum length of an id or a name that a provider sends.
const MAX_NAME_BYTES: usize = 256;

/// A tool call that the provider has not completed yet.
struct OpenCall {
    index: usize,
    id: String,
    name: String,
    arguments: String,
    proof: Option<ReasoningProof>,
}

/// The events of one answer.
#[derive(Default)]
pub(super) struct Answer {
    events: VecDeque<ModelEvent>,
    /// Open calls by the key that the wire format has for them.
    open: HashMap<u64, OpenCall>,
    ids: HashSet<String>,
    calls: usize,
    usage: Option<Usage>,
    reason: Option<FinishReason>,
    finished: bool,
    refused: bool,
    is_reasoning: bool,
}

impl Answer {
    /// Takes the next event.
    pub(super) fn pop(&mut self) -> Option<ModelEvent> {
        self.events.pop_front()
    }

    /// Returns whether there is an event to take.
    pub(super) fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    /// Returns whether the answer is complete.
    pub(super) fn is_finished(&self) -> bool {
        self.finished
    }

    /// Returns whether the provider said why the answer ended.
    pub(super) fn has_reason(&self) -> bool {
        self.reason.is_some()
    }

    pub(super) fn text(&mut self, text: &str) {
        if !text.is_empty() {
            self.end_reasoning();
            self.events.push_back(ModelEvent::TextDelta { text: text.to_owned() });
        }
    }

    /// Adds text of a refusal.
    pub(super) fn refusal(&mut self, text: &str) {
        self.refused |= !text.is_empty();
        self.text(text);
    }

    pub(super) fn reasoning(&mut self, text: &str) {
        if !text.is_empty() {
            self.is_reasoning = true;
            self.events.push_back(ModelEvent::ReasoningDelta { text: text.to_owned() });
        }
    }

    /// Completes a block of reasoning.
    pub(super) fn reasoning_end(&mut self, proof: Option<ReasoningProof>) {
        if self.is_reasoning || proof.is_some() {
            self.is_reasoning = false;
            self.events.push_back(ModelEvent::ReasoningEnd { proof });
        }
    }

    /// Completes reasoning for formats that do not mark its end.
    fn end_reasoning(&mut self) {
        self.reasoning_end(None);
    }

    pub(super) fn image(&mut self, source: ImageSource) {
        self.end_reasoning();
        self.events.push_back(ModelEvent::Image { source });
    }

    /// Returns whether a call with this key is open.
    pub(super) fn has_call(&self, key: u64) -> bool {
        self.open.contains_key(&key)
    }

    /// Returns whether the arguments of an open call are a whole object already.
    pub(super) fn is_call_whole(&self, key: u64) -> bool {
        let call = self.open.get(&key).filter(|call| !call.arguments.is_empty());
        call.is_some_and(|call| parse_arguments(&call.arguments).is_object())
    }

    /// Starts a call. Missing ids and ids that another call of the answer has are replaced.
    pub(super) fn call_start(&mut self, key: u64, id: Option<&str>, name: &str) -> Result<(), Failure> {
        if self.calls >= MAX_TOOL_CALLS {
            return Err(Failure::new(ModelErrorKind::TooManyToolCalls, ""));
        }
        if name.len() > MAX_NAME_BYTES {
            return Err(too_large("name of a tool call", MAX_NAME_BYTES));
        }
        self.end_reasoning();
        self.call_end(key)?;
        let id = self.unique_id(id);
        let index = self.calls;
        self.calls += 1;
        self.events.push_back(ModelEvent::ToolCallStart { index, id: id.clone(), name: name.to_owned() });
        let call = OpenCall { index, id, name: name.to_owned(), arguments: String::new(), proof: None };
        self.open.insert(key, call);
        Ok(())
    }

    fn unique_id(&mut self, id: Option<&str>) -> String {
        let usable = id.filter(|id| !id.trim().is_empty() && id.len() <= MAX_NAME_BYTES);
        if let Some(id) = usable
            && self.ids.insert(id.to_owned())
        {
            return id.to_owned();
        }
        let id = format!("call_{}", Uuid::new_v4().simple());
        self.ids.insert(id.clone());
        id
    }

    /// Adds to the arguments of a call.
    pub(super) fn call_arguments(&mut self, key: u64, more: &str) -> Result<(), Failure> {
        if more.is_empty() {
            return Ok(());
        }
        let Some(call) = self.open.get_mut(&key) else {
            return Err(Failure::invalid("arguments of a tool call that was not started"));
        };
        if call.arguments.len() + more.len() > MAX_ARGUMENTS_BYTES {
            return Err(too_large("arguments of a tool call", MAX_ARGUMENTS_BYTES));
        }
        call.arguments.push_str(more);
        self.events.push_back(ModelEvent::ToolCallDelta { index: call.index, arguments: more.to_owned() });
        Ok(())
    }

    /// Replaces the arguments that were collected, for formats that repeat them at the end.
    pub(super) fn call_replace(&mut self, key: u64, arguments: &Value) -> Result<(), Failure> {
        let text = match arguments {
            Value::String(text) => text.clone(),
            Value::Null => String::new(),
            other => other.to_string(),
        };
        let is_first = self.open.get(&key).is_some_and(|call| call.arguments.is_empty());
        if is_first {
            return self.call_arguments(key, &text);
        }
        if text.len() > MAX_ARGUMENTS_BYTES {
            return Err(too_large("arguments of a tool call", MAX_ARGUMENTS_BYTES));
        }
        if let Some(call) = self.open.get_mut(&key).filter(|_| !text.is_empty()) {
            call.arguments = text;
        }
        Ok(())
    }

    /// Attaches what the provider needs to accept the call again.
    pub(super) fn call_proof(&mut self, key: u64, proof: ReasoningProof) {
        if let Some(call) = self.open.get_mut(&key) {
            call.proof = Some(proof);
        }
    }

    /// Completes a call, if it is open.
    pub(super) fn call_end(&mut self, key: u64) -> Result<(), Failure> {
        let Some(call) = self.open.remove(&key) else { return Ok(()) };
        if call.name.is_empty() {
            return Err(Failure::invalid("a tool call without a name"));
        }
        let OpenCall { index, id, name, arguments, proof } = call;
        let call = ToolCall { id, name, arguments: parse_arguments(&arguments), proof };
        self.events.push_back(ModelEvent::ToolCallEnd { index, call });
        Ok(())
    }

    /// Adds a call that arrived in one piece.
    pub(super) fn whole_call(
        &mut self,
        id: Option<&str>,
        name: &str,
        arguments: &Value,
        proof: Option<ReasoningProof>,
    ) -> Result<(), Failure> {
        // No wire format uses this key.
        let key = u64::MAX;
        let arguments = from_value(arguments);
        self.call_start(key, id, name)?;
        self.call_replace(key, &arguments)?;
        if let Some(proof) = proof {
            self.call_proof(key, proof);
        }
        self.call_end(key)
    }

    pub(super) fn usage(&mut self, usage: Usage) {
        self.usage = Some(usage);
    }

    /// Returns the usage so far, for formats that send it in parts.
    pub(super) fn usage_so_far(&self) -> Usage {
        self.usage.unwrap_or_default()
    }

    /// Records why the answer ends; the answer goes on until [`Answer::finish`].
    pub(super) fn reason(&mut self, reason: FinishReason) {
        self.reason = Some(reason);
    }

    /// Completes the answer: open calls, usage, and the reason.
    pub(super) fn finish(&mut self) -> Result<(), Failure> {
        if self.finished {
            return Ok(());
        }
        self.end_reasoning();
        let mut keys: Vec<(usize, u64)> = self.open.iter().map(|(key, call)| (call.index, *key)).collect();
        keys.sort_unstable();
        let was_cut = self.reason == Some(FinishReason::Length);
        for (_, key) in keys {
            if was_cut {
                // Half a call must not run.
                self.open.remove(&key);
            } else {
                self.call_end(key)?;
            }
        }
        if let Some(usage) = self.usage {
            self.events.push_back(ModelEvent::Usage { usage, cost: None });
        }
        let reason = match self.reason {
            Some(FinishReason::Stop) | None if self.calls > 0 => FinishReason::ToolCalls,
            Some(FinishReason::Stop) | None if self.refused => FinishReason::Refusal,
            Some(reason) => reason,
            None => FinishReason::Stop,
        };
        self.events.push_back(ModelEvent::Finish { reason });
        self.finished = true;
        Ok(())
    }
}

fn too_large(part: &'static str, limit: usize) -> Failure {
    Failure::new(ModelErrorKind::TooLarge { part, limit }, "")
}
