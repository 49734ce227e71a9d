//! One event in the log for each call.

use haft_core::BoxFuture;
use haft_core::outcome::{ErrorCode, Outcome};
use haft_core::problem::excerpt;
use haft_core::redact::is_sensitive;
use haft_core::secret::{MASK, Secret, scrub, scrub_text};
use serde_json::Value;

use crate::clock;
use crate::pipeline::{Call, milliseconds};
use crate::stages::ending::{Ended, Ending};
use crate::stages::{Next, Stage};

/// Writes a `tracing` event when a call is over: tool, call id, caller, duration, and `ok` or the code of the error.
///
/// Arguments, values and texts of errors are left out unless [`Logging::with_values`] asks for them.
#[derive(Debug, Clone, Copy, Default)]
pub struct Logging {
    values: Option<usize>,
}

impl Logging {
    /// Logs that calls were made, and not with what.
    pub fn new() -> Self {
        Self::default()
    }

    /// Also logs the arguments, and the value or the text of the error, each cut to so many characters. The secrets
    /// that a call has seen are masked, and so are arguments whose names sound like one (`password`, `api_key`).
    #[must_use]
    pub fn with_values(mut self, most: usize) -> Self {
        self.values = Some(most);
        self
    }
}

impl Stage for Logging {
    fn call<'a>(&'a self, call: &'a mut Call, next: Next<'a>) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            let (entry, id, started) = (std::sync::Arc::clone(call.entry()), call.id(), clock::now());
            // Only for a call that is dropped: else there is more to tell.
            let dropped = Ended::new(call.deadline(), move |ending| {
                let (tool, outcome, duration_ms) =
                    (&*entry.qualified, word(ending), milliseconds(clock::since(started)));
                tracing::warn!(tool, call = %id, duration_ms, outcome, "a call was given up");
            });
            let outcome = next.run(call).await;
            dropped.cancel();
            let ending = outcome.as_ref().map(drop).map_err(|error| error.code);
            let (tool, caller) = (&*call.entry().qualified, call.caller());
            let (duration_ms, word) = (milliseconds(clock::since(started)), word(ending));
            match (self.values, &outcome) {
                (None, Ok(_)) => {
                    tracing::info!(tool, call = %id, caller, duration_ms, outcome = word, "a call is over");
                }
                (None, Err(_)) => {
                    tracing::warn!(tool, call = %id, caller, duration_ms, outcome = word, "a call failed");
                }
                (Some(most), Ok(value)) => {
                    let shown = Shown::new(call, most);
                    let (arguments, value) = (shown.value(call.args()), shown.value(value));
                    tracing::info!(tool, call = %id, caller, duration_ms, outcome = word, arguments, value, "a call is over");
                }
                (Some(most), Err(failure)) => {
                    let shown = Shown::new(call, most);
                    let (arguments, error) = (shown.value(call.args()), shown.text(&failure.message));
                    tracing::warn!(tool, call = %id, caller, duration_ms, outcome = word, arguments, error, "a call failed");
                }
            }
            outcome
        })
    }
}

fn word(ending: Ending) -> &'static str {
    ending.map_or_else(ErrorCode::as_str, |()| "ok")
}

/// What is kept out of the log, and how much of a text is written to it.
struct Shown {
    most: usize,
    secrets: Vec<Secret>,
}

impl Shown {
    fn new(call: &Call, most: usize) -> Self {
        let exposed = call.left.as_ref().map_or(&[][..], |left| &left.exposed);
        let mut secrets = [exposed, &call.plan.literals].concat();
        named(call.args(), false, &mut secrets);
        Self { most, secrets }
    }

    fn value(&self, value: &Value) -> String {
        let mut value = value.clone();
        mask(&mut value);
        scrub(&mut value, &self.secrets);
        excerpt(&value.to_string(), self.most)
    }

    fn text(&self, text: &str) -> String {
        let mut text = text.to_owned();
        scrub_text(&mut text, &self.secrets);
        excerpt(&text, self.most)
    }
}

/// Masks what is a secret by its name, however short.
fn mask(value: &mut Value) {
    match value {
        Value::Object(map) => map.iter_mut().for_each(|(key, value)| {
            if is_sensitive(key) { *value = Value::String(MASK.to_owned()) } else { mask(value) }
        }),
        Value::Array(items) => items.iter_mut().for_each(mask),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Collects the arguments that are secrets by their names: a tool may echo them.
fn named(value: &Value, sensitive: bool, found: &mut Vec<Secret>) {
    match value {
        Value::Object(map) => {
            map.iter().for_each(|(key, value)| named(value, sensitive || is_sensitive(key), found));
        }
        Value::Array(items) => items.iter().for_each(|item| named(item, sensitive, found)),
        Value::String(text) if sensitive && !text.is_empty() => found.push(Secret::new(text.clone())),
        Value::Number(number) if sensitive => found.push(Secret::new(number.to_string())),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
