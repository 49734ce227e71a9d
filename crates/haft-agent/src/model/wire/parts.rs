//! Small conversions that several formats share.

use haft_core::hash;
use serde_json::Value;

use crate::model::error::{Failure, ModelErrorKind};
use crate::model::image::ImageSource;
use crate::model::provider::Provider;
use crate::model::request::ReasoningProof;

/// The longest id of a call that every provider accepts.
const MAX_ID_LENGTH: usize = 40;

/// Returns the id of a call in a form that every provider accepts: ids of one provider may be sent to another.
pub(super) fn wire_id(id: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !id.is_empty() && id.len() <= MAX_ID_LENGTH && id.chars().all(plain) {
        return id.to_owned();
    }
    let digest = hash::of_bytes(id.as_bytes());
    format!("call_{}", digest.get(..32).unwrap_or(&digest))
}

/// Returns the arguments of a call as an object, for formats that accept nothing else.
pub(super) fn object_arguments(arguments: &Value) -> Value {
    match arguments {
        Value::Object(_) => arguments.clone(),
        // The model is shown what it wrote.
        other => serde_json::json!({ "invalid_arguments": other }),
    }
}

/// Returns the arguments of a call as JSON text.
pub(super) fn text_arguments(arguments: &Value) -> String {
    object_arguments(arguments).to_string()
}

/// Returns the proof that a provider issued itself.
pub(super) fn own_proof(proof: Option<&ReasoningProof>, provider: Provider) -> Option<&ReasoningProof> {
    proof.filter(|proof| proof.provider == provider)
}

/// Rejects an image that a provider would have to fetch.
pub(super) fn inline_image(source: &ImageSource) -> Result<(&str, &str), Failure> {
    match source {
        ImageSource::Base64 { media_type, data } => Ok((media_type, data)),
        ImageSource::Url { .. } => Err(Failure::new(
            ModelErrorKind::Unsupported,
            "the provider does not fetch images by address; send the bytes",
        )),
    }
}

/// Parses the data of an event.
pub(super) fn parse_event(data: &str) -> Result<Value, Failure> {
    serde_json::from_str(data).map_err(|error| {
        Failure::new(ModelErrorKind::BrokenStream, format!("an event is not valid JSON: {error}"))
    })
}

/// Returns a text of an object.
pub(super) fn text<'v>(value: &'v Value, key: &str) -> Option<&'v str> {
    value.get(key).and_then(Value::as_str)
}

/// Returns a list of an object, or an empty one.
pub(super) fn list<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Returns the number at a path of an object, or 0.
pub(super) fn count(value: &Value, path: &[&str]) -> u64 {
    let found = path.iter().try_fold(value, |value, key| value.get(key));
    found.and_then(Value::as_u64).unwrap_or(0)
}
