//! `send_whatsapp`: sends one text message with the `WhatsApp` Cloud API.

use bytes::Bytes;
use haft_core::executor::CallContext;
use haft_core::name::NameError;
use haft_core::outcome::{CallError, ErrorCode, Outcome};
use haft_core::problem::excerpt;
use haft_core::secret::Secret;
use haft_core::spec::{RateLimit, Retry, ToolSpec};
use haft_executors::egress::{Egress, OutgoingRequest};
use haft_executors::http::{Exchange, OverflowPolicy, exchange};
use http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use http::{HeaderMap, Method, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};
use url::Url;

use crate::settings::{PlatformSettings, Settings};
use crate::tool::{BuiltIn, Describe, describe, failed, invalid};

/// The default endpoint, with the version of the API.
const API_URL: &str = "https://graph.facebook.com/v23.0";
/// The maximum length of a text message, in characters.
const MAX_BODY: usize = 4096;
/// The maximum size of a response.
const MAX_RESPONSE_BYTES: u64 = 64 * 1024;
/// The code of the API for an invalid or expired access token.
const INVALID_TOKEN: u64 = 190;
/// The message for the model; the operator reads the details.
const NOT_CONFIGURED: &str = "WhatsApp is not configured";

pub(crate) fn spec(per_minute: u32) -> Result<ToolSpec, NameError> {
    let mut spec = describe(Describe {
        name: "send_whatsapp",
        description: "Send a WhatsApp text message from the configured business number. Use it only if the user asks for \
                      it: a sent message cannot be recalled. Returns the message id after WhatsApp has accepted the \
                      message.",
        category: "communication",
        tags: &["whatsapp", "message", "send"],
        input: json!({
            "type": "object",
            "properties": {
                "to": {"type": "string", "minLength": 7, "maxLength": 32, "description": "The recipient's phone number with country code, such as +49 170 1234567"},
                "body": {"type": "string", "minLength": 1, "maxLength": MAX_BODY, "description": "The text of the message"},
            },
            "required": ["to", "body"],
            "additionalProperties": false,
        }),
        output: json!({
            "type": "object",
            "properties": {"sent": {"const": true}, "message_id": {"type": "string"}, "to": {"type": "string"}},
            "required": ["sent", "message_id", "to"],
        }),
    })?;
    spec.network = true;
    spec.execution.timeout_ms = Some(30_000);
    // No retries: WhatsApp may have accepted the message.
    spec.execution.retry = Some(Retry { attempts: 0, backoff_ms: 0 });
    // A model in a loop must not flood phones.
    spec.execution.rate_limit =
        (per_minute > 0).then(|| RateLimit { calls: per_minute, per: "1m".to_owned() });
    Ok(spec)
}

/// The function of `send_whatsapp`.
pub(crate) struct SendWhatsApp {
    egress: Egress,
    platform: PlatformSettings,
}

impl SendWhatsApp {
    pub(crate) fn new(egress: Egress, platform: PlatformSettings) -> Self {
        Self { egress, platform }
    }
}

#[derive(Deserialize)]
pub(crate) struct Args {
    to: String,
    body: String,
}

impl BuiltIn for SendWhatsApp {
    type Args = Args;

    async fn call(&self, call: &CallContext, args: Args) -> Outcome {
        let to = phone_number(&args.to)?;
        if args.body.trim().is_empty() {
            return Err(invalid("`body` is empty"));
        }
        let account = Account::load(call, &self.platform).await?;
        let request = account.request(&to, &args.body)?;
        let response =
            exchange(&self.egress, call, request, MAX_RESPONSE_BYTES, OverflowPolicy::Fail).await?;
        if !response.status.is_success() {
            return Err(rejected(&response, call));
        }
        let answer: Value = serde_json::from_str(&response.text()).unwrap_or_default();
        let id = answer.pointer("/messages/0/id").and_then(Value::as_str).ok_or_else(|| {
            // A second attempt could send it twice.
            let message = "the response of WhatsApp has no message id; the message may have been sent";
            CallError::new(ErrorCode::InvalidResponse, message)
        })?;
        Ok(json!({"sent": true, "message_id": id, "to": to}))
    }
}

/// Returns the digits of a phone number in international format.
fn phone_number(text: &str) -> Result<String, CallError> {
    let digits: String = text.chars().filter(|c| !" -().\u{a0}".contains(*c)).collect();
    let digits = digits.strip_prefix('+').unwrap_or(&digits);
    let is_number = (7..=15).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number || digits.starts_with('0') {
        let message = "invalid `to`: expected a phone number with country code, such as `+49 170 1234567`";
        return Err(invalid(message));
    }
    Ok(digits.to_owned())
}

/// The sender and its access.
struct Account {
    phone_number_id: String,
    token: Secret,
    api_url: String,
}

impl Account {
    /// Loads the account of the tenant, or that of the platform if the tenant has none.
    async fn load(call: &CallContext, platform: &PlatformSettings) -> Result<Self, CallError> {
        const KEY: &str = "WHATSAPP_PHONE_NUMBER_ID";
        let Some(settings) = Settings::with_key(call, platform, KEY).await? else { return Err(missing(KEY)) };
        let phone_number_id = settings.plain(KEY).await?.ok_or_else(|| missing(KEY))?;
        if !phone_number_id.bytes().all(|byte| byte.is_ascii_digit()) {
            let message = format!(
                "WhatsApp is not configured: `{KEY}` is not a number; it is the id of the phone number, not the number itself"
            );
            return Err(failed(message).for_model(NOT_CONFIGURED));
        }
        let token = settings.secret("WHATSAPP_TOKEN").await?.ok_or_else(|| missing("WHATSAPP_TOKEN"))?;
        let api_url = settings.plain("WHATSAPP_API_URL").await?.unwrap_or_else(|| API_URL.to_owned());
        Ok(Self { phone_number_id, token, api_url })
    }

    fn request(&self, to: &str, body: &str) -> Result<OutgoingRequest, CallError> {
        let text = format!("{}/{}/messages", self.api_url.trim_end_matches('/'), self.phone_number_id);
        let url = Url::parse(&text).map_err(|error| {
            failed(format!("`WHATSAPP_API_URL` is not a valid URL: {error}")).for_model(NOT_CONFIGURED)
        })?;
        let mut authorization = HeaderValue::from_str(&format!("Bearer {}", self.token.expose().trim()))
            .map_err(|_| {
                failed("`WHATSAPP_TOKEN` contains characters that a header cannot have")
                    .for_model(NOT_CONFIGURED)
            })?;
        authorization.set_sensitive(true);
        let message = json!({
            "messaging_product": "whatsapp", "recipient_type": "individual", "to": to,
            "type": "text", "text": {"preview_url": false, "body": body},
        });
        Ok(OutgoingRequest {
            method: Method::POST,
            url,
            headers: HeaderMap::from_iter([
                (CONTENT_TYPE, HeaderValue::from_static("application/json")),
                (AUTHORIZATION, authorization),
            ]),
            body: Some(Bytes::from(message.to_string())),
            accepted_statuses: Vec::new(),
        })
    }
}

/// Returns the error of a message that `WhatsApp` did not accept.
fn rejected(response: &Exchange, call: &CallContext) -> CallError {
    let body: Value = serde_json::from_str(&response.text()).unwrap_or_default();
    let code = body.pointer("/error/code").and_then(Value::as_u64);
    let Some(reason) = body.pointer("/error/message").and_then(Value::as_str) else {
        return response.to_error(call).retryable(response.status == StatusCode::TOO_MANY_REQUESTS);
    };
    let reason = excerpt(reason, 300);
    if response.status == StatusCode::UNAUTHORIZED || code == Some(INVALID_TOKEN) {
        let message = format!("WhatsApp rejected the access token: {reason}; store a valid `WHATSAPP_TOKEN`");
        return failed(message).for_model(NOT_CONFIGURED);
    }
    let code = code.map_or_else(String::new, |code| format!(" (code {code})"));
    CallError::new(ErrorCode::HttpStatus, format!("WhatsApp rejected the message: {reason}{code}"))
        .retryable(response.status == StatusCode::TOO_MANY_REQUESTS)
}

fn missing(name: &str) -> CallError {
    let message = format!(
        "WhatsApp is not configured: `{name}` is missing; store a credential with that name or set the environment variable"
    );
    CallError::new(ErrorCode::SecretMissing, message).for_model(NOT_CONFIGURED)
}
