//! Prints the events of a run: the answer to stdout, everything else to stderr.

use std::collections::{HashMap, HashSet};

use haft_api::run_event::RunEvent;
use haft_core::call::CallStatus;
use haft_core::id::{ApprovalId, RunId};
use haft_core::problem::excerpt;
use haft_core::run::{RunStatus, StepError};
use serde_json::Value;

use crate::client::ServerEvent;
use crate::error::CliError;
use crate::output::Output;
use crate::view;

/// The longest arguments in the line of a tool call, in characters.
const MAX_SHOWN: usize = 200;

/// The event that a run ended or waits for approval.
pub(in crate::commands) struct RunEnd {
    pub(super) status: RunStatus,
    pub(super) error: Option<StepError>,
}

/// A call that waits for approval.
#[derive(Debug, Clone)]
pub(super) struct WaitingCall {
    pub(super) approval: ApprovalId,
    pub(super) tool: String,
    pub(super) args: Value,
}

/// The fields of a call that one line shows.
struct CallLine<'a> {
    name: &'a str,
    status: CallStatus,
    args: &'a Value,
    error: Option<&'a StepError>,
    duration_ms: Option<f64>,
}

/// Prints events once each: a stream that is opened again starts from the first event.
pub(super) struct RunPrinter<'a> {
    output: &'a Output,
    /// The run, once it is known.
    pub(super) run: Option<RunId>,
    /// Calls that wait for a person, by the id of their approval, in the order of their requests.
    pub(super) waiting: Vec<WaitingCall>,
    decided: HashSet<ApprovalId>,
    calls: HashMap<(u32, u32), CallStatus>,
    /// How many answers were printed completely.
    printed_answers: usize,
    /// How many bytes of the next answer were printed.
    printed_bytes: usize,
    /// How many answers this stream has repeated or completed.
    answers: usize,
    /// How many bytes of the next answer this stream has sent.
    bytes: usize,
    /// Whether the cursor is behind text.
    is_in_line: bool,
}

impl<'a> RunPrinter<'a> {
    pub(super) fn new(output: &'a Output) -> Self {
        Self {
            output,
            run: None,
            waiting: Vec::new(),
            decided: HashSet::new(),
            calls: HashMap::new(),
            printed_answers: 0,
            printed_bytes: 0,
            answers: 0,
            bytes: 0,
            is_in_line: false,
        }
    }

    /// Prints an event; returns the end of the run if the event is one.
    pub(super) fn event(&mut self, event: &ServerEvent) -> Result<Option<RunEnd>, CliError> {
        // Ignores the message that is answered, which comes first, and unknown events of a newer server.
        if !RunEvent::NAMES.contains(&event.name.as_str()) {
            return Ok(None);
        }
        match view::read(&event.data)? {
            RunEvent::Start { run_id, .. } => self.run = Some(run_id),
            RunEvent::TextDelta { text } => self.text(&text)?,
            RunEvent::ReasoningDelta { .. } => {}
            RunEvent::Answer { text, .. } => self.answer(&text)?,
            RunEvent::ToolUse { answer, index, name, status, args, error, duration_ms, .. } => {
                let line = CallLine { name: &name, status, args: &args, error: error.as_ref(), duration_ms };
                self.call((answer, index), &line)?;
            }
            RunEvent::ApprovalRequest { approval_id, tool, args, .. } => {
                self.approval(WaitingCall { approval: approval_id, tool, args });
            }
            RunEvent::ApprovalDecided { approval_id, .. } => self.decide(approval_id),
            RunEvent::Shortened { .. } => {
                self.note("the conversation was shortened to fit the context window")?;
            }
            RunEvent::Correction { .. } => {
                self.note("the answer does not match the output schema; the model is asked again")?;
            }
            RunEvent::End { run_id, status, error, .. } => {
                self.break_line()?;
                self.run = Some(run_id);
                return Ok(Some(RunEnd { status, error }));
            }
        }
        Ok(None)
    }

    /// Another stream starts, from the first event.
    pub(super) fn restart(&mut self) {
        (self.answers, self.bytes) = (0, 0);
    }

    /// Marks an approval as decided.
    pub(super) fn decide(&mut self, approval: ApprovalId) {
        self.decided.insert(approval);
        self.waiting.retain(|call| call.approval != approval);
    }

    /// Ends a line of text that is not complete.
    pub(super) fn break_line(&mut self) -> Result<(), CliError> {
        if std::mem::take(&mut self.is_in_line) { self.output.part("\n") } else { Ok(()) }
    }

    /// Prints text of an answer, except what an earlier stream has sent.
    fn text(&mut self, text: &str) -> Result<(), CliError> {
        let start = self.bytes;
        self.bytes += text.len();
        let known = if self.answers < self.printed_answers { usize::MAX } else { self.printed_bytes };
        let Some(new) = text.get(known.saturating_sub(start)..).filter(|new| !new.is_empty()) else {
            return Ok(());
        };
        self.printed_bytes = self.bytes;
        self.is_in_line = !new.ends_with('\n');
        self.output.part(new)
    }

    /// An answer is complete. Its text was sent piece by piece, or is printed now.
    fn answer(&mut self, text: &str) -> Result<(), CliError> {
        if self.bytes == 0 {
            self.text(text)?;
        }
        self.answers += 1;
        self.bytes = 0;
        if self.answers > self.printed_answers {
            self.printed_answers = self.answers;
            self.printed_bytes = 0;
            self.break_line()?;
        }
        Ok(())
    }

    fn call(&mut self, key: (u32, u32), call: &CallLine<'_>) -> Result<(), CliError> {
        let CallLine { name, status, args, error, duration_ms } = call;
        let known = self.calls.get(&key);
        // A call that has ended does not start again.
        if known == Some(status) || (known.is_some() && *status == CallStatus::Running) {
            return Ok(());
        }
        self.calls.insert(key, *status);
        let time = duration_ms.map(|time| format!(" in {time:.0} ms")).unwrap_or_default();
        let line = match status {
            CallStatus::Running => format!("tool `{name}` {}", excerpt(&args.to_string(), MAX_SHOWN)),
            CallStatus::AwaitingApproval => format!("tool `{name}` needs approval"),
            CallStatus::Success => format!("tool `{name}` succeeded{time}"),
            _ => {
                let message = error.map(|error| error.message.as_str()).unwrap_or_default();
                format!("tool `{name}` {}{time}: {}", status.as_str(), excerpt(message, MAX_SHOWN))
            }
        };
        self.note(&line)
    }

    fn approval(&mut self, call: WaitingCall) {
        let is_known = self.decided.contains(&call.approval)
            || self.waiting.iter().any(|known| known.approval == call.approval);
        if !is_known {
            self.waiting.push(call);
        }
    }

    fn note(&mut self, text: &str) -> Result<(), CliError> {
        self.break_line()?;
        self.output.note(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::environment::Environment;
    use crate::output::{Color, Form};

    #[test]
    fn a_stream_that_is_opened_again_repeats_nothing() {
        let output = Output::new(Form::Text, Color::Never, &Environment::default());
        let mut printer = RunPrinter::new(&output);
        let send = |printer: &mut RunPrinter<'_>, data: Value| {
            let name = data["type"].as_str().unwrap().to_owned();
            let ended = printer.event(&ServerEvent { name, data }).unwrap();
            (printer.printed_answers, printer.printed_bytes, ended.is_some())
        };
        let delta = |text: &str| json!({"type": "text_delta", "text": text});
        let answer = |step: u32, text: &str| json!({"type": "answer", "step": step, "model": "m", "text": text, "usage": {}});
        let end = json!({
            "type": "end", "run_id": "018faf50-b7b6-7a01-9a05-a22a6e0af101", "status": "success", "usage": {},
        });
        assert_eq!(send(&mut printer, delta("One ")), (0, 4, false));
        assert_eq!(send(&mut printer, answer(1, "One ")), (1, 0, false));
        assert_eq!(send(&mut printer, delta("Tw")), (1, 2, false));
        printer.restart();
        assert_eq!(send(&mut printer, answer(1, "One ")), (1, 2, false));
        assert_eq!(send(&mut printer, json!({"type": "unknown"})), (1, 2, false));
        assert_eq!(send(&mut printer, delta("Two")), (1, 3, false));
        assert_eq!(send(&mut printer, answer(3, "Two")), (2, 0, false));
        assert_eq!(send(&mut printer, end), (2, 0, true));
    }
}
