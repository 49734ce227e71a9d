//! A stage that writes one log event per call.

use haft_core::BoxFuture;
use haft_core::outcome::{ErrorCode, Outcome};
use haft_core::problem::excerpt;
use haft_core::redact::is_sensitive;
use haft_core::secret::{MASK, Secret, scrub, scrub_text};
use serde_json::Value;

use crate::clock;
use crate::pipeline::{Call, milliseconds};
use crate::stages::end_guard::{EndGuard, EndStatus};
use crate::stages::{Next, Stage};

/// Writes a `tracing` event when a call ends: tool, call id, caller, duration, and `ok` or the error code.
///
/// Arguments, values and error messages are logged only with [`Logging::with_values`].
#[derive(Debug, Clone, Copy, Default)]
pub struct Logging {
    values: Option<usize>,
}

impl Logging {
    /// Logs calls without their arguments and values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Also logs the arguments, and the value or the error message, each cut to this many characters. Secrets that the
    /// call has seen are masked, and so are arguments with names such as `password` or `api_key`.
    #[must_use]
    pub fn with_values(mut self, max_chars: usize) -> Self {
        self.values = Some(max_chars);
        self
    }
}

impl Stage for Logging {
    fn call<'a>(&'a self, call: &'a mut Call, next: Next<'a>) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            let (entry, id, started) = (std::sync::Arc::clone(call.entry()), call.id(), clock::now());
            // Only for a call that is dropped; otherwise there is more to log.
            let dropped = EndGuard::new(call.deadline(), move |status| {
                let (tool, outcome, duration_ms) =
                    (&*entry.qualified, outcome_word(status), milliseconds(clock::since(started)));
                tracing::warn!(tool, call = %id, duration_ms, outcome, "call abandoned");
            });
            let outcome = next.run(call).await;
            dropped.cancel();
            let status = outcome.as_ref().map(drop).map_err(|error| error.code);
            let (tool, caller) = (&*call.entry().qualified, call.caller());
            let (duration_ms, word) = (milliseconds(clock::since(started)), outcome_word(status));
            match (self.values, &outcome) {
                (None, Ok(_)) => {
                    tracing::info!(tool, call = %id, caller, duration_ms, outcome = word, "call completed");
                }
                (None, Err(_)) => {
                    tracing::warn!(tool, call = %id, caller, duration_ms, outcome = word, "call failed");
                }
                (Some(max_chars), Ok(value)) => {
                    let redaction = LogRedaction::new(call, max_chars);
                    let (arguments, value) = (redaction.value(call.args()), redaction.value(value));
                    tracing::info!(tool, call = %id, caller, duration_ms, outcome = word, arguments, value, "call completed");
                }
                (Some(max_chars), Err(failure)) => {
                    let redaction = LogRedaction::new(call, max_chars);
                    let (arguments, error) = (redaction.value(call.args()), redaction.text(&failure.message));
                    tracing::warn!(tool, call = %id, caller, duration_ms, outcome = word, arguments, error, "call failed");
                }
            }
            outcome
        })
    }
}

fn outcome_word(status: EndStatus) -> &'static str {
    status.map_or_else(ErrorCode::as_str, |()| "ok")
}

/// Masks secrets in logged texts and limits their length.
struct LogRedaction {
    max_chars: usize,
    secrets: Vec<Secret>,
}

impl LogRedaction {
    fn new(call: &Call, max_chars: usize) -> Self {
        let exposed = call.artifacts.as_ref().map_or(&[][..], |artifacts| &artifacts.exposed);
        let mut secrets = [exposed, &call.plan.literals].concat();
        sensitive_values(call.args(), false, &mut secrets);
        Self { max_chars, secrets }
    }

    fn value(&self, value: &Value) -> String {
        let mut value = value.clone();
        mask_sensitive(&mut value);
        scrub(&mut value, &self.secrets);
        excerpt(&value.to_string(), self.max_chars)
    }

    fn text(&self, text: &str) -> String {
        let mut text = text.to_owned();
        scrub_text(&mut text, &self.secrets);
        excerpt(&text, self.max_chars)
    }
}

/// Masks values with sensitive names, however short.
fn mask_sensitive(value: &mut Value) {
    match value {
        Value::Object(map) => map.iter_mut().for_each(|(key, value)| {
            if is_sensitive(key) { *value = Value::String(MASK.to_owned()) } else { mask_sensitive(value) }
        }),
        Value::Array(items) => items.iter_mut().for_each(mask_sensitive),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Collects the values with sensitive names: a tool may echo them in its result.
fn sensitive_values(value: &Value, sensitive: bool, found: &mut Vec<Secret>) {
    match value {
        Value::Object(map) => {
            map.iter()
                .for_each(|(key, value)| sensitive_values(value, sensitive || is_sensitive(key), found));
        }
        Value::Array(items) => items.iter().for_each(|item| sensitive_values(item, sensitive, found)),
        Value::String(text) if sensitive && !text.is_empty() => found.push(Secret::new(text.clone())),
        Value::Number(number) if sensitive => found.push(Secret::new(number.to_string())),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
