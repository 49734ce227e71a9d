//! A server with functions of the program, called over HTTP.

use std::path::Path;
use std::sync::Arc;

use haft::ToolDef;
use haft::server::{App, Server, Settings};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::support::{greet, of_function};

struct RunningServer {
    url: String,
    token: String,
    client: reqwest::Client,
    stop: oneshot::Sender<()>,
    task: JoinHandle<std::io::Result<()>>,
}

impl RunningServer {
    async fn start(server: Server) -> Self {
        // Another test may have installed it.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let app: Arc<App> = server.open().await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/api", listener.local_addr().unwrap());
        let token = app.local_token().expose().to_owned();
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(app.serve(listener, async { drop(stopped.await) }));
        Self { url, token, client: reqwest::Client::new(), stop, task }
    }

    async fn send(&self, method: &str, path: &str, body: &str) -> Value {
        let request = self
            .client
            .request(method.parse().unwrap(), format!("{}{path}", self.url))
            .bearer_auth(&self.token)
            .header(
                "content-type",
                if body.starts_with('{') { "application/json" } else { "application/yaml" },
            )
            .body(body.to_owned());
        let text = request.send().await.unwrap().text().await.unwrap();
        serde_json::from_str(&text).unwrap()
    }

    async fn call(&self, tool: &str, args: Value) -> Value {
        self.send("POST", &format!("/tools/{tool}/invoke"), &json!({"args": args}).to_string()).await
    }

    async fn stop(self) {
        drop(self.stop);
        self.task.await.unwrap().unwrap();
    }
}

fn server(home: &Path) -> Server {
    let mut settings = Settings::for_home(home.to_owned());
    settings.addr = ([127, 0, 0, 1], 0).into();
    Server::new(settings)
}

fn lookup() -> ToolDef {
    ToolDef::new("lookup", |_: Value| async { "found" })
}

#[tokio::test]
async fn functions_of_the_program_are_served() {
    let home = tempfile::tempdir().unwrap();
    let running = RunningServer::start(server(home.path()).tool(greet())).await;
    let response = running.call("greet", json!({"name": "Ada"})).await;
    assert_eq!(response["value"], "Hello, Ada!", "{response}");
    running.stop().await;
    let twice = server(home.path()).tool(greet()).function(greet()).open().await;
    assert!(twice.is_err());
}

#[tokio::test]
async fn a_stored_tool_waits_for_its_function_and_comes_back_unchanged() {
    let home = tempfile::tempdir().unwrap();
    let running = RunningServer::start(server(home.path()).function(lookup())).await;
    let created = running.send("POST", "/tools", &of_function("find", "lookup")).await;
    assert_eq!(created["data"]["ready"], true, "{created}");
    assert_eq!(running.call("find", json!({})).await["value"], "found");
    let before = running.send("GET", "/tools/find", "").await;
    running.stop().await;

    let running = RunningServer::start(server(home.path())).await;
    let without = running.send("GET", "/tools/find", "").await;
    assert_eq!(without["data"]["ready"], false, "{without}");
    assert_eq!(without["data"]["modified_at"], before["data"]["modified_at"]);
    let response = running.call("find", json!({})).await;
    assert!(response.to_string().contains("not_ready"), "{response}");
    running.stop().await;

    let running = RunningServer::start(server(home.path()).function(lookup())).await;
    let mut after = running.send("GET", "/tools/find", "").await;
    assert_eq!(running.call("find", json!({})).await["value"], "found");
    after["data"]["usage"] = before["data"]["usage"].clone();
    assert_eq!(after["data"], before["data"]);
    running.stop().await;
}
