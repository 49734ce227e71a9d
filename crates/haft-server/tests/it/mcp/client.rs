//! Sends single messages, as no library would.

use std::time::Duration;

use reqwest::{Method, RequestBuilder, Response};
use serde_json::{Value, json};

use crate::harness::Server;

pub(crate) const MODERN: &str = "2026-07-28";
/// What a client has to accept.
pub(crate) const BOTH: &str = "application/json, text/event-stream";

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) session: Option<String>,
    pub(crate) kind: String,
    pub(crate) text: String,
}

impl Answer {
    /// The messages, from JSON or from the events of a stream.
    pub(crate) fn messages(&self) -> Vec<Value> {
        if !self.kind.starts_with("text/event-stream") {
            return serde_json::from_str(&self.text).into_iter().collect();
        }
        let lines = self.text.lines().filter_map(|line| line.strip_prefix("data:"));
        lines.filter_map(|line| serde_json::from_str(line.trim()).ok()).collect()
    }

    /// The response to the request, after any notifications.
    pub(crate) fn last(&self) -> Value {
        self.messages().pop().unwrap_or_else(|| panic!("no message in {self:?}"))
    }
}

/// A request to an MCP path, with what every one has.
pub(crate) fn request(server: &Server, path: &str, token: &str, message: &Value) -> RequestBuilder {
    server
        .bare(Method::POST, path)
        .bearer_auth(token)
        .header("accept", BOTH)
        .header("content-type", "application/json")
        .body(message.to_string())
}

pub(crate) async fn send(request: RequestBuilder) -> Answer {
    read(request.send().await.unwrap()).await
}

async fn read(response: Response) -> Answer {
    let header = |name: &str| {
        response.headers().get(name).map(|value| value.to_str().unwrap().to_owned()).unwrap_or_default()
    };
    let (status, session, kind) =
        (response.status().as_u16(), header("mcp-session-id"), header("content-type"));
    let session = Some(session).filter(|id| !id.is_empty());
    Answer { status, session, kind, text: response.text().await.unwrap() }
}

/// A request of the stateless version, with the headers and fields it needs.
pub(crate) fn modern(
    server: &Server,
    path: &str,
    token: &str,
    method: &str,
    params: Value,
) -> RequestBuilder {
    let field = if method.starts_with("resources/") { "uri" } else { "name" };
    let name = params[field].as_str().map(str::to_owned);
    let message = modern_message(method, params);
    let request = request(server, path, token, &message)
        .header("mcp-protocol-version", MODERN)
        .header("mcp-method", method);
    match name {
        Some(name) => request.header("mcp-name", name),
        None => request,
    }
}

pub(crate) fn modern_message(method: &str, mut params: Value) -> Value {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    for (key, value) in meta.as_object().unwrap() {
        params["_meta"][key] = value.clone();
    }
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}

/// A session of an older version.
pub(crate) struct Session<'a> {
    pub(crate) server: &'a Server,
    pub(crate) path: &'a str,
    pub(crate) token: String,
    pub(crate) version: String,
    pub(crate) id: String,
}

impl<'a> Session<'a> {
    pub(crate) async fn open(server: &'a Server, path: &'a str, token: &str, version: &str) -> Self {
        let message = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": version, "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        }});
        let answer = send(request(server, path, token, &message)).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(answer.last()["result"]["protocolVersion"], version);
        let (id, token) = (answer.session.unwrap(), token.to_owned());
        let session = Self { server, path, token, version: version.to_owned(), id };
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        assert_eq!(send(session.request(&ready)).await.status, 202);
        session
    }

    pub(crate) fn request(&self, message: &Value) -> RequestBuilder {
        request(self.server, self.path, &self.token, message)
            .header("mcp-session-id", &self.id)
            .header("mcp-protocol-version", &self.version)
    }

    pub(crate) async fn ask(&self, method: &str, params: Value) -> Answer {
        let message = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
        send(self.request(&message)).await
    }

    pub(crate) fn listen(&self) -> RequestBuilder {
        self.server
            .bare(Method::GET, self.path)
            .bearer_auth(&self.token)
            .header("accept", "text/event-stream")
            .header("mcp-session-id", &self.id)
            .header("mcp-protocol-version", &self.version)
    }
}

/// Reads a stream until a text has come.
pub(crate) async fn read_until(response: &mut Response, wanted: &str) -> String {
    let mut text = String::new();
    let reading = async {
        while let Some(chunk) = response.chunk().await.unwrap() {
            text.push_str(&String::from_utf8_lossy(&chunk));
            if text.contains(wanted) {
                return;
            }
        }
        panic!("the stream ended without `{wanted}`: {text}");
    };
    tokio::time::timeout(Duration::from_secs(20), reading).await.unwrap();
    text
}

pub(crate) fn names(list: &Value) -> Vec<&str> {
    let tools = list["result"]["tools"].as_array().unwrap_or_else(|| panic!("no tools in {list}"));
    tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

/// Makes a token with a role.
pub(crate) async fn token_of(server: &Server, name: &str, role: &str) -> String {
    let (status, answer) = server.post("/api/tokens", json!({"name": name, "role": role})).await;
    assert_eq!(status, 201, "{answer}");
    answer["data"]["token"].as_str().unwrap().to_owned()
}
