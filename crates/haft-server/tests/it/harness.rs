//! A server on a free port with a home of its own.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use haft_core::outcome::{CallError, ErrorCode};
use haft_runtime::function::Functions;
use haft_server::settings::Settings;
use haft_server::{App, Extensions};
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

/// A running server.
pub(crate) struct Server {
    pub(crate) addr: SocketAddr,
    pub(crate) token: String,
    pub(crate) home: TempDir,
    /// Holds calls of the function `gate`.
    pub(crate) gate: Gate,
    client: reqwest::Client,
    stop: Option<oneshot::Sender<()>>,
    task: Option<JoinHandle<std::io::Result<()>>>,
}

impl Server {
    pub(crate) async fn start() -> Self {
        Self::start_with(|_| {}).await
    }

    /// Starts a server whose tools may reach the loopback servers of the test.
    pub(crate) async fn start_with(change: impl FnOnce(&mut Settings)) -> Self {
        Self::start_at(tempfile::tempdir().unwrap(), change).await
    }

    /// Starts a server with the built-in tools of haft.
    pub(crate) async fn start_whole(change: impl FnOnce(&mut Settings)) -> Self {
        Self::start_with(|settings| {
            settings.built_ins.enabled = true;
            change(settings);
        })
        .await
    }

    async fn start_at(home: TempDir, change: impl FnOnce(&mut Settings)) -> Self {
        let mut settings = Settings::for_home(home.path().to_owned());
        settings.egress.private_hosts = vec!["127.0.0.1".to_owned()];
        // Tests count what they make; those of the built-in tools switch them on.
        settings.built_ins.enabled = false;
        change(&mut settings);
        let gate = Gate::default();
        let extensions = Extensions {
            functions: functions().with_async("gate", {
                let gate = gate.clone();
                move |_| gate.clone().pass()
            }),
            built_ins: vec![built_in("clock"), built_in("hello")],
            ..Extensions::default()
        };
        let app = App::open_with(settings, extensions).await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let token = app.local_token().expose().to_owned();
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(app.serve(listener, async {
            let _ = stopped.await;
        }));
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder().no_proxy().no_gzip().build().unwrap();
        Self { addr, token, home, gate, client, stop: Some(stop), task: Some(task) }
    }

    /// Shuts the server down and starts it again on the same home.
    pub(crate) async fn restart(self) -> Self {
        self.restart_with(|_| {}).await
    }

    /// The same with other settings.
    pub(crate) async fn restart_with(mut self, change: impl FnOnce(&mut Settings)) -> Self {
        self.halt().await;
        Self::start_at(self.home, change).await
    }

    pub(crate) async fn halt(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        if let Some(task) = self.task.take() {
            task.await.unwrap().unwrap();
        }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.addr)
    }

    /// A request without a token.
    pub(crate) fn bare(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, self.url(path)).timeout(Duration::from_mins(1))
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.bare(method, path).bearer_auth(&self.token)
    }

    pub(crate) async fn get(&self, path: &str) -> (u16, Value) {
        send(self.request(Method::GET, path)).await
    }

    pub(crate) async fn delete(&self, path: &str) -> (u16, Value) {
        send(self.request(Method::DELETE, path)).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> (u16, Value) {
        send(self.request(Method::POST, path).body(body.to_string())).await
    }

    pub(crate) async fn put(&self, path: &str, body: Value) -> (u16, Value) {
        send(self.request(Method::PUT, path).body(body.to_string())).await
    }

    pub(crate) async fn patch(&self, path: &str, body: Value) -> (u16, Value) {
        send(self.request(Method::PATCH, path).body(body.to_string())).await
    }

    /// Creates a tool and returns it.
    pub(crate) async fn create(&self, body: Value) -> Value {
        let (status, answer) = self.post("/api/tools", body).await;
        assert_eq!(status, 201, "{answer}");
        answer["data"].clone()
    }

    /// Calls a tool and returns the answer.
    pub(crate) async fn invoke(&self, tool: &str, args: Value) -> (u16, Value) {
        self.post(&format!("/api/tools/{tool}/invoke"), json!({"args": args})).await
    }
}

/// A latch: calls of the function `gate` announce themselves and wait until the test opens it.
#[derive(Clone)]
pub(crate) struct Gate {
    entered: watch::Sender<usize>,
    open: watch::Sender<bool>,
}

impl Default for Gate {
    fn default() -> Self {
        Self { entered: watch::Sender::new(0), open: watch::Sender::new(false) }
    }
}

impl Gate {
    async fn pass(self) -> Result<Value, CallError> {
        self.entered.send_modify(|calls| *calls += 1);
        self.open.subscribe().wait_for(|open| *open).await.unwrap();
        Ok(json!("passed"))
    }

    /// Waits until this many calls have reached the gate.
    pub(crate) async fn entered(&self, calls: usize) {
        let mut entered = self.entered.subscribe();
        let waiting = entered.wait_for(|count| *count >= calls);
        tokio::time::timeout(Duration::from_mins(1), waiting).await.unwrap().unwrap();
    }

    /// Lets all calls pass, also later ones.
    pub(crate) fn open(&self) {
        self.open.send_replace(true);
    }
}

/// Repeats a check until it returns a value, for at most a minute.
pub(crate) async fn poll<T>(mut check: impl AsyncFnMut() -> Option<T>) -> T {
    let polling = async {
        loop {
            if let Some(value) = check().await {
                return value;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_mins(1), polling).await.unwrap()
}

/// Sends a request and reads its answer as JSON (`null` where it is empty).
pub(crate) async fn send(request: RequestBuilder) -> (u16, Value) {
    let response = request.send().await.unwrap();
    let status = response.status().as_u16();
    let bytes = response.bytes().await.unwrap();
    let value = if bytes.is_empty() {
        Value::Null
    } else {
        serde_json::from_slice(&bytes)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&bytes)))
    };
    (status, value)
}

/// The code of an error answer.
pub(crate) fn code(answer: &Value) -> &str {
    answer["error"]["code"].as_str().unwrap_or_default()
}

/// A definition that runs a registered function.
pub(crate) fn function_tool(name: &str, function: &str) -> Value {
    json!({
        "name": name,
        "description": "Runs a function of the tests",
        "implementation": {"type": "function", "function": function},
        "input_schema": {"type": "object"},
    })
}

fn built_in(name: &str) -> haft_core::spec::ToolSpec {
    serde_json::from_value(json!({
        "name": name, "version": "1.0.0", "description": "Compiled in",
        "implementation": {"type": "function", "function": "echo"},
    }))
    .unwrap()
}

fn functions() -> Functions {
    Functions::default()
        .with_async("echo", |args| async { Ok(Value::Object(args)) })
        .with_blocking("double", |args| {
            let number = args.get("n").and_then(Value::as_i64).unwrap_or_default();
            std::thread::sleep(Duration::from_millis(1));
            Ok(json!(number * 2))
        })
        .with_async("fail", |_| async {
            Err(CallError::new(ErrorCode::ExecutionFailed, "operation failed: connection refused"))
        })
        .with_async("panic", |_| async { panic!("the secret plan") })
        .with_async("panic_early", |args| {
            assert!(args.contains_key("never"), "the secret plan");
            async { Ok(Value::Null) }
        })
        .with_async("counting", |_| async {
            static RUNNING: AtomicU64 = AtomicU64::new(0);
            let now = RUNNING.fetch_add(1, Ordering::SeqCst) + 1;
            tokio::time::sleep(Duration::from_millis(50)).await;
            RUNNING.fetch_sub(1, Ordering::SeqCst);
            Ok(json!(now))
        })
        .with_async("tally", |_| async {
            static RUNS: AtomicU64 = AtomicU64::new(0);
            Ok(json!(RUNS.fetch_add(1, Ordering::SeqCst) + 1))
        })
        .with_async("flaky_marked", |_| async {
            static CALLS: AtomicU64 = AtomicU64::new(0);
            match CALLS.fetch_add(1, Ordering::SeqCst) {
                0 => Err(CallError::new(ErrorCode::ExecutionFailed, "not yet").retryable(true)),
                calls => Ok(json!(calls + 1)),
            }
        })
        .with_async("flaky_unmarked", |_| async {
            Err(CallError::new(ErrorCode::Network, "the connection broke after the mail was sent"))
        })
        .with_blocking("panic_blocking", |_| panic!("the secret plan"))
        .with_async("sleep", |args| async move {
            let millis = args.get("ms").and_then(Value::as_u64).unwrap_or(60_000);
            tokio::time::sleep(Duration::from_millis(millis)).await;
            Ok(json!("slept"))
        })
}
