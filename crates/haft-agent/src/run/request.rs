//! Builds the next request to the model.

use haft_core::chat::MessageRole;

use super::progress::answers;
use super::session::Session;
use super::transcript::for_request;
use crate::model::{ModelMessage, ModelRequest, OutputSchema, ReasoningEffort, ToolChoice};

impl Session {
    /// Returns the next request.
    pub(super) fn request(&self) -> ModelRequest {
        let definition = self.definition();
        let tools = self.tools.as_deref().unwrap_or_default();
        let mut messages = for_request(&self.input, &self.steps);
        let mut tool_choice = ToolChoice::Auto;
        let limit = definition.max_iterations;
        // The last answer must be the final one: nobody would read the results of its calls.
        if !tools.is_empty() && answers(&self.steps).count() + 1 >= limit as usize {
            tool_choice = ToolChoice::None;
            let note = format!(
                "This is answer {limit} of {limit}, the last one of this run. Answer now, without calling tools, with what you know."
            );
            messages.push(ModelMessage::new(MessageRole::System, note));
        }
        ModelRequest {
            system: Some(self.system.clone()).filter(|system| !system.trim().is_empty()),
            messages,
            tools: tools.iter().map(|tool| tool.definition.clone()).collect(),
            tool_choice,
            output_schema: definition.output_schema.clone().map(|schema| OutputSchema {
                name: "answer".to_owned(),
                schema,
                strict: false,
            }),
            max_tokens: definition.model.max_tokens,
            temperature: definition.model.temperature,
            reasoning: definition.model.reasoning.as_deref().and_then(effort),
        }
    }
}

fn effort(name: &str) -> Option<ReasoningEffort> {
    [ReasoningEffort::Low, ReasoningEffort::Medium, ReasoningEffort::High]
        .into_iter()
        .find(|effort| effort.as_str() == name)
}
