//! haft as the client of an HTTP server with sessions.
#![expect(clippy::disallowed_methods, reason = "the server is a process of the test")]

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use haft_core::mcp::{McpServer, Phase, StreamableHttp, Transport};
use haft_core::name::TenantId;
use haft_core::outcome::ErrorCode;
use serde_json::json;

use crate::client::{Rig, id};

/// Longer than any test.
const NEVER: Duration = Duration::from_hours(1);

struct Server(Child);

impl Server {
    /// Starts the server, and haft's client of it. The server returns `status` for an unknown session.
    async fn start(status: &str, poll_interval: Duration) -> (Self, Rig) {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/session_server.py");
        let mut child =
            Command::new("python3").args([script, "0", status]).stdout(Stdio::piped()).spawn().unwrap();
        let mut port = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut port).unwrap();
        let url = format!("http://127.0.0.1:{}/mcp", port.trim());
        let transport = Transport::Http(StreamableHttp { url, ..StreamableHttp::default() });
        let server = McpServer::new(id(), TenantId::default_tenant(), transport);
        let rig = Rig::polling(server, poll_interval);
        rig.until(|state| state.phase == Phase::Connected).await;
        (Self(child), rig)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn a_call_in_an_ended_session_runs_once_in_a_new_one() {
    for status in ["404", "400"] {
        let (_server, rig) = Server::start(status, NEVER).await;
        assert_eq!(rig.call("forget", json!({}), None).await, Ok(json!("call 1")), "{status}");
        assert_eq!(rig.call("echo", json!({}), None).await, Ok(json!("call 2")), "{status}");
        assert_eq!(rig.call("echo", json!({}), None).await, Ok(json!("call 3")), "{status}");
        assert_eq!(rig.state().phase, Phase::Connected, "{status}");
    }
}

#[tokio::test]
async fn a_list_is_polled_without_a_stream_for_announcements() {
    let (_server, rig) = Server::start("404", Duration::from_millis(100)).await;
    rig.call("grow", json!({}), None).await.unwrap();
    rig.until(|state| state.tools == 4).await;
}

#[tokio::test]
async fn a_dead_server_is_shown_when_a_call_fails() {
    let (server, rig) = Server::start("404", NEVER).await;
    drop(server);
    let error = rig.call("echo", json!({}), None).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::Network, "{error}");
    let state = rig.state();
    assert_eq!(state.phase, Phase::Error, "{state:?}");
    assert!(state.error.is_some(), "{state:?}");
}
