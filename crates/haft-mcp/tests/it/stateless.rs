//! haft as the client of a stateless HTTP server.
#![expect(clippy::disallowed_methods, reason = "the server is a process of the test")]

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;

use haft_core::executor::{CallEvent, EventSink};
use haft_core::mcp::{McpServer, Phase, StreamableHttp, Transport};
use haft_core::name::TenantId;
use haft_core::outcome::ErrorCode;
use serde_json::{Value, json};

use crate::client::{Events, Rig, id};

struct Server {
    child: Child,
    output: BufReader<ChildStdout>,
    port: String,
}

impl Server {
    /// Starts the server, and haft's client of it.
    async fn start() -> (Self, Rig) {
        let mut server = Self::at("0");
        server.port = server.line();
        let url = format!("http://127.0.0.1:{}/mcp", server.port);
        let headers = BTreeMap::from([("X-Key".to_owned(), "${API_KEY}".to_owned())]);
        let transport = Transport::Http(StreamableHttp { url, headers, ..StreamableHttp::default() });
        let rig = Rig::of(McpServer::new(id(), TenantId::default_tenant(), transport));
        let state = rig.until(|state| state.phase == Phase::Connected).await;
        assert_eq!(state.protocol.as_deref(), Some("2026-07-28"));
        (server, rig)
    }

    fn at(port: &str) -> Self {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/http_server.py");
        let mut child = Command::new("python3").args([script, port]).stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self { child, output, port: port.to_owned() }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim().to_owned()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test]
async fn a_call_is_one_request_with_the_required_metadata() {
    let (_server, rig) = Server::start().await;
    assert_eq!(rig.call("echo", json!({"text": "hello"}), None).await, Ok(json!("hello")));
    let received = rig.call("headers", json!({}), None).await.unwrap();
    let keys = ["clientCapabilities", "clientInfo", "protocolVersion"];
    let meta = keys.map(|key| Value::String(format!("io.modelcontextprotocol/{key}")));
    let expected = json!(["2026-07-28", "tools/call", "headers", meta[0], meta[1], meta[2], "progressToken"]);
    assert_eq!(received, expected);
    // rmcp sends this one.
    assert_eq!(rig.call("regional", json!({"region": "north"}), None).await, Ok(json!("north")));
}

#[tokio::test]
async fn progress_is_forwarded_and_a_changed_list_is_read_again() {
    let (_server, rig) = Server::start().await;
    let events = Arc::<Events>::default();
    let sink: Arc<dyn EventSink> = Arc::clone(&events) as _;
    assert_eq!(rig.call("watched", json!({}), Some(sink)).await, Ok(json!("watched")));
    // The message of the server contains the key.
    assert_eq!(*events.0.lock().unwrap(), [CallEvent::Progress(0.5, "half, with ***".to_owned())]);
    assert_eq!(rig.call("grow", json!({}), None).await, Ok(json!("grown")));
    rig.until(|state| state.tools == 10).await;
}

#[tokio::test]
async fn invalid_tools_are_reported_and_the_others_accepted() {
    let (_server, rig) = Server::start().await;
    let state = rig.until(|state| state.tools == 9).await;
    assert_eq!(state.refused.len(), 1, "{:?}", state.refused);
    assert!(state.refused[0].starts_with("broken: "), "{:?}", state.refused);
}

#[tokio::test]
async fn a_restarted_server_is_reconnected() {
    let (server, rig) = Server::start().await;
    let port = server.port.clone();
    drop(server);
    let error = rig.call("echo", json!({"text": "x"}), None).await.unwrap_err();
    assert_eq!((error.code, error.retryable), (ErrorCode::Network, true), "{error}");
    assert!(!error.message.contains("rmcp"), "{error}");
    assert_eq!(rig.state().phase, Phase::Error, "shown as soon as a call fails");
    rig.until(|state| state.phase == Phase::Error).await;
    let _server = Server::at(&port);
    rig.until(|state| state.phase == Phase::Connected).await;
    assert_eq!(rig.call("echo", json!({"text": "again"}), None).await, Ok(json!("again")));
}

#[tokio::test]
async fn an_error_fails_only_its_call() {
    let (_server, rig) = Server::start().await;
    for (tool, code, message) in [
        ("nope", ErrorCode::ExecutionFailed, "no such tool"),
        ("breaks", ErrorCode::Network, "lost the connection to MCP server `test`"),
        ("confused", ErrorCode::InvalidResponse, "the response does not match the request"),
        (
            "fails",
            ErrorCode::HttpStatus,
            "MCP server `test`: HTTP status 500 Internal Server Error without an MCP message",
        ),
    ] {
        let error = rig.call(tool, json!({}), None).await.unwrap_err();
        assert_eq!(error.code, code, "{tool}: {error}");
        assert!(error.message.contains(message) && !error.retryable, "{tool}: {error}");
    }
    assert_eq!(rig.call("echo", json!({"text": "still"}), None).await, Ok(json!("still")));
}

#[tokio::test]
async fn a_dropped_call_closes_the_connection() {
    let (mut server, rig) = Server::start().await;
    let received = tokio::task::spawn_blocking(move || (server.line(), server));
    let (line, mut server) = tokio::select! {
        outcome = rig.call("slow", json!({}), None) => panic!("the tool never responds: {outcome:?}"),
        received = received => received.unwrap(),
    };
    assert_eq!(line, "slow call received");
    // Another task closes the connection, so this one must not block.
    let line = tokio::task::spawn_blocking(move || server.line()).await.unwrap();
    assert_eq!(line, "client disconnected");
}
