//! Large results: set aside after a call, and put in place of their handles before one.

use std::sync::Arc;

use haft_core::id::CallId;
use haft_core::large_result::{LargeResult, LoadedResult, ResultHandle};
use haft_core::outcome::{CallError, ErrorCode, Outcome};
use haft_core::principal::Principal;
use serde_json::Value;

use super::call::Call;
use super::{CompletedCall, Pipeline};
use crate::stages::fits;

/// The most results that the arguments of one call may refer to.
const MAX_HANDLES: usize = 32;
/// The size of all results in the arguments of one call, in bytes.
const MAX_LOADED_BYTES: u64 = 64 * 1024 * 1024;

/// The results that the arguments of a call refer to.
pub(super) struct LoadedResults(Vec<(CallId, LoadedResult)>);

impl Pipeline {
    /// Loads the results that arguments refer to; `None` if there are no handles among them.
    pub(super) async fn load_handles(
        &self,
        principal: &Principal,
        args: impl IntoIterator<Item = &Value>,
    ) -> Result<Option<LoadedResults>, CallError> {
        let Some(results) = &self.results else { return Ok(None) };
        let mut calls = Vec::new();
        args.into_iter().try_for_each(|arg| collect_calls(arg, &mut calls))?;
        if calls.is_empty() {
            return Ok(None);
        }
        let mut loaded = Vec::with_capacity(calls.len());
        let mut left = MAX_LOADED_BYTES;
        for call in calls {
            let result = results.load(principal, call).await?;
            left = left.checked_sub(result.bytes).ok_or_else(too_large)?;
            loaded.push((call, result));
        }
        Ok(Some(LoadedResults(loaded)))
    }

    /// Stores a result that is too large for the record; the outcome becomes a preview. If it cannot be stored, the
    /// record keeps it.
    pub(super) async fn offload_large_result(
        &self,
        call: &mut Call,
        outcome: Outcome,
    ) -> (Outcome, Option<Arc<Value>>) {
        let (Some(results), Ok(value)) = (&self.results, &outcome) else { return (outcome, None) };
        // Counted without escapes, so a little more than the limit may stay in the record.
        if fits(value, results.max_inline_bytes()) {
            return (outcome, None);
        }
        let json = value.to_string();
        let preview = LargeResult::new(call.id(), value, &json);
        let bytes = preview.bytes;
        match results.store(call.tenant(), call.id(), json).await {
            Ok(()) => {
                call.stored_bytes = Some(bytes);
                (Ok(preview.into_value()), outcome.ok().map(Arc::new))
            }
            Err(error) => {
                tracing::warn!(call = %call.id(), error = error.message, "a large result stays in the record of its call");
                (outcome, None)
            }
        }
    }

    /// Returns the value of a call that succeeded, whole even if it is stored apart.
    pub async fn whole_value(
        &self,
        principal: &Principal,
        completed: &CompletedCall,
    ) -> Result<Option<Value>, CallError> {
        let record = &completed.record;
        match (&completed.whole, &self.results) {
            (Some(whole), _) => Ok(Some(Value::clone(whole))),
            (None, Some(results)) if record.stored_bytes.is_some() => {
                results.load(principal, record.id()).await.map(|loaded| Some(loaded.value))
            }
            _ => Ok(record.value.clone()),
        }
    }
}

impl LoadedResults {
    /// Returns arguments with results in place of handles. Where the schema expects a text, another value becomes its
    /// JSON, so that a result can be written to a file.
    pub(super) fn inserted_into(&self, args: &Value, schema: &Value) -> Result<Value, CallError> {
        let mut args = args.clone();
        let mut left = MAX_LOADED_BYTES;
        let Value::Object(fields) = &mut args else { return Ok(args) };
        for (name, value) in fields {
            let is_handle = ResultHandle::of_argument(value).is_some();
            self.insert(value, &mut left)?;
            let expected = || schema.get("properties")?.get(name)?.get("type")?.as_str();
            if is_handle && !value.is_string() && expected() == Some("string") {
                *value = Value::String(value.to_string());
            }
        }
        Ok(args)
    }

    /// Puts results in place of handles. A result that occurs twice counts twice.
    fn insert(&self, value: &mut Value, left: &mut u64) -> Result<(), CallError> {
        if let Some(handle) = ResultHandle::of_argument(value) {
            if let Some((_, loaded)) = self.0.iter().find(|(call, _)| *call == handle.call) {
                *left = left.checked_sub(loaded.bytes).ok_or_else(too_large)?;
                *value = loaded.part(&handle)?.clone();
            }
            // A result is not searched for handles: its text may come from anywhere.
            return Ok(());
        }
        match value {
            Value::Array(items) => items.iter_mut().try_for_each(|item| self.insert(item, left)),
            Value::Object(map) => map.values_mut().try_for_each(|item| self.insert(item, left)),
            _ => Ok(()),
        }
    }
}

fn too_large() -> CallError {
    let message = format!("the results in the arguments exceed {MAX_LOADED_BYTES} bytes together");
    CallError::new(ErrorCode::TooLarge, message)
}

/// Collects the calls whose results a value refers to, each once.
fn collect_calls(value: &Value, calls: &mut Vec<CallId>) -> Result<(), CallError> {
    match value {
        Value::String(_) => {
            let Some(handle) = ResultHandle::of_argument(value) else { return Ok(()) };
            if calls.contains(&handle.call) {
                return Ok(());
            }
            if calls.len() == MAX_HANDLES {
                let message = format!("the arguments refer to more than {MAX_HANDLES} results");
                return Err(CallError::new(ErrorCode::InvalidArguments, message));
            }
            calls.push(handle.call);
            Ok(())
        }
        Value::Array(items) => items.iter().try_for_each(|item| collect_calls(item, calls)),
        Value::Object(map) => map.values().try_for_each(|item| collect_calls(item, calls)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const ID: &str = "018faf50-b7b6-7a01-9a05-a22a6e0af101";

    fn loaded(value: Value, bytes: u64) -> LoadedResults {
        LoadedResults(vec![(ID.parse().unwrap(), LoadedResult { value, bytes })])
    }

    #[test]
    fn handles_are_replaced_by_results() {
        let results = loaded(json!({"rows": [1, 2], "text": format!("$result:{ID}")}), 100);
        let schema = json!({"properties": {"content": {"type": "string"}, "rows": {"type": "array"}}});
        let handle = format!("$result:{ID}");
        let args = json!({
            "rows": format!("{handle}#/rows"), "content": format!("{handle}#/rows"), "deep": [{"a": format!("{handle}#/text")}],
            "plain": format!("see {handle}"),
        });
        let expected = json!({
            "rows": [1, 2], "content": "[1,2]", "deep": [{"a": handle}], "plain": format!("see {handle}"),
        });
        assert_eq!(results.inserted_into(&args, &schema).unwrap(), expected);
        let error = results.inserted_into(&json!({"a": format!("{handle}#/gone")}), &schema).unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidArguments);
    }

    #[test]
    fn results_in_arguments_are_bounded() {
        let results = loaded(json!("x"), MAX_LOADED_BYTES / 2);
        let handle = format!("$result:{ID}");
        let twice = json!({"a": handle, "b": [handle]});
        assert_eq!(results.inserted_into(&twice, &json!({})).unwrap(), json!({"a": "x", "b": ["x"]}));
        let often = json!({"a": handle, "b": [handle, handle]});
        assert_eq!(results.inserted_into(&often, &json!({})).unwrap_err().code, ErrorCode::TooLarge);
        let mut calls = Vec::new();
        let distinct: Vec<Value> =
            (0..=MAX_HANDLES).map(|_| json!(format!("$result:{}", uuid::Uuid::now_v7()))).collect();
        assert_eq!(
            collect_calls(&json!(distinct), &mut calls).unwrap_err().code,
            ErrorCode::InvalidArguments
        );
    }
}
