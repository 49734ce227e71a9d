//! The loop of an agent: 50 tool calls in one run against an instant model server, next to Python frameworks in the same
//! run and against the same server.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use axum::body::Body;
use axum::extract::Json;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::load::{self, Connection};
use crate::process::Server;
use crate::servers;

/// The number of tool calls of one run.
const CALLS: usize = 50;
/// How often each run is measured; the best counts.
const RUNS: usize = 5;
/// The frameworks, in their own interpreter.
const PEERS: &str = include_str!("../peers/agent_loops.py");

/// Measures and prints the table.
pub async fn run() -> Result<()> {
    println!("\n## The loop of an agent: {CALLS} calls of a no-op tool in one run, instant model server\n");
    println!("| loop | ms per run | ms per step | ratio to haft |");
    println!("| --- | ---: | ---: | ---: |");
    let model = Server::start(&["serve-model"])?;
    print("requests to the model server alone", bare(model.addr).await?, None);
    let haft = haft(model.addr).await?;
    print("haft, each step stored", haft, Some(haft));
    for peer in ["langgraph", "pydantic_ai", "openai_agents"] {
        match framework(peer, model.addr) {
            Ok(time) => print(peer, time, Some(haft)),
            Err(error) => println!("| {peer} | not measured ({error:#}) | | |"),
        }
    }
    Ok(())
}

fn print(name: &str, time: Duration, haft: Option<Duration>) {
    let ms = time.as_secs_f64() * 1e3;
    let ratio = haft.map(|haft| format!("{:.1}", time.as_secs_f64() / haft.as_secs_f64()));
    println!("| {name} | {ms:.1} | {:.2} | {} |", ms / CALLS as f64, ratio.unwrap_or_default());
}

/// Sends the requests of a run and nothing else: the lower bound of every loop.
async fn bare(model: SocketAddr) -> Result<Duration> {
    let bodies: Vec<Vec<u8>> = (0..=CALLS)
        .map(|calls| {
            let mut messages = vec![json!({"role": "user", "content": "Call the tool until you are done."})];
            messages.extend((0..calls).flat_map(exchange));
            let body = json!({"model": "instant", "messages": messages, "stream": true}).to_string();
            load::request("POST", "/v1/chat/completions", "none", &body)
        })
        .collect();
    let mut best = Duration::MAX;
    for _ in 0..RUNS {
        let mut connection = Connection::open(model).await?;
        let started = Instant::now();
        for body in &bodies {
            connection.exchange(body).await?;
        }
        best = best.min(started.elapsed());
    }
    Ok(best)
}

/// One call and its result, as a client sends them.
fn exchange(call: usize) -> [Value; 2] {
    let id = format!("call_{call}");
    let function = json!({"name": "noop", "arguments": r#"{"city":"Paris","days":3}"#});
    [
        json!({"role": "assistant", "tool_calls": [{"id": id, "type": "function", "function": function}]}),
        json!({"role": "tool", "tool_call_id": id, "content": r#"{"city":"Paris","days":3}"#}),
    ]
}

/// Runs an agent of haft through its REST API.
async fn haft(model: SocketAddr) -> Result<Duration> {
    let home = tempfile::tempdir()?;
    let path = home.path().to_str().context("the path is not valid UTF-8")?;
    let server = Server::start(&["serve-haft-agents", path, &format!("http://{model}")])?;
    crate::tables::create_noop(&server).await?;
    let agent = json!({
        "slug": "bench", "tools": ["noop"], "max_iterations": 2 * CALLS,
        "model": {"name": "instant", "provider": "openai_compatible", "base_url": format!("http://{model}/v1")},
    });
    let mut connection = Connection::open(server.addr).await?;
    let created = load::request("POST", "/api/agents", &server.token, &agent.to_string());
    connection.exchange(&created).await?;
    let body = json!({"input": "Call the tool until you are done."}).to_string();
    let request = load::request("POST", "/api/agents/bench/runs?mode=debug", &server.token, &body);
    let mut best = Duration::MAX;
    for _ in 0..=RUNS {
        let started = Instant::now();
        let answer = connection.exchange(&request).await?;
        best = best.min(started.elapsed());
        ensure!(answer.contains("done after 50 calls"), "unexpected answer: {answer}");
    }
    Ok(best)
}

/// Runs an agent of a framework.
fn framework(peer: &str, model: SocketAddr) -> Result<Duration> {
    let installed = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../target/bench-peers/agents/bin/python");
    let python = std::env::var_os("HAFT_BENCH_PYTHON").map_or(installed, PathBuf::from);
    let output = Command::new(python)
        .args(["-c", PEERS, peer, &format!("http://{model}/v1"), &RUNS.to_string()])
        .output()
        .context("run `tools/setup peers agents` first")?;
    if !output.status.success() {
        let error = String::from_utf8_lossy(&output.stderr);
        bail!("{}", error.lines().last().unwrap_or_default());
    }
    let times: Vec<f64> = serde_json::from_slice(&output.stdout)?;
    let best = times.into_iter().reduce(f64::min).context("no run")?;
    Ok(Duration::from_secs_f64(best))
}

/// A model that calls the tool 50 times and then answers, in the format of chat completions.
pub fn model() -> Result<()> {
    servers::runtime()?.block_on(async {
        let router = axum::Router::new().route("/v1/chat/completions", post(answer));
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        servers::announce(&listener, "none")?;
        let listener = axum::serve::ListenerExt::tap_io(listener, |stream| {
            let _ = stream.set_nodelay(true);
        });
        Ok(axum::serve(listener, router).await?)
    })
}

async fn answer(Json(request): Json<Value>) -> Response {
    let messages = request.get("messages").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let done = messages.iter().filter(|message| message.get("role") == Some(&json!("tool"))).count();
    let (message, reason) = if done < CALLS {
        let function = json!({"name": "noop", "arguments": r#"{"city":"Paris","days":3}"#});
        let call =
            json!({"index": 0, "id": format!("call_{done}"), "type": "function", "function": function});
        (json!({"role": "assistant", "content": null, "tool_calls": [call]}), "tool_calls")
    } else {
        (json!({"role": "assistant", "content": format!("done after {done} calls")}), "stop")
    };
    let usage = json!({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15});
    let response = |object: &str, choice: Value| json!({"id": "chatcmpl-1", "object": object, "created": 1, "model": "instant", "choices": [choice], "usage": usage});
    if request.get("stream") != Some(&json!(true)) {
        let choice = json!({"index": 0, "message": message, "finish_reason": reason});
        return Json(response("chat.completion", choice)).into_response();
    }
    let choice = json!({"index": 0, "delta": message, "finish_reason": reason});
    let chunk = response("chat.completion.chunk", choice);
    let body = Body::from(format!("data: {chunk}\n\ndata: [DONE]\n\n"));
    ([(CONTENT_TYPE, "text/event-stream")], body).into_response()
}
