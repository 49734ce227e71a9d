//! The values that the mappings of steps refer to.

use std::cell::Cell;

use haft_core::mapping::{Reference, STEPS, walk};
use haft_core::outcome::{CallError, ErrorCode};
use serde_json::{Map, Value, json};

/// The maximum size of one filled mapping, in bytes: a reference may occur many times.
const MAX_FILLED: usize = 16 * 1024 * 1024;

/// The item of a `for_each` that a call is made for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Item<'a> {
    pub(super) value: &'a Value,
    pub(super) index: usize,
}

/// What references refer to at one moment of a run.
#[derive(Clone, Copy)]
pub(super) struct StepValues<'a> {
    pub(super) args: &'a Value,
    /// Returns the state of a step that has ended, as mappings see it.
    pub(super) step: &'a dyn Fn(&str) -> Option<Value>,
    /// Follows a path in the value of a step without copying the whole value.
    pub(super) step_value: &'a dyn Fn(&str) -> Option<&'a Value>,
    pub(super) item: Option<Item<'a>>,
}

impl StepValues<'_> {
    /// Fills in a mapping.
    pub(super) fn fill(self, mapping: &Value) -> Result<Value, CallError> {
        self.filled(|resolve| STEPS.fill(mapping, resolve))
    }

    /// Fills in the arguments of a step.
    pub(super) fn fill_map(self, mapping: &Map<String, Value>) -> Result<Map<String, Value>, CallError> {
        self.filled(|resolve| STEPS.fill_map(mapping, resolve))
    }

    /// Fills in an operand of a condition, where a missing value is `null`.
    pub(super) fn operand(self, mapping: &Value) -> Value {
        STEPS.fill(mapping, &mut |reference| self.resolve(reference).ok().flatten())
    }

    fn filled<T>(
        self,
        fill: impl FnOnce(&mut dyn FnMut(&Reference<'_>) -> Option<Value>) -> T,
    ) -> Result<T, CallError> {
        let (failure, size) = (Cell::new(None), Cell::new(0usize));
        let filled = fill(&mut |reference| {
            if size.get() > MAX_FILLED {
                return None;
            }
            match self.resolve(reference) {
                Ok(value) => {
                    let bytes = value.as_ref().map_or(0, weight);
                    size.set(size.get().saturating_add(bytes));
                    value
                }
                Err(error) => {
                    failure.set(Some(error));
                    None
                }
            }
        });
        match failure.take() {
            Some(error) => Err(error),
            None if size.get() > MAX_FILLED => {
                let message = format!("the values of a mapping exceed {MAX_FILLED} bytes");
                Err(CallError::new(ErrorCode::TooLarge, message))
            }
            None => Ok(filled),
        }
    }

    /// Returns the value of a reference; `None` if it has none. A path that the value of a step does not have is an
    /// error, because it is most likely misspelled.
    fn resolve(self, reference: &Reference<'_>) -> Result<Option<Value>, CallError> {
        match (reference.name, reference.path.as_slice()) {
            ("args", _) => Ok(reference.walk(self.args).cloned()),
            ("item", _) => Ok(self.item.and_then(|item| reference.walk(item.value).cloned())),
            ("index", _) => Ok(self.item.map(|item| json!(item.index))),
            ("steps", [id, "value", path @ ..]) => {
                let Some(value) = (self.step_value)(id) else { return Ok(None) };
                let found = walk(value, path).cloned();
                if found.is_none() && !value.is_null() {
                    let message = format!("`{}` has no value: step `{id}` did not return it", reference.text);
                    return Err(CallError::new(ErrorCode::Template, message));
                }
                Ok(found)
            }
            ("steps", [id, path @ ..]) => Ok((self.step)(id).and_then(|state| walk(&state, path).cloned())),
            _ => Ok(None),
        }
    }
}

/// Returns roughly how many bytes a value takes.
pub(super) fn weight(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 16,
        Value::String(text) => text.len() + 16,
        Value::Array(items) => items.iter().map(weight).sum::<usize>() + 16,
        Value::Object(map) => {
            map.iter().map(|(key, value)| key.len() + 16 + weight(value)).sum::<usize>() + 16
        }
    }
}
