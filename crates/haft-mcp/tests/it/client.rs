//! haft as the client of a stdio server.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use haft_core::BoxFuture;
use haft_core::catalog::StoreError;
use haft_core::executor::{CallContext, CallEvent, EventSink, Executor as _};
use haft_core::id::CallId;
use haft_core::implementation::{Implementation, Mcp};
use haft_core::mcp::{ListedTool, McpServer, Phase, ServerState, Stdio, Transport};
use haft_core::name::{BundleSlug, TenantId, ToolName};
use haft_core::outcome::{ErrorCode, Outcome};
use haft_core::secret::{Secret, SecretError, SecretSource};
use haft_core::spec::ToolSpec;
use haft_executors::egress::{Egress, EgressRules};
use haft_mcp::client::{ClientParts, McpClients, McpExecutor, McpServerStore};
use haft_sandbox::{EngineName, Sandbox, Settings};
use serde_json::{Value, json};

struct OneSecret;

impl SecretSource for OneSecret {
    fn secret<'a>(
        &'a self,
        _tenant: &'a TenantId,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Option<Secret>, SecretError>> {
        let found = (name == "API_KEY").then(|| Secret::new("hunter2hunter2".to_owned()));
        Box::pin(std::future::ready(Ok(found)))
    }
}

#[derive(Default)]
struct Lists(Mutex<Vec<Vec<String>>>);

impl McpServerStore for Lists {
    fn servers(&self) -> BoxFuture<'_, Result<Vec<McpServer>, StoreError>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    fn listed<'a>(
        &'a self,
        _server: &'a McpServer,
        tools: Vec<ListedTool>,
    ) -> BoxFuture<'a, Result<Vec<String>, StoreError>> {
        self.0.lock().unwrap().push(tools.into_iter().map(|tool| tool.name).collect());
        Box::pin(std::future::ready(Ok(Vec::new())))
    }
}

#[derive(Default)]
pub(crate) struct Events(pub(crate) Mutex<Vec<CallEvent>>);

impl EventSink for Events {
    fn emit(&self, event: CallEvent) {
        self.0.lock().unwrap().push(event);
    }
}

pub(crate) struct Rig {
    clients: Arc<McpClients>,
    lists: Arc<Lists>,
    _scratch: tempfile::TempDir,
}

pub(crate) fn id() -> BundleSlug {
    BundleSlug::new("test").unwrap()
}

impl Rig {
    fn start(mode: &str) -> Self {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/server.py");
        Self::of(server("python3", &[script, mode]))
    }

    pub(crate) fn of(server: McpServer) -> Self {
        Self::polling(server, Duration::from_hours(1))
    }

    pub(crate) fn polling(server: McpServer, poll_interval: Duration) -> Self {
        let scratch = tempfile::tempdir().unwrap();
        let settings = Settings {
            engine: EngineName::Bubblewrap,
            scratch: scratch.path().join("run"),
            hidden: Vec::new(),
            read_only: Vec::new(),
            image: None,
        };
        let lists = Arc::<Lists>::default();
        let rules = EgressRules { private_hosts: vec!["127.0.0.1".to_owned()], ..EgressRules::default() };
        let clients = McpClients::new(ClientParts {
            sandbox: Sandbox::open(settings).unwrap(),
            egress: Egress::new(&rules).unwrap(),
            secrets: Arc::new(OneSecret),
            store: Arc::clone(&lists) as _,
            poll_interval,
        });
        let rig = Self { clients: Arc::new(clients), lists, _scratch: scratch };
        rig.clients.set(server);
        rig
    }

    pub(crate) fn state(&self) -> ServerState {
        self.clients.state(&TenantId::default_tenant(), &id()).unwrap()
    }

    /// Waits until the state matches; the test runner ends a test that waits forever.
    pub(crate) async fn until(&self, condition: impl Fn(&ServerState) -> bool) -> ServerState {
        loop {
            let state = self.state();
            if condition(&state) {
                return state;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    pub(crate) async fn call(&self, tool: &str, args: Value, events: Option<Arc<dyn EventSink>>) -> Outcome {
        self.call_with_attachments(tool, args, events).await.0
    }

    /// Calls a tool; also returns the attachments.
    async fn call_with_attachments(
        &self,
        tool: &str,
        args: Value,
        events: Option<Arc<dyn EventSink>>,
    ) -> (Outcome, Vec<Value>) {
        let mcp = Mcp { server: Some("test".into()), tool_name: tool.into(), ..Mcp::default() };
        let spec = ToolSpec::new(ToolName::new("t").unwrap(), Implementation::Mcp(mcp));
        let executor = McpExecutor::default();
        executor.connect(&self.clients);
        let prepared = executor.prepare(&Arc::new(spec), None).unwrap();
        let deadline = Instant::now() + Duration::from_mins(1);
        let mut context =
            CallContext::new(CallId(uuid()), TenantId::default_tenant(), deadline, Arc::new(OneSecret));
        context.events = events;
        let outcome = prepared.run(&context, args.as_object().unwrap()).await;
        (outcome, context.take_artifacts().map(|left| left.content).unwrap_or_default())
    }
}

fn uuid() -> uuid::Uuid {
    uuid::Uuid::now_v7()
}

fn server(command: &str, args: &[&str]) -> McpServer {
    let transport = Transport::Stdio(Stdio {
        command: command.to_owned(),
        args: args.iter().map(|&text| text.to_owned()).collect(),
        env: BTreeMap::from([("KEY".to_owned(), "key=${API_KEY}".to_owned())]),
        ..Stdio::default()
    });
    McpServer::new(id(), TenantId::default_tenant(), transport)
}

#[tokio::test]
async fn a_program_starts_lists_and_runs_tools() {
    let rig = Rig::start("good");
    let events = Arc::<Events>::default();
    let sink: Arc<dyn EventSink> = Arc::clone(&events) as _;
    let value = rig.call("echo", json!({"text": "hello"}), Some(sink)).await;
    assert_eq!(value, Ok(json!("hello")));
    assert_eq!(*events.0.lock().unwrap(), [CallEvent::Progress(0.5, "half".to_owned())]);
    assert_eq!(rig.call("env", json!({"name": "KEY"}), None).await, Ok(json!("key=hunter2hunter2")));
    assert_eq!(rig.call("env", json!({"name": "HAFT_TOKEN"}), None).await, Ok(json!("unset")));
    assert_eq!(rig.call("nope", json!({}), None).await.unwrap_err().message, "no such tool");
    let state = rig.state();
    assert_eq!((state.phase, state.tools), (Phase::Connected, 5));
    assert_eq!(state.server_info.as_deref(), Some("test 1"));
    assert_eq!(state.protocol.as_deref(), Some("2025-06-18"));
    assert_eq!(state.stderr, ["starting as good"]);
}

#[tokio::test]
async fn a_server_that_exits_is_restarted() {
    let rig = Rig::start("good");
    let error = rig.call("die", json!({}), None).await.unwrap_err();
    assert_eq!((error.code, error.retryable), (ErrorCode::Network, false));
    assert_eq!(rig.call("echo", json!({"text": "again"}), None).await, Ok(json!("again")));
    let written = rig.state().stderr.join(" / ");
    assert!(written.contains("exit requested"), "{written}");
}

#[tokio::test]
async fn a_dropped_call_is_cancelled_at_the_server() {
    let rig = Rig::start("good");
    tokio::select! {
        outcome = rig.call("slow", json!({}), None) => panic!("the tool never responds: {outcome:?}"),
        _ = rig.until(|state| state.stderr.iter().any(|line| line == "slow call received")) => {}
    }
    rig.until(|state| state.stderr.iter().any(|line| line.starts_with("cancelled"))).await;
}

#[tokio::test]
async fn a_changed_list_is_read_again() {
    let rig = Rig::start("good");
    rig.call("grow", json!({}), None).await.unwrap();
    rig.until(|state| state.tools == 6).await;
    assert_eq!(rig.lists.0.lock().unwrap().last().unwrap().last().unwrap(), "new-5");
}

#[tokio::test]
async fn a_failed_start_reports_stderr_and_calls_fail_fast() {
    let rig = Rig::start("exit");
    let state = rig.until(|state| state.phase == Phase::Error).await;
    let error = state.error.unwrap();
    assert!(error.contains("no configuration found"), "{error}");
    rig.until(|state| state.failures >= 3).await;
    let error = rig.call("echo", json!({"text": "x"}), None).await.unwrap_err();
    assert_eq!((error.code, error.retryable), (ErrorCode::Network, true));
    assert_eq!(error.model_text(), "Tool call failed: the server of this tool is unavailable");
}

#[tokio::test]
async fn a_missing_program_or_secret_is_named() {
    let rig = Rig::start("good");
    rig.clients.set(server("no-such-program-here", &[]));
    let error = rig.until(|state| state.phase == Phase::Error).await.error.unwrap();
    assert!(error.contains("no-such-program-here"), "{error}");
    let mut without = server("python3", &[]);
    if let Transport::Stdio(stdio) = &mut without.transport {
        stdio.args = vec!["--token=${NOT_THERE}".to_owned()];
    }
    rig.clients.set(without);
    let error = rig.until(|state| state.phase == Phase::Error).await.error.unwrap();
    assert_eq!(error, "`args[0]`: secret `NOT_THERE` not found; store it with `haft secret set NOT_THERE`");
}

#[tokio::test]
async fn responses_above_the_limit_are_rejected() {
    let rig = Rig::start("huge");
    let error = rig.until(|state| state.phase == Phase::Error).await.error.unwrap();
    assert!(error.contains("response size limit (16 MiB) exceeded") && !error.contains("xxxx"), "{error}");

    // The call fails immediately, and the server keeps running.
    let rig = Rig::start("good");
    rig.until(|state| state.phase == Phase::Connected).await;
    let error = rig.call("echo", json!({"text": "x", "times": 20 << 20}), None).await.unwrap_err();
    assert_eq!(error.message, "response size limit (16 MiB) exceeded");
    assert_eq!(rig.call("echo", json!({"text": "y"}), None).await, Ok(json!("y")));

    // A server with a larger limit can send more.
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/server.py");
    let server = server("python3", &[script, "good"]);
    let rig = Rig::of(McpServer { max_response_bytes: Some(24 << 20), ..server });
    let value = rig.call("echo", json!({"text": "x", "times": 20 << 20}), None).await.unwrap();
    assert_eq!(value.as_str().map(str::len), Some(20 << 20));
}

#[tokio::test]
async fn the_list_of_a_server_that_cannot_announce_changes_is_polled() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/server.py");
    let rig = Rig::polling(server("python3", &[script, "quiet"]), Duration::from_millis(100));
    rig.call("grow", json!({}), None).await.unwrap();
    rig.until(|state| state.tools == 6).await;
}

#[tokio::test]
async fn floods_and_long_lists_are_accepted() {
    for (mode, tools) in [("flood", 5), ("many", 10_000), ("garbage", 5), ("endless", 5)] {
        let rig = Rig::start(mode);
        assert_eq!(rig.until(|state| state.phase == Phase::Connected).await.tools, tools, "{mode}");
        if mode != "many" {
            assert_eq!(rig.call("echo", json!({"text": mode}), None).await, Ok(json!(mode)));
        }
        let stderr = rig.state().stderr;
        let line = "(stdout) this is not JSON at all".to_owned();
        assert_eq!(stderr.contains(&line), mode == "garbage", "{stderr:?}");
    }
}

#[tokio::test]
async fn a_server_stays_connected_through_a_flood() {
    let rig = Rig::start("good");
    rig.until(|state| state.phase == Phase::Connected).await;
    let flood = json!({"messages": 30_000, "bytes": 2000});
    assert_eq!(rig.call("flood", flood, None).await, Ok(json!("flooded")));
    assert_eq!(rig.call("echo", json!({"text": "on"}), None).await, Ok(json!("on")));
    assert_eq!(rig.state().phase, Phase::Connected);
    // The announced change was not dropped with the other notifications.
    let lists = || rig.lists.0.lock().unwrap().len();
    while lists() < 2 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_server_may_start_slowly() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/server.py");
    let rig = Rig::start("late");
    assert_eq!(rig.state().phase, Phase::Starting);
    let state = rig.until(|state| state.phase != Phase::Starting).await;
    assert_eq!((state.phase, state.tools, state.failures), (Phase::Connected, 5, 0), "{state:?}");

    let server = McpServer { start_timeout_ms: Some(1000), ..server("python3", &[script, "hang"]) };
    let state = Rig::of(server).until(|state| state.phase == Phase::Error).await;
    let error = state.error.unwrap();
    let expected =
        "start timeout (1s) exceeded; raise it with `haft mcp-server update test --start-timeout DURATION`";
    assert!(error.starts_with(expected), "{error}");
}

#[tokio::test]
async fn an_unsupported_version_is_rejected() {
    let error = Rig::start("old").until(|state| state.phase == Phase::Error).await.error.unwrap();
    assert!(error.starts_with("unsupported protocol version `2020-01-01`; supported: 2024-11-05"), "{error}");
}

#[tokio::test]
async fn attachments_of_values_and_errors_are_kept() {
    let rig = Rig::start("good");
    let image = json!({"type": "image", "data": "aGk=", "mimeType": "image/png"});
    let (value, attachments) = rig.call_with_attachments("rich", json!({}), None).await;
    assert_eq!(
        (value, attachments),
        (Ok(json!({"n": 1})), vec![image.clone(), json!({"type": "text", "text": "see"})])
    );
    let (value, attachments) = rig.call_with_attachments("rich", json!({"fails": true}), None).await;
    let error = value.unwrap_err();
    assert_eq!(
        (error.message.as_str(), error.details.as_deref(), attachments),
        ("see", Some(&json!({"n": 1})), vec![image])
    );
}
