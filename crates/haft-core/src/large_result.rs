//! Results that are too large to hand around: they are stored apart, and callers get a preview and a handle.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::BoxFuture;
use crate::id::CallId;
use crate::name::TenantId;
use crate::outcome::CallError;
use crate::principal::Principal;
use crate::problem::excerpt;

/// What every handle starts with.
const PREFIX: &str = "$result:";
/// The length of a preview, in characters.
const PREVIEW: usize = 2000;
/// The number of keys that the shape of an object lists.
const LISTED_KEYS: usize = 20;

/// Refers to the result of a call, or to a part of it: `$result:<call id>`, `$result:<call id>#/items/0`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultHandle {
    /// The call.
    pub call: CallId,
    /// The part, as a JSON pointer; empty for the whole result.
    pub pointer: String,
}

impl ResultHandle {
    /// Returns the handle of a whole result.
    pub fn whole(call: CallId) -> Self {
        Self { call, pointer: String::new() }
    }

    /// Parses an argument; `None` if it is an ordinary text.
    pub fn of_argument(value: &Value) -> Option<Self> {
        let text = value.as_str()?;
        text.starts_with(PREFIX).then(|| text.parse().ok()).flatten()
    }
}

impl fmt::Display for ResultHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}", self.call)?;
        if self.pointer.is_empty() { Ok(()) } else { write!(f, "#{}", self.pointer) }
    }
}

/// The text is not a handle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected `$result:<call id>`, optionally with a JSON pointer such as `#/items/0`")]
pub struct InvalidHandle;

impl FromStr for ResultHandle {
    type Err = InvalidHandle;

    fn from_str(text: &str) -> Result<Self, InvalidHandle> {
        let rest = text.strip_prefix(PREFIX).ok_or(InvalidHandle)?;
        let (call, pointer) = rest.split_once('#').unwrap_or((rest, ""));
        if !pointer.is_empty() && !pointer.starts_with('/') {
            return Err(InvalidHandle);
        }
        Ok(Self { call: call.parse().map_err(|_| InvalidHandle)?, pointer: pointer.to_owned() })
    }
}

/// What callers and models get instead of a large result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LargeResult {
    /// Stands for the result, in arguments of other calls too.
    #[cfg_attr(feature = "openapi", schema(example = "$result:018faf50-b7b6-7a01-9a05-a22a6e0af101"))]
    pub handle: String,
    /// The size of the result in bytes.
    pub bytes: u64,
    /// What the result is.
    #[cfg_attr(feature = "openapi", schema(example = "array of 5000 items"))]
    pub shape: String,
    /// The first characters of the result.
    pub preview: String,
    /// How to use the handle, in words for a model.
    pub note: String,
}

impl LargeResult {
    /// Describes a result; `json` is the result as it is stored.
    pub fn new(call: CallId, value: &Value, json: &str) -> Self {
        let handle = ResultHandle::whole(call).to_string();
        let text = value.as_str().unwrap_or(json);
        let note = format!(
            "The result is too large to show here. Pass `{handle}` as an argument of another tool to hand it on, or a part \
             of it by a JSON pointer, such as `{}`.",
            ResultHandle { call, pointer: example_pointer(value) }
        );
        let bytes = json.len() as u64;
        Self { handle, bytes, shape: shape(value), preview: preview(text), note }
    }

    /// Returns the value that takes the place of the result.
    pub fn into_value(self) -> Value {
        serde_json::json!({
            "handle": self.handle,
            "bytes": self.bytes,
            "shape": self.shape,
            "preview": self.preview,
            "note": self.note,
        })
    }
}

/// Returns the first characters of a text, with its line breaks.
fn preview(text: &str) -> String {
    let mut preview: String = text.chars().take(PREVIEW).collect();
    if preview.len() < text.len() {
        preview.push('…');
    }
    preview
}

/// Returns the pointer to the first part of a value, as an example.
fn example_pointer(value: &Value) -> String {
    match value {
        Value::Object(map) => {
            let key = map.keys().find(|key| key.len() <= 40).map_or("key", String::as_str);
            format!("/{}", key.replace('~', "~0").replace('/', "~1"))
        }
        _ => "/0".to_owned(),
    }
}

fn shape(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("array of {} items", items.len()),
        Value::Object(map) => {
            let keys: Vec<_> = map.keys().take(LISTED_KEYS).map(|key| excerpt(key, 40)).collect();
            let more = if map.len() > LISTED_KEYS { ", …" } else { "" };
            format!("object with the keys {}{more}", keys.join(", "))
        }
        Value::String(text) => format!("text of {} lines", text.lines().count()),
        _ => "scalar".to_owned(),
    }
}

/// Keeps results that are too large for the record of their call, and finds results by their handles.
pub trait Results: Send + Sync {
    /// Returns the size in bytes above which a result is stored apart.
    fn max_inline_bytes(&self) -> u64;

    /// Stores the result of a call. When this returns, it survives a crash.
    fn store(&self, tenant: &TenantId, call: CallId, json: String) -> BoxFuture<'_, Result<(), CallError>>;

    /// Returns the whole result of a call that the principal may see.
    fn load<'a>(
        &'a self,
        principal: &'a Principal,
        call: CallId,
    ) -> BoxFuture<'a, Result<LoadedResult, CallError>>;
}

/// A result that was found by its handle.
#[derive(Debug, Clone)]
pub struct LoadedResult {
    /// The value.
    pub value: Value,
    /// Its size in bytes.
    pub bytes: u64,
}

impl LoadedResult {
    /// Returns the part that a handle refers to.
    pub fn part(&self, handle: &ResultHandle) -> Result<&Value, CallError> {
        self.value.pointer(&handle.pointer).ok_or_else(|| {
            let message = format!(
                "`{}` of the result of call `{}` does not exist; the result is this: {}",
                excerpt(&handle.pointer, 200),
                handle.call,
                shape(&self.value)
            );
            CallError::new(crate::outcome::ErrorCode::InvalidArguments, message)
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const ID: &str = "018faf50-b7b6-7a01-9a05-a22a6e0af101";

    #[test]
    fn handles_are_written_as_they_are_read() {
        for text in [format!("$result:{ID}"), format!("$result:{ID}#/items/0/a~1b")] {
            assert_eq!(text.parse::<ResultHandle>().unwrap().to_string(), text);
        }
        for text in ["", "$result:", "$result:x", &format!("$result:{ID}#items"), &format!("{ID}#/a")] {
            assert_eq!(text.parse::<ResultHandle>(), Err(InvalidHandle), "{text}");
            assert_eq!(ResultHandle::of_argument(&json!(text)), None);
        }
        assert_eq!(ResultHandle::of_argument(&json!(7)), None);
    }

    #[test]
    fn a_large_result_is_described() {
        let call: CallId = ID.parse().unwrap();
        let value = json!({"a/b": vec!["x".repeat(100); 50], "n": 1});
        let text = value.to_string();
        let large = LargeResult::new(call, &value, &text);
        assert_eq!(large.shape, "object with the keys a/b, n");
        assert_eq!(large.bytes, text.len() as u64);
        assert!(large.preview.chars().count() <= PREVIEW + 1, "{}", large.preview.len());
        assert!(large.note.contains(&format!("$result:{ID}#/a~1b")), "{}", large.note);
        let read: LargeResult = serde_json::from_value(large.clone().into_value()).unwrap();
        assert_eq!(read, large);
    }

    #[test]
    fn a_part_is_found_by_its_pointer() {
        let loaded = LoadedResult { value: json!({"items": [1, 2]}), bytes: 15 };
        let part = |pointer: &str| {
            let handle = format!("$result:{ID}#{pointer}").parse().unwrap();
            loaded.part(&handle).cloned()
        };
        assert_eq!(part("/items/1").unwrap(), json!(2));
        let error = part("/items/2").unwrap_err();
        assert!(error.message.contains("/items/2") && error.message.contains("keys items"), "{error}");
    }
}
