//! Prints the events of a run: the answer to stdout, everything else to stderr.

use std::collections::{HashMap, HashSet};

use haft_core::problem::excerpt;
use serde_json::Value;

use crate::client::ServerEvent;
use crate::error::CliError;
use crate::output::Output;
use crate::view;

/// The longest arguments in the line of a tool call, in characters.
const MAX_SHOWN: usize = 200;

/// Prints events once each: a stream that is opened again starts from the first event.
pub(super) struct RunPrinter<'a> {
    output: &'a Output,
    /// The run, once it is known.
    pub(super) run: Option<String>,
    /// Calls that wait for a person, by the id of their approval, in the order of their requests.
    pub(super) waiting: Vec<(String, Value)>,
    decided: HashSet<String>,
    calls: HashMap<(u64, u64), String>,
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

    /// Prints an event; returns the data of the last one.
    pub(super) fn event(&mut self, event: &ServerEvent) -> Result<Option<Value>, CliError> {
        let data = &event.data;
        match event.name.as_str() {
            "start" => self.run = Some(view::text(data, "run_id")),
            "text_delta" => self.text(&view::text(data, "text"))?,
            "answer" => self.answer(data)?,
            "tool_use" => self.call(data)?,
            "approval_request" => self.approval(data),
            "approval_decided" => self.decide(&view::text(data, "approval_id")),
            "shortened" => self.note("the conversation was shortened to fit the context window")?,
            "correction" => {
                self.note("the answer does not match the output schema; the model is asked again")?;
            }
            "end" => {
                self.break_line()?;
                self.run = Some(view::text(data, "run_id")).filter(|run| !run.is_empty()).or(self.run.take());
                return Ok(Some(data.clone()));
            }
            _ => {}
        }
        Ok(None)
    }

    /// Another stream starts, from the first event.
    pub(super) fn restart(&mut self) {
        (self.answers, self.bytes) = (0, 0);
    }

    /// Marks an approval as decided.
    pub(super) fn decide(&mut self, approval: &str) {
        self.decided.insert(approval.to_owned());
        self.waiting.retain(|(id, _)| id != approval);
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
    fn answer(&mut self, data: &Value) -> Result<(), CliError> {
        if self.bytes == 0 {
            self.text(&view::text(data, "text"))?;
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

    fn call(&mut self, data: &Value) -> Result<(), CliError> {
        let number = |key: &str| data.get(key).and_then(Value::as_u64).unwrap_or_default();
        let key = (number("answer"), number("index"));
        let status = view::text(data, "status");
        let known = self.calls.get(&key);
        // A call that has ended does not start again.
        if known == Some(&status) || (known.is_some() && status == "running") {
            return Ok(());
        }
        self.calls.insert(key, status.clone());
        let name = view::text(data, "name");
        let line = match status.as_str() {
            "running" => {
                let args = data.get("args").map(Value::to_string).unwrap_or_default();
                format!("tool `{name}` {}", excerpt(&args, MAX_SHOWN))
            }
            "awaiting_approval" => format!("tool `{name}` needs approval"),
            "success" => format!("tool `{name}` succeeded{}", duration(data)),
            _ => {
                let message = view::text(data, "error.message");
                format!("tool `{name}` {status}{}: {}", duration(data), excerpt(&message, MAX_SHOWN))
            }
        };
        self.note(&line)
    }

    fn approval(&mut self, data: &Value) {
        let id = view::text(data, "approval_id");
        let is_known = self.decided.contains(&id) || self.waiting.iter().any(|(known, _)| *known == id);
        if !is_known {
            self.waiting.push((id, data.clone()));
        }
    }

    fn note(&mut self, text: &str) -> Result<(), CliError> {
        self.break_line()?;
        self.output.note(text);
        Ok(())
    }
}

fn duration(data: &Value) -> String {
    let time = data.get("duration_ms").and_then(Value::as_f64);
    time.map(|time| format!(" in {time:.0} ms")).unwrap_or_default()
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
        let mut send = |name: &str, data: Value| {
            let ended = printer.event(&ServerEvent { name: name.to_owned(), data }).unwrap();
            (printer.printed_answers, printer.printed_bytes, ended.is_some())
        };
        assert_eq!(send("text_delta", json!({"text": "One "})), (0, 4, false));
        assert_eq!(send("answer", json!({"step": 1, "text": "One "})), (1, 0, false));
        assert_eq!(send("text_delta", json!({"text": "Tw"})), (1, 2, false));
        printer.restart();
        let mut send = |name: &str, data: Value| {
            let ended = printer.event(&ServerEvent { name: name.to_owned(), data }).unwrap();
            (printer.printed_answers, printer.printed_bytes, ended.is_some())
        };
        assert_eq!(send("answer", json!({"step": 1, "text": "One "})), (1, 2, false));
        assert_eq!(send("text_delta", json!({"text": "Two"})), (1, 3, false));
        assert_eq!(send("answer", json!({"step": 3, "text": "Two"})), (2, 0, false));
        assert_eq!(send("end", json!({"run_id": "r", "status": "success"})), (2, 0, true));
    }
}
