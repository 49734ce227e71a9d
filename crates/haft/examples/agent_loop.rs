//! An agent loop by hand, with any API in the style of OpenAI: ask the model, run the tools that it calls, tell it what
//! came of them, until it answers in words.
//!
//! - `cargo run -p haft --example agent_loop -- stub` talks to a stand-in for a model in this process;
//! - `cargo run -p haft --example agent_loop -- http://127.0.0.1:11434/v1 qwen3` to a model on this machine;
//! - `OPENAI_API_KEY=… cargo run -p haft --example agent_loop -- https://api.openai.com/v1 gpt-5-mini` to a service.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;

use haft::{Format, Tools, tool};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

/// A model that never stops calling is stopped.
const MAX_ROUNDS: usize = 10;

/// Returns the current weather of a city.
#[tool]
fn weather(
    /// Which city
    city: &str,
) -> Value {
    json!({"city": city, "celsius": 21, "sky": "clear"})
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    // The provider of TLS is the program's choice.
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
        let message = ask(&base, &model, &messages, &tools.schema(Format::OpenAi)).await?;
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
    Err("the model did not come to an answer".into())
}

/// Runs one call of the model; a failure is an answer too, in words for the model.
async fn run(tools: &Tools, call: &Value) -> Value {
    let text = |pointer: &str| call.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let name = text("/function/name");
    let content = match serde_json::from_str(text("/function/arguments")) {
        Ok(args) => match tools.execute_json(name, args).await {
            Ok(value) => value.to_string(),
            Err(error) => error.model_text(),
        },
        Err(error) => format!("Tool call failed: the arguments are not JSON: {error}"),
    };
    println!("[{name} {}] {content}", text("/function/arguments"));
    json!({"role": "tool", "tool_call_id": call.get("id"), "content": content})
}

/// Asks the model what comes next.
async fn ask(base: &str, model: &str, messages: &[Value], tools: &[Value]) -> Result<Value, Box<dyn Error>> {
    #[expect(clippy::disallowed_methods, reason = "an example is a program")]
    let key = std::env::var("OPENAI_API_KEY").unwrap_or_default();
    let body = json!({"model": model, "messages": messages, "tools": tools});
    let answer = reqwest::Client::new()
        .post(format!("{base}/chat/completions"))
        .bearer_auth(key)
        .header("content-type", "application/json")
        .body(body.to_string())
        .send()
        .await?
        .error_for_status()?;
    let answer: Value = serde_json::from_str(&answer.text().await?)?;
    answer.pointer("/choices/0/message").cloned().ok_or_else(|| "the answer has no message".into())
}

/// Starts a stand-in for a model: it calls the tool, and then says what came of it.
async fn stub() -> Result<String, Box<dyn Error>> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let base = format!("http://{}/v1", listener.local_addr()?);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = Vec::new();
            // A request of this example has no byte after the end of its JSON.
            while !request.ends_with(b"]}") {
                if stream.read_buf(&mut request).await.unwrap_or_default() == 0 {
                    break;
                }
            }
            let is_told = String::from_utf8_lossy(&request).contains("\"role\":\"tool\"");
            let function = json!({"name": "weather", "arguments": "{\"city\":\"Paris\"}"});
            let call = json!({"id": "call-1", "type": "function", "function": function});
            let message = if is_told {
                json!({"role": "assistant", "content": "It is clear in Paris, at 21 degrees."})
            } else {
                json!({"role": "assistant", "content": null, "tool_calls": [call]})
            };
            let body = json!({"choices": [{"message": message}]}).to_string();
            let head =
                format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
            // Whoever does not wait for the answer does not get one.
            let _ = stream.write_all(format!("{head}{body}").as_bytes()).await;
        }
    });
    Ok(base)
}
