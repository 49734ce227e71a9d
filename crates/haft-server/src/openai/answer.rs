//! Turns the events of a run into the pieces of one answer. What the tools of the agent do is not part of it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use haft_agent::run::RunEvent;
use haft_core::call::CallStatus;
use haft_core::id::{ApprovalId, CallId, RunId};
use haft_core::problem::excerpt;
use haft_core::run::{RunStatus, RunUsage, StepError};
use serde_json::{Value, json};

use haft_platform::sent_text::SentText;

/// The most tool calls that an answer lists.
const MAX_LISTED_CALLS: usize = 200;
/// How much of the arguments of a waiting call is shown, in characters.
const MAX_SHOWN_ARGS: usize = 300;

/// A piece of an answer.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Piece {
    /// More text.
    Text(String),
    /// More reasoning.
    Reasoning(String),
    /// The model has written all of one answer; another one may follow after tool calls.
    AnswerEnd,
    /// The last piece.
    End(Box<AnswerEnd>),
}

/// How an answer ended.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct AnswerEnd {
    pub(super) run: RunId,
    pub(super) status: RunStatus,
    pub(super) error: Option<StepError>,
    pub(super) usage: RunUsage,
    /// The number of the step with the last answer.
    pub(super) last_answer: u32,
    /// Why the last answer ended, as the step has it. Set by the reader of the step.
    pub(super) finish_reason: String,
    calls: Vec<CallSummary>,
    waiting: Vec<WaitingCall>,
}

#[derive(Debug, Clone, PartialEq)]
struct CallSummary {
    id: String,
    name: String,
    tool: Option<String>,
    status: CallStatus,
    call_id: Option<CallId>,
    duration_ms: Option<f64>,
}

#[derive(Debug, Clone, PartialEq)]
struct WaitingCall {
    approval_id: ApprovalId,
    call_id: CallId,
    tool: String,
    args: Value,
}

impl AnswerEnd {
    /// Returns whether the model refused to answer, or a filter of its provider ended the answer.
    pub(super) fn is_refused(&self) -> bool {
        self.status == RunStatus::Error && matches!(self.finish_reason.as_str(), "refusal" | "content_filter")
    }

    /// Returns what haft adds to the formats of OpenAI.
    pub(super) fn extension(&self) -> Value {
        let calls = self.calls.iter().take(MAX_LISTED_CALLS).map(|call| {
            json!({
                "id": call.id, "name": call.name, "tool": call.tool, "status": call.status,
                "call_id": call.call_id, "duration_ms": call.duration_ms,
            })
        });
        let mut extension = json!({
            "run_id": self.run, "status": self.status, "tool_calls": calls.collect::<Vec<_>>(),
        });
        if let Value::Object(map) = &mut extension
            && !self.waiting.is_empty()
        {
            let waiting = self.waiting.iter().map(|call| {
                let WaitingCall { approval_id, call_id, tool, args } = call;
                json!({"approval_id": approval_id, "call_id": call_id, "tool": tool, "args": args})
            });
            map.insert("approvals".to_owned(), waiting.collect());
        }
        extension
    }

    /// Returns the text for the person whose answer waits for an approval.
    fn waiting_text(&self) -> String {
        let mut text = String::new();
        for WaitingCall { approval_id, tool, args, .. } in &self.waiting {
            let args = excerpt(&args.to_string(), MAX_SHOWN_ARGS);
            let _ = writeln!(
                text,
                "`{tool}` needs approval before it runs with {args}. Decide on the page \"Approvals\", or with \
                 `POST /api/approvals/{approval_id}/approve` or `/deny`."
            );
        }
        let _ = write!(
            text,
            "The run resumes after the decision; `GET /api/runs/{}` returns its answer.",
            self.run
        );
        text
    }
}

/// How the text of a run is passed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextMode {
    /// As the model writes it.
    Live,
    /// Only the final answer: it must fit a schema.
    FinalOnly,
}

/// Reads the events of one run.
#[derive(Debug)]
pub(super) struct AnswerReader {
    mode: TextMode,
    /// What was passed on of the answer that the model is writing.
    text: SentText,
    reasoning: SentText,
    /// Whether any text was passed on.
    has_text: bool,
    last_answer: u32,
    calls: BTreeMap<(u32, u32), CallSummary>,
    waiting: BTreeMap<String, WaitingCall>,
}

impl AnswerReader {
    /// Creates a reader.
    pub(super) fn new(mode: TextMode) -> Self {
        Self {
            mode,
            text: SentText::default(),
            reasoning: SentText::default(),
            has_text: false,
            last_answer: 0,
            calls: BTreeMap::new(),
            waiting: BTreeMap::new(),
        }
    }

    /// Returns the pieces that follow from an event.
    pub(super) fn read(&mut self, event: RunEvent) -> Vec<Piece> {
        let mut pieces = Vec::new();
        match event {
            RunEvent::TextDelta { text } => self.text(&text, &mut pieces),
            RunEvent::ReasoningDelta { text } => self.reasoning(&text, &mut pieces),
            RunEvent::Answer { step, text, reasoning, .. } => {
                self.answer(step, &text, &reasoning, &mut pieces);
            }
            RunEvent::ToolUse { answer, index, id, name, tool, status, call_id, duration_ms, .. } => {
                let summary = CallSummary { id, name, tool, status, call_id, duration_ms };
                self.calls.insert((answer, index), summary);
            }
            RunEvent::ApprovalRequest { approval_id, call_id, tool, args, .. } => {
                let waiting = WaitingCall { approval_id, call_id, tool, args };
                self.waiting.insert(approval_id.to_string(), waiting);
            }
            RunEvent::ApprovalDecided { approval_id, .. } => {
                self.waiting.remove(&approval_id.to_string());
            }
            RunEvent::End { run_id, status, output, error, usage } => {
                let end = self.end(run_id, status, (error, usage));
                self.last_text(&end, output, &mut pieces);
                pieces.push(Piece::End(Box::new(end)));
            }
            RunEvent::Start { .. } | RunEvent::Shortened { .. } | RunEvent::Correction { .. } => {}
        }
        pieces
    }

    fn text(&mut self, text: &str, pieces: &mut Vec<Piece>) {
        if text.is_empty() || self.mode == TextMode::FinalOnly {
            return;
        }
        self.text.add(text);
        self.has_text = true;
        pieces.push(Piece::Text(text.to_owned()));
    }

    fn reasoning(&mut self, text: &str, pieces: &mut Vec<Piece>) {
        if !text.is_empty() {
            self.reasoning.add(text);
            pieces.push(Piece::Reasoning(text.to_owned()));
        }
    }

    /// Passes on what the deltas did not have: a watcher that comes late, or on another node, gets whole answers only.
    fn answer(&mut self, step: u32, text: &str, reasoning: &str, pieces: &mut Vec<Piece>) {
        if step <= self.last_answer {
            return;
        }
        self.last_answer = step;
        let (reasoning, text) = (self.reasoning.rest(reasoning), self.text.rest(text));
        self.reasoning(reasoning, pieces);
        self.text(text, pieces);
        // What was just passed on belongs to the answer that has ended.
        (self.reasoning, self.text) = (SentText::default(), SentText::default());
        pieces.push(Piece::AnswerEnd);
    }

    fn end(
        &mut self,
        run: RunId,
        status: RunStatus,
        (error, usage): (Option<StepError>, RunUsage),
    ) -> AnswerEnd {
        let waiting = std::mem::take(&mut self.waiting).into_values();
        AnswerEnd {
            run,
            status,
            error,
            usage,
            last_answer: self.last_answer,
            finish_reason: String::new(),
            calls: std::mem::take(&mut self.calls).into_values().collect(),
            waiting: if status == RunStatus::AwaitingApproval { waiting.collect() } else { Vec::new() },
        }
    }

    /// Passes on the text that no delta had: an answer with a schema, or why the run waits.
    fn last_text(&mut self, end: &AnswerEnd, output: Option<Value>, pieces: &mut Vec<Piece>) {
        let text = match (end.status, output) {
            (RunStatus::AwaitingApproval, _) => end.waiting_text(),
            (RunStatus::Success, Some(Value::String(text))) if !self.has_text => text,
            (RunStatus::Success, Some(value)) if !self.has_text && !value.is_null() => value.to_string(),
            _ => return,
        };
        if !text.is_empty() {
            pieces.extend([Piece::Text(text), Piece::AnswerEnd]);
        }
    }
}
