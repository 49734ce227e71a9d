//! Asks the model, shows its answer as it arrives, and stores it.

use futures_util::StreamExt;
use haft_core::outcome::{CallError, ErrorCode};
use haft_core::run::{AnswerStep, RunUsage, StepBody};
use serde_json::Value;

use super::context::Pressure;
use super::control::Stop;
use super::event::RunEvent;
use super::progress::{BROKEN, CANCELLED, MALFORMED_CALL};
use super::session::{LoopExit, Session, StepTimer};
use super::tokens;
use super::usage::usage_of;
use crate::model::{
    ContentPart, FinishReason, ModelError, ModelErrorKind, ModelEvent, ModelRequest, ModelResponse,
    ResponseCollector, ToolCall, find_text_calls,
};

impl Session {
    /// Asks the model for its next answer.
    pub(super) async fn ask(&mut self) -> Result<(), LoopExit> {
        self.check_stop()?;
        self.check_request()?;
        self.refresh_tools().await?;
        self.shorten(Pressure::Window).await?;
        let timer = self.start_timer();
        let mut response = self.answer(timer).await?;
        if let Err(error) = &response
            && error.kind == ModelErrorKind::ContextTooLong
            && self.shorten(Pressure::Rejected).await?
        {
            response = self.answer(timer).await?;
        }
        match response {
            Ok(response) => self.store_answer(timer, response).await,
            Err(error) => Err(model_failed(&error).into()),
        }
    }

    pub(super) async fn refresh_tools(&mut self) -> Result<(), CallError> {
        let tools = self.host.tools().await?;
        if self.tools.as_deref() != Some(tools.as_slice()) {
            self.tools_size = tokens::of_tools(&tools);
            self.tools = Some(tools.into());
        }
        Ok(())
    }

    /// Streams one answer. What was said before it broke off is stored.
    async fn answer(&mut self, timer: StepTimer) -> Result<Result<ModelResponse, ModelError>, LoopExit> {
        let request = self.request();
        let mut collector = ResponseCollector::default();
        let stop = match self.stream(&request, &mut collector).await {
            Ok(()) => return Ok(collector.finish()),
            Err(stop) => stop,
        };
        let reason = match &stop {
            // Another node asks the model again.
            Interruption::Stopped(Stop::Released) => return Err(LoopExit::Stopped(Stop::Released)),
            Interruption::Stopped(Stop::Cancelled) => CANCELLED,
            Interruption::Stopped(Stop::DeadlineExceeded) | Interruption::Failed(_) => BROKEN,
        };
        self.store_partial(timer, collector.content(), reason).await?;
        match stop {
            Interruption::Stopped(stop) => Err(LoopExit::Stopped(stop)),
            Interruption::Failed(error) => Ok(Err(error)),
        }
    }

    async fn stream(
        &self,
        request: &ModelRequest,
        collector: &mut ResponseCollector,
    ) -> Result<(), Interruption> {
        let mut events = self.model.stream(request);
        let stopped = self.stop.stopped();
        tokio::pin!(stopped);
        loop {
            let event = tokio::select! {
                biased;
                stop = &mut stopped => return Err(Interruption::Stopped(stop)),
                event = events.next() => event,
            };
            let Some(event) = event else { return Ok(()) };
            let event = event.map_err(Interruption::Failed)?;
            collector.push(&event);
            match event {
                ModelEvent::TextDelta { text } => self.host.emit(RunEvent::TextDelta { text }),
                ModelEvent::ReasoningDelta { text } => self.host.emit(RunEvent::ReasoningDelta { text }),
                _ => {}
            }
        }
    }

    async fn store_answer(&mut self, timer: StepTimer, response: ModelResponse) -> Result<(), LoopExit> {
        let (usage, mut finish) = (usage_of(&response), response.finish);
        let ModelResponse { model, mut content, .. } = response;
        if let Some(calls) = self.text_calls(&content) {
            content.retain(|part| !matches!(part, ContentPart::Text { .. }));
            content.extend(calls.into_iter().map(ContentPart::ToolCall));
            finish = FinishReason::ToolCalls;
        }
        self.make_ids_unique(&mut content);
        let answer =
            AnswerStep { model, content: to_json(&content), finish_reason: reason(finish).to_owned(), usage };
        self.append(timer, vec![StepBody::Answer(answer)]).await
    }

    /// Stores what the model said before it was cut off; a call is not kept, because it was not made.
    async fn store_partial(
        &mut self,
        timer: StepTimer,
        content: &[ContentPart],
        reason: &str,
    ) -> Result<(), LoopExit> {
        let has_text =
            |part: &ContentPart| matches!(part, ContentPart::Text { text } if !text.trim().is_empty());
        if !content.iter().any(has_text) {
            return Ok(());
        }
        let said: Vec<&ContentPart> =
            content.iter().filter(|part| !matches!(part, ContentPart::ToolCall(_))).collect();
        let answer = AnswerStep {
            model: self.model.name().to_owned(),
            content: serde_json::to_value(said).unwrap_or_default(),
            finish_reason: reason.to_owned(),
            usage: RunUsage::default(),
        };
        self.append(timer, vec![StepBody::Answer(answer)]).await
    }

    /// Reads the calls of an answer whose text consists of calls, for models without tool calling. Other text is never
    /// a call, and no text is ever a result.
    fn text_calls(&self, content: &[ContentPart]) -> Option<Vec<ToolCall>> {
        let tools = self.tools.as_deref().filter(|tools| !tools.is_empty())?;
        if content.iter().any(|part| matches!(part, ContentPart::ToolCall(_))) {
            return None;
        }
        let texts = content.iter().filter_map(|part| match part {
            ContentPart::Text { text } => Some(text.as_str()),
            _ => None,
        });
        let text = texts.collect::<Vec<_>>().join("\n");
        if !text.trim_start().starts_with(['{', '[', '`', '<']) {
            return None;
        }
        let found = find_text_calls(&text, tools.iter().map(|tool| tool.definition.name.as_str()));
        (!found.calls.is_empty() && found.text.trim().is_empty()).then_some(found.calls)
    }

    /// Renames calls whose id another call of the conversation has: some models number their calls from 0 in every
    /// answer, and other providers reject that.
    fn make_ids_unique(&mut self, content: &mut [ContentPart]) {
        let number = self.next_number();
        for (index, part) in content.iter_mut().enumerate() {
            if let ContentPart::ToolCall(call) = part
                && !self.call_ids.insert(call.id.clone())
            {
                call.id = format!("call_{}_{number}_{index}", self.run.id.0.simple());
                self.call_ids.insert(call.id.clone());
            }
        }
    }
}

/// Why a stream was given up.
enum Interruption {
    Stopped(Stop),
    Failed(ModelError),
}

fn to_json(content: &[ContentPart]) -> Value {
    // Content parts always serialise; the fallback keeps the function total.
    serde_json::to_value(content).unwrap_or_default()
}

fn reason(finish: FinishReason) -> &'static str {
    match finish {
        FinishReason::Stop => "stop",
        FinishReason::ToolCalls => "tool_calls",
        FinishReason::Length => "length",
        FinishReason::ContentFilter => "content_filter",
        FinishReason::Refusal => "refusal",
        FinishReason::MalformedCall => MALFORMED_CALL,
    }
}

/// Returns the error of a run whose model failed. A model above it does not read the words of the provider.
pub(super) fn model_failed(error: &ModelError) -> CallError {
    CallError::new(ErrorCode::ModelError, error.to_string())
        .retryable(error.kind.is_temporary())
        .for_model(format!("the model of the agent failed ({})", error.kind.as_str()))
}
