//! Reads the body of `POST /v1/responses`.

use haft_agent::model::{ContentPart, ModelMessage};
use haft_core::chat::MessageRole;
use haft_core::id::RunId;
use haft_core::problem::excerpt;
use serde_json::Value;
use uuid::Uuid;

use super::chat_request::{Conversation, MAX_MESSAGES, NO_CLIENT_TOOLS};
use super::content;
use super::error::OpenAiError;
use super::fields::{Fields, wrong};
use super::overrides::{Format, Overrides};

/// What the ids of responses start with; the rest is the id of the run.
pub(super) const ID_PREFIX: &str = "resp_";

/// A request for a response.
#[derive(Debug)]
pub(super) struct ResponsesRequest {
    /// The slug of the agent.
    pub(super) model: String,
    pub(super) instructions: Option<String>,
    pub(super) input: Vec<ModelMessage>,
    /// The run whose conversation goes on.
    pub(super) previous: Option<RunId>,
    pub(super) stream: bool,
    pub(super) overrides: Overrides,
    /// What the client wants to be repeated to it.
    pub(super) metadata: Value,
}

impl ResponsesRequest {
    /// Reads a body. Unknown fields are ignored.
    pub(super) fn read(body: &Value) -> Result<Self, OpenAiError> {
        let fields = Fields::of_body(body)?;
        let model = fields.required_text("model")?.to_owned();
        reject_unsupported(&fields)?;
        let mut overrides = Overrides::read(&fields)?;
        overrides.set_max_tokens(&fields, &["max_output_tokens"])?;
        if let Some(text) = fields.object("text")?
            && let Some(format) = text.object("format")?
        {
            overrides.format = Format::read(&format)?;
        }
        let previous = match fields.text("previous_response_id")? {
            Some(id) => Some(run_id(id).ok_or_else(no_previous)?),
            None => None,
        };
        let metadata = fields.object("metadata")?.and_then(|_| fields.get("metadata")).cloned();
        Ok(Self {
            model,
            instructions: fields.text("instructions")?.map(str::to_owned),
            input: input(fields.get("input").ok_or_else(|| fields.missing("input"))?)?,
            previous,
            stream: fields.flag("stream")?,
            overrides,
            metadata: metadata.unwrap_or_else(|| Value::Object(serde_json::Map::new())),
        })
    }
}

/// Returns the error of a previous response that does not exist.
pub(super) fn no_previous() -> OpenAiError {
    let message = "there is no such response: it belongs to another caller, or is too old";
    OpenAiError::invalid("previous_response_id", message)
}

/// Returns the run of a response.
pub(super) fn run_id(response: &str) -> Option<RunId> {
    let id = response.strip_prefix(ID_PREFIX)?;
    Uuid::try_parse(id).ok().map(RunId)
}

fn reject_unsupported(fields: &Fields<'_>) -> Result<(), OpenAiError> {
    if fields.list("tools")?.is_some_and(|list| !list.is_empty()) {
        return Err(OpenAiError::unsupported("tools", NO_CLIENT_TOOLS));
    }
    if fields.flag("background")? {
        let message = "responses in the background are not supported; start a run with \
                       `POST /api/agents/{slug}/runs?async=true`";
        return Err(OpenAiError::unsupported("background", message));
    }
    for name in ["conversation", "prompt"] {
        if fields.get(name).is_some() {
            let message = "stored conversations and prompts of this API are not supported; send `input`, and \
                           `previous_response_id` to continue a conversation";
            return Err(OpenAiError::unsupported(name, message));
        }
    }
    Ok(())
}

fn input(value: &Value) -> Result<Vec<ModelMessage>, OpenAiError> {
    let items = match value {
        Value::String(text) => return Ok(vec![ModelMessage::user(text)]),
        Value::Array(items) => items,
        other => return Err(wrong("input", "a string or an array of items", other)),
    };
    if items.is_empty() {
        return Err(OpenAiError::invalid("input", "expected at least one item"));
    }
    if items.len() > MAX_MESSAGES {
        let message = format!("{} items exceed the limit of {MAX_MESSAGES}", items.len());
        return Err(OpenAiError::invalid("input", message));
    }
    let mut conversation = Conversation::default();
    for (index, item) in items.iter().enumerate() {
        read_item(&mut conversation, item, &format!("input[{index}]"))?;
    }
    if conversation.messages.is_empty() {
        return Err(OpenAiError::invalid("input", "expected at least one message"));
    }
    Ok(conversation.messages)
}

fn read_item(conversation: &mut Conversation, value: &Value, path: &str) -> Result<(), OpenAiError> {
    let fields = Fields::of(value, path)?;
    match fields.text("type")?.unwrap_or("message") {
        "message" => read_message(conversation, &fields),
        "function_call" => {
            let (id, name) = (fields.required_text("call_id")?, fields.required_text("name")?);
            let arguments = fields.text("arguments")?.unwrap_or_default();
            let call = conversation.call(id, name, arguments);
            conversation.push(MessageRole::Assistant, vec![call]);
            Ok(())
        }
        "function_call_output" => {
            let output = content::text(fields.get("output"), &fields.path("output"))?;
            conversation.add_result(fields.required_text("call_id")?, output, &fields.path("call_id"))
        }
        // The agent reasons anew.
        "reasoning" => Ok(()),
        other => {
            let message = format!("items of type `{}` are not supported", excerpt(other, 40));
            Err(OpenAiError::unsupported(fields.path("type"), message))
        }
    }
}

fn read_message(conversation: &mut Conversation, fields: &Fields<'_>) -> Result<(), OpenAiError> {
    let (content, at) = (fields.get("content"), fields.path("content"));
    let role = match fields.required_text("role")? {
        "system" | "developer" => {
            let text = content::text(content, &at)?;
            conversation.push(MessageRole::System, vec![ContentPart::Text { text }]);
            return Ok(());
        }
        "user" => MessageRole::User,
        "assistant" => MessageRole::Assistant,
        other => {
            let message = format!(
                "unknown role `{}`; expected `system`, `developer`, `user` or `assistant`",
                excerpt(other, 40)
            );
            return Err(OpenAiError::invalid(fields.path("role"), message));
        }
    };
    let parts = content::parts(content, &at)?;
    match (parts.is_empty(), role) {
        (false, role) => conversation.push(role, parts),
        // An empty answer says nothing to a model, and some providers reject it.
        (true, MessageRole::Assistant) => {}
        (true, _) => return Err(fields.missing("content")),
    }
    Ok(())
}
