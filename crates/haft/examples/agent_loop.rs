//! A hand-written agent loop for any OpenAI-compatible API: send the messages, run the tools that the model calls, send
//! their results, until the model answers with text.
//!
//! - `cargo run -p haft --example agent_loop -- stub` uses a fake model in this process;
//! - `cargo run -p haft --example agent_loop -- http://127.0.0.1:11434/v1 qwen3` uses a local model;
//! - `OPENAI_API_KEY=… cargo run -p haft --example agent_loop -- https://api.openai.com/v1 gpt-5-mini` uses a service.
#![expect(clippy::print_stdout, reason = "an example prints its results")]

use std::error::Error;

use haft::{Format, Tools, tool};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

/// Stops a model that never stops calling tools.
const MAX_ROUNDS: usize = 10;

/// Returns the current weather of a city.
#[tool]
fn weather(
    /// The name of the city
    city: &str,
) -> Value {
    json!({"city": city, "celsius": 21, "sky": "clear"})
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    // The program chooses the TLS provider.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut words = std::env::args().skip(1);
    let base = match words.next().as_deref() {
        None | Some("stub") => stub().await?,
        Some(url) => url.to_owned(),
    };
    let model = words.next().unwrap_or_else(|| "stub".to_owned());
    let tools = Tools::new();
    tools.register(weather::tool())?;
    let mut messages = vec![json!({"role": "user", "content": "What is the weather in Paris?"})];
    for _ in 0..MAX_ROUNDS {
        let message = complete(&base, &model, &messages, &tools.schema(Format::OpenAi)).await?;
        messages.push(message.clone());
        let calls = message.get("tool_calls").and_then(Value::as_array).cloned().unwrap_or_default();
        if calls.is_empty() {
            println!("{}", message.get("content").and_then(Value::as_str).unwrap_or_default());
            return Ok(());
        }
        for call in &calls {
            messages.push(run(&tools, call).await);
        }
    }
    Err(format!("no answer after {MAX_ROUNDS} rounds").into())
}

/// Runs one tool call of the model; an error is returned as text for the model.
async fn run(tools: &Tools, call: &Value) -> Value {
    let text = |pointer: &str| call.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let name = text("/function/name");
    let content = match serde_json::from_str(text("/function/arguments")) {
        Ok(args) => match tools.execute_json(name, args).await {
            Ok(value) => value.to_string(),
            Err(error) => error.model_text(),
        },
        Err(error) => format!("Tool call failed: the arguments are not valid JSON: {error}"),
    };
    println!("[{name} {}] {content}", text("/function/arguments"));
    json!({"role": "tool", "tool_call_id": call.get("id"), "content": content})
}

/// Sends the messages and returns the next message of the model.
async fn complete(
    base: &str,
    model: &str,
    messages: &[Value],
    tools: &[Value],
) -> Result<Value, Box<dyn Error>> {
    #[expect(clippy::disallowed_methods, reason = "an example is a program")]
    let key = std::env::var("OPENAI_API_KEY").unwrap_or_default();
    let body = json!({"model": model, "messages": messages, "tools": tools});
    let response = reqwest::Client::new()
        .post(format!("{base}/chat/completions"))
        .bearer_auth(key)
        .header("content-type", "application/json")
        .body(body.to_string())
        .send()
        .await?
        .error_for_status()?;
    let response: Value = serde_json::from_str(&response.text().await?)?;
    response.pointer("/choices/0/message").cloned().ok_or_else(|| "the response has no message".into())
}

/// Starts a fake model, which calls the tool and then answers with text.
async fn stub() -> Result<String, Box<dyn Error>> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let base = format!("http://{}/v1", listener.local_addr()?);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = Vec::new();
            // The JSON of this example ends with these bytes.
            while !request.ends_with(b"]}") {
                if stream.read_buf(&mut request).await.unwrap_or_default() == 0 {
                    break;
                }
            }
            let has_result = String::from_utf8_lossy(&request).contains("\"role\":\"tool\"");
            let function = json!({"name": "weather", "arguments": "{\"city\":\"Paris\"}"});
            let call = json!({"id": "call-1", "type": "function", "function": function});
            let message = if has_result {
                json!({"role": "assistant", "content": "It is clear in Paris, at 21 degrees."})
            } else {
                json!({"role": "assistant", "content": null, "tool_calls": [call]})
            };
            let body = json!({"choices": [{"message": message}]}).to_string();
            let head =
                format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
            // The client may have closed the connection.
            let _ = stream.write_all(format!("{head}{body}").as_bytes()).await;
        }
    });
    Ok(base)
}
