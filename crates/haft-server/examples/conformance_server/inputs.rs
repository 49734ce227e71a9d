//! Tools that request input from the client: with a request of their own in versions with sessions, and since 2026-07-28
//! with a result of the type `input_required`.

use std::hash::{BuildHasher as _, RandomState};

use haft_server::{ExtensionClient, ExtensionError, ExtensionResult};
use serde_json::{Map, Value, json};

use super::{schemas, text};

/// The error code of a request that needs a capability which the client did not declare.
const MISSING_CLIENT_CAPABILITY: i32 = -32021;

/// Handles the tools. The state that a client has to send back is signed, so that a changed one is noticed.
#[derive(Default)]
pub(crate) struct Inputs {
    key: RandomState,
}

impl Inputs {
    /// Handles a call of one of these tools.
    pub(crate) async fn call(&self, params: &Value, client: &ExtensionClient<'_>) -> Option<ExtensionResult> {
        let argument = |name: &str| params.get("arguments").map_or("", |arguments| text(arguments, name));
        Some(match text(params, "name") {
            "test_sampling" => sample(argument("prompt"), client).await,
            "test_elicitation" => elicit(argument("message"), schemas::person(), client).await,
            "test_elicitation_sep1034_defaults" => {
                elicit("Please review the defaults", schemas::defaults(), client).await
            }
            "test_elicitation_sep1330_enums" => elicit("Please choose", schemas::choices(), client).await,
            "test_missing_capability" => require_sampling(client),
            name if name.starts_with("test_trigger_") => {
                client.notify_tool_list_changed();
                Ok(text_result("Triggered a notification."))
            }
            name if name.starts_with("test_input_required_result_")
                || name == "test_streaming_elicitation" =>
            {
                self.call_with_inputs(name, params, client)
            }
            _ => return None,
        })
    }

    fn call_with_inputs(&self, name: &str, params: &Value, client: &ExtensionClient<'_>) -> ExtensionResult {
        let responses = Responses(params.get("inputResponses"));
        let state = params.get("requestState").and_then(Value::as_str);
        let round = state.map_or(Ok(0), |state| self.verify(state))?;
        Ok(match name {
            "test_input_required_result_sampling" => {
                if let Some(text) = responses.sampled("capital_question") {
                    text_result(text)
                } else {
                    let question = question("What is the capital of France?", 100);
                    input_required(&json!({"capital_question": question}), None)
                }
            }
            "test_input_required_result_list_roots" => match responses.roots("client_roots") {
                Some(roots) => text_result(&format!("The roots are {roots}")),
                None => input_required(&json!({"client_roots": list_roots()}), None),
            },
            "test_input_required_result_request_state" | "test_input_required_result_tampered_state" => {
                match (responses.content("confirm"), state) {
                    (Some(_), Some(_)) => text_result("state-ok"),
                    _ => input_required(&json!({"confirm": confirmation()}), Some(self.sign(1))),
                }
            }
            "test_input_required_result_multiple_inputs" => {
                let is_complete = responses.content("user_name").is_some()
                    && responses.sampled("greeting").is_some()
                    && responses.roots("client_roots").is_some();
                if is_complete && state.is_some() {
                    text_result("Received all inputs.")
                } else {
                    self.request_three_inputs()
                }
            }
            "test_input_required_result_multi_round" => match round {
                1 if responses.content("step1").is_some() => {
                    let request = form("Step 2: What is your favorite color?", "color");
                    input_required(&json!({"step2": request}), Some(self.sign(2)))
                }
                2 if responses.content("step2").is_some() => text_result("Both steps are complete."),
                _ => {
                    let request = form("Step 1: What is your name?", "name");
                    input_required(&json!({"step1": request}), Some(self.sign(1)))
                }
            },
            "test_input_required_result_capabilities" => request_what_is_supported(client),
            _ => match responses.content("user_name").and_then(|content| content.get("name")?.as_str()) {
                Some(name) => text_result(&format!("Hello, {name}!")),
                None => input_required(&json!({"user_name": form("What is your name?", "name")}), None),
            },
        })
    }

    fn request_three_inputs(&self) -> Value {
        let requests = json!({
            "user_name": form("What is your name?", "name"),
            "greeting": question("Generate a greeting", 50),
            "client_roots": list_roots(),
        });
        input_required(&requests, Some(self.sign(1)))
    }

    fn sign(&self, round: u8) -> String {
        format!("{round}.{:016x}", self.key.hash_one(round))
    }

    fn verify(&self, state: &str) -> Result<u8, ExtensionError> {
        let invalid = || ExtensionError::invalid_params("invalid `requestState`");
        let round = state.split('.').next().and_then(|round| round.parse().ok()).ok_or_else(invalid)?;
        if self.sign(round) == state { Ok(round) } else { Err(invalid()) }
    }
}

/// The responses to requested inputs.
struct Responses<'a>(Option<&'a Value>);

impl<'a> Responses<'a> {
    fn content(&self, key: &str) -> Option<&'a Value> {
        let response = self.0?.get(key)?;
        if response.get("action")? == "accept" { response.get("content") } else { None }
    }

    fn sampled(&self, key: &str) -> Option<&'a str> {
        sampled_text(self.0?.get(key)?)
    }

    fn roots(&self, key: &str) -> Option<String> {
        let roots = self.0?.get(key)?.get("roots")?.as_array()?;
        let uris: Vec<&str> = roots.iter().filter_map(|root| root.get("uri")?.as_str()).collect();
        Some(uris.join(", "))
    }
}

fn sampled_text(response: &Value) -> Option<&str> {
    let content = response.get("content")?;
    let block = content.as_array().and_then(|blocks| blocks.first()).unwrap_or(content);
    block.get("text")?.as_str()
}

fn text_result(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}], "isError": false})
}

/// Returns a result that requests input.
pub(crate) fn input_required(requests: &Value, state: Option<String>) -> Value {
    match state {
        Some(state) => {
            json!({"resultType": "input_required", "inputRequests": requests, "requestState": state})
        }
        None => json!({"resultType": "input_required", "inputRequests": requests}),
    }
}

/// Returns a question to the person.
pub(crate) fn form(message: &str, field: &str) -> Value {
    json!({"method": "elicitation/create", "params": {
        "message": message, "requestedSchema": schemas::one_string(field)}})
}

fn confirmation() -> Value {
    let schema = json!({"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]});
    json!({"method": "elicitation/create", "params": {"message": "Please confirm", "requestedSchema": schema}})
}

/// Returns a question to the model.
fn question(text: &str, max_tokens: u32) -> Value {
    json!({"method": "sampling/createMessage", "params": {
        "messages": [{"role": "user", "content": {"type": "text", "text": text}}], "maxTokens": max_tokens}})
}

fn list_roots() -> Value {
    json!({"method": "roots/list", "params": {}})
}

/// Requests only inputs that the client supports.
fn request_what_is_supported(client: &ExtensionClient<'_>) -> Value {
    let capabilities = client.capabilities();
    let mut requests = Map::new();
    if capabilities.get("sampling").is_some() {
        requests.insert("capital_question".to_owned(), question("What is the capital of France?", 100));
    }
    if capabilities.get("elicitation").is_some() {
        requests.insert("user_name".to_owned(), form("What is your name?", "name"));
    }
    if requests.is_empty() {
        text_result("The client supports no input requests.")
    } else {
        input_required(&requests.into(), None)
    }
}

fn require_sampling(client: &ExtensionClient<'_>) -> ExtensionResult {
    if client.capabilities().get("sampling").is_some() {
        return Ok(text_result("The client supports sampling."));
    }
    Err(ExtensionError {
        code: MISSING_CLIENT_CAPABILITY,
        message: "Missing required client capability".to_owned(),
        data: Some(json!({"requiredCapabilities": {"sampling": {}}})),
    })
}

async fn sample(prompt: &str, client: &ExtensionClient<'_>) -> ExtensionResult {
    let response = client.request(question(prompt, 100)).await?;
    Ok(text_result(&format!("LLM response: {}", sampled_text(&response).unwrap_or_default())))
}

async fn elicit(message: &str, schema: Value, client: &ExtensionClient<'_>) -> ExtensionResult {
    let request = json!({"method": "elicitation/create",
        "params": {"message": message, "requestedSchema": schema}});
    let response = client.request(request).await?;
    let content = response.get("content").cloned().unwrap_or_default();
    Ok(text_result(&format!(
        "Elicitation completed: action={}, content={content}",
        text(&response, "action")
    )))
}
