//! What clients send.

use serde::Deserialize;
use serde_json::{Map, Value};
use uuid::Uuid;

use haft_platform::error::ServiceError;

/// The names of the frames that clients send.
const TYPES: [&str; 4] = ["message", "approval_response", "stop", "ping"];

/// A frame of a client.
#[derive(Debug, PartialEq)]
pub(super) enum ClientFrame {
    /// A message to an agent.
    Message(MessageFrame),
    /// A decision about a call.
    ApprovalResponse(ApprovalFrame),
    /// Stops the answer in a chat.
    Stop(StopFrame),
    /// Asks for a `pong`.
    Ping,
}

/// A message to an agent.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(expecting = "an object")]
pub(super) struct MessageFrame {
    /// A text, or an array of content blocks.
    pub(super) content: Value,
    /// The chat; a new one if it is missing.
    #[serde(default)]
    pub(super) chat_id: Option<Uuid>,
    /// The slug of the agent of a new chat.
    #[serde(default)]
    pub(super) agent: Option<String>,
    /// The message before it.
    #[serde(default)]
    pub(super) parent_id: Option<Uuid>,
}

/// A decision about a call.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(expecting = "an object")]
pub(super) struct ApprovalFrame {
    pub(super) approval_id: Uuid,
    pub(super) approved: bool,
    /// Why it was denied.
    #[serde(default)]
    pub(super) reason: Option<String>,
    /// Arguments to run with instead of those requested.
    #[serde(default)]
    pub(super) args: Option<Map<String, Value>>,
}

/// Stops an answer.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(expecting = "an object")]
pub(super) struct StopFrame {
    pub(super) chat_id: Uuid,
}

impl ClientFrame {
    /// Parses a frame. Unknown fields are ignored, so that newer clients work with older servers.
    pub(super) fn parse(text: &str) -> Result<Self, ServiceError> {
        let invalid = |error: serde_json::Error| ServiceError::bad_request(format!("invalid frame: {error}"));
        let value: Value = serde_json::from_str(text)
            .map_err(|error| ServiceError::bad_request(format!("the frame is not valid JSON: {error}")))?;
        let Some(name) = value.get("type").and_then(Value::as_str).map(str::to_owned) else {
            return Err(ServiceError::bad_request(format!(
                "a frame is an object with a `type`; {}",
                expected()
            )));
        };
        match name.as_str() {
            "message" => serde_json::from_value(value).map(Self::Message).map_err(invalid),
            "approval_response" => serde_json::from_value(value).map(Self::ApprovalResponse).map_err(invalid),
            "stop" => serde_json::from_value(value).map(Self::Stop).map_err(invalid),
            "ping" => Ok(Self::Ping),
            other => {
                let other = haft_core::problem::excerpt(other, 40);
                Err(ServiceError::bad_request(format!("unknown frame type `{other}`; {}", expected())))
            }
        }
    }
}

fn expected() -> String {
    format!("expected one of {}", TYPES.map(|name| format!("`{name}`")).join(", "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn frames_are_parsed() {
        let id = Uuid::from_u128(7);
        let message = json!({"type": "message", "content": "Hi", "chat_id": id, "later": 1}).to_string();
        let expected = MessageFrame { content: json!("Hi"), chat_id: Some(id), agent: None, parent_id: None };
        assert_eq!(ClientFrame::parse(&message).unwrap(), ClientFrame::Message(expected));
        let decision =
            json!({"type": "approval_response", "approval_id": id, "approved": false, "reason": "no"});
        let expected =
            ApprovalFrame { approval_id: id, approved: false, reason: Some("no".to_owned()), args: None };
        assert_eq!(
            ClientFrame::parse(&decision.to_string()).unwrap(),
            ClientFrame::ApprovalResponse(expected)
        );
        let stop = json!({"type": "stop", "chat_id": id}).to_string();
        assert_eq!(ClientFrame::parse(&stop).unwrap(), ClientFrame::Stop(StopFrame { chat_id: id }));
        assert_eq!(ClientFrame::parse(r#"{"type":"ping"}"#).unwrap(), ClientFrame::Ping);
    }

    #[test]
    fn wrong_frames_say_what_is_expected() {
        for (text, expected) in [
            ("", "not valid JSON"),
            ("[]", "an object with a `type`"),
            ("{}", "expected one of `message`, `approval_response`, `stop`, `ping`"),
            (r#"{"type":"massage"}"#, "unknown frame type `massage`"),
            (r#"{"type":"message"}"#, "missing field `content`"),
            (r#"{"type":"stop","chat_id":"x"}"#, "invalid frame"),
            (r#"{"type":"approval_response","approval_id":"x"}"#, "invalid frame"),
        ] {
            let error = ClientFrame::parse(text).unwrap_err();
            assert!(error.message.contains(expected), "{text}: {}", error.message);
        }
    }
}
