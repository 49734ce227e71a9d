//! What clients receive.

use haft_agent::run::RunEvent;
use haft_core::id::{ApprovalId, CallId, ChatId, MessageId, RunId};
use haft_core::run::RunStatus;
use serde_json::{Map, Value, json};

use haft_platform::error::ServiceError;
use haft_platform::sent_text::SentText;

/// Where a run belongs.
#[derive(Debug, Clone, Copy)]
pub(super) struct RunContext {
    pub(super) chat: ChatId,
    /// The message of the answer.
    pub(super) message: MessageId,
    pub(super) run: RunId,
}

/// Returns the first frame of an answer; `question` is the message that it answers.
pub(super) fn start(place: &RunContext, question: MessageId, agent: &str) -> Value {
    json!({
        "type": "start", "chat_id": place.chat, "message_id": place.message, "run_id": place.run, "agent": agent,
        "user_message_id": question,
    })
}

/// Returns the frame of an error. The socket stays open.
pub(super) fn error(error: &ServiceError) -> Value {
    let mut frame = json!({"type": "error", "code": error.code, "message": error.message});
    if let (Value::Object(map), Some(details)) = (&mut frame, &error.details) {
        map.insert("details".to_owned(), (**details).clone());
    }
    frame
}

/// Returns the frame of a decision.
pub(super) fn decided(approval: ApprovalId, call: CallId, approved: bool) -> Value {
    json!({"type": "approval_decided", "approval_id": approval, "call_id": call, "approved": approved})
}

/// Returns the answer to a `ping`.
pub(super) fn pong() -> Value {
    json!({"type": "pong"})
}

/// Writes the events of one run as frames.
pub(super) struct RunFrames {
    place: RunContext,
    text: SentText,
    reasoning: SentText,
}

impl RunFrames {
    /// Creates a writer.
    pub(super) fn new(place: RunContext) -> Self {
        Self { place, text: SentText::default(), reasoning: SentText::default() }
    }

    /// Returns the frames of an event.
    pub(super) fn of(&mut self, event: RunEvent) -> Vec<Value> {
        match event {
            RunEvent::TextDelta { text } => {
                self.text.add(&text);
                self.written("text", &text)
            }
            RunEvent::ReasoningDelta { text } => {
                self.reasoning.add(&text);
                self.written("reasoning", &text)
            }
            RunEvent::Answer { text, reasoning, .. } => {
                let mut frames = self.reasoning_rest(&reasoning);
                let rest = self.text.rest(&text).to_owned();
                frames.extend(self.written("text", &rest));
                frames
            }
            // A run that waits has not ended for its client: what follows the decision is shown.
            RunEvent::Start { .. } | RunEvent::End { status: RunStatus::AwaitingApproval, .. } => Vec::new(),
            RunEvent::End { .. } => {
                let mut frame = self.fields(&event);
                frame.insert("message_id".to_owned(), json!(self.place.message));
                vec![Value::Object(frame)]
            }
            RunEvent::Shortened { .. } => {
                self.note("The conversation was shortened to fit the context window.")
            }
            RunEvent::Correction { .. } => self.note("The model was asked to correct its answer."),
            RunEvent::ToolUse { .. }
            | RunEvent::ApprovalRequest { .. }
            | RunEvent::ApprovalDecided { .. } => {
                vec![Value::Object(self.fields(&event))]
            }
        }
    }

    fn reasoning_rest(&mut self, whole: &str) -> Vec<Value> {
        let rest = self.reasoning.rest(whole).to_owned();
        self.written("reasoning", &rest)
    }

    fn written(&self, name: &str, text: &str) -> Vec<Value> {
        if text.is_empty() {
            return Vec::new();
        }
        vec![json!({"type": name, "text": text, "chat_id": self.place.chat, "run_id": self.place.run})]
    }

    fn note(&self, text: &str) -> Vec<Value> {
        self.written("note", text)
    }

    /// Returns the fields of an event, and where its run belongs.
    fn fields(&self, event: &RunEvent) -> Map<String, Value> {
        let mut fields = match serde_json::to_value(event) {
            Ok(Value::Object(fields)) => fields,
            _ => Map::new(),
        };
        fields.insert("chat_id".to_owned(), json!(self.place.chat));
        fields.insert("run_id".to_owned(), json!(self.place.run));
        fields
    }
}

#[cfg(test)]
mod tests {
    use haft_core::run::RunUsage;
    use uuid::Uuid;

    use super::*;

    #[test]
    fn an_answer_is_sent_once() {
        let id = Uuid::from_u128(1);
        let place = RunContext { chat: ChatId(id), message: MessageId(id), run: RunId(id) };
        let mut frames = RunFrames::new(place);
        let delta = |text: &str| RunEvent::TextDelta { text: text.to_owned() };
        let answer = |text: &str, reasoning: &str| RunEvent::Answer {
            step: 1,
            model: "m".to_owned(),
            text: text.to_owned(),
            reasoning: reasoning.to_owned(),
            usage: RunUsage::default(),
        };
        let end = |status| RunEvent::End {
            run_id: RunId(id),
            status,
            output: Some(json!("Hello")),
            error: None,
            usage: RunUsage::default(),
        };
        let events = [
            RunEvent::Start { run_id: RunId(id), agent: "a".to_owned() },
            delta("Hel"),
            answer("Hello", "Hm."),
            answer("Again", ""),
            end(RunStatus::AwaitingApproval),
            end(RunStatus::Success),
        ];
        let sent: Vec<Value> = events.into_iter().flat_map(|event| frames.of(event)).collect();
        let shown: Vec<String> = sent
            .iter()
            .map(|frame| {
                let text = frame["text"].as_str().or(frame["status"].as_str()).unwrap();
                format!("{} {text}", frame["type"].as_str().unwrap())
            })
            .collect();
        assert_eq!(shown, ["text Hel", "reasoning Hm.", "text lo", "text Again", "end success"]);
        let end = sent.last().unwrap();
        assert_eq!(
            (&end["message_id"], &end["chat_id"], &end["output"]),
            (&json!(id), &json!(id), &json!("Hello"))
        );
    }
}
