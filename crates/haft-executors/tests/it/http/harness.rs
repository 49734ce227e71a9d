//! What the tests of the http executor share.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use haft_core::executor::{CallContext, Executor, Prepared};
use haft_core::id::CallId;
use haft_core::implementation::{Http, Implementation};
use haft_core::name::{TenantId, ToolName, Version};
use haft_core::outcome::{CallError, Outcome};
use haft_core::problem::Problem;
use haft_core::secret::{Secret, SecretError, SecretSource};
use haft_core::spec::{Execution, ToolSpec};
use haft_core::{BoxFuture, Clock, Timestamp};
use haft_executors::egress::{Egress, EgressRules};
use haft_executors::http::HttpExecutor;
pub(crate) use haft_testkit::upstream::{Upstream, axum};
use serde_json::{Value, json};

/// The moment at which all tests happen.
pub(crate) struct FixedClock;

impl Clock for FixedClock {
    fn now(&self) -> Timestamp {
        "2026-11-15T12:00:00Z".parse().unwrap()
    }
}

struct Secrets(BTreeMap<&'static str, &'static str>);

impl SecretSource for Secrets {
    fn secret<'a>(
        &'a self,
        _tenant: &'a TenantId,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Option<Secret>, SecretError>> {
        Box::pin(async move { Ok(self.0.get(name).map(|text| Secret::new((*text).to_owned()))) })
    }
}

/// An executor that may reach loopback, and the secrets of its calls.
pub(crate) struct World {
    executor: HttpExecutor,
    secrets: Arc<dyn SecretSource>,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with_private(&["127.0.0.1"])
    }

    pub(crate) fn with_private(private: &[&str]) -> Self {
        let private_hosts = private.iter().map(|host| (*host).to_owned()).collect();
        let egress = Egress::new(&EgressRules { allowed_hosts: Vec::new(), private_hosts }).unwrap();
        let secrets = BTreeMap::from([
            ("KEY", "k&y/secret"),
            ("TOKEN", "tok-12345"),
            ("USER", "ann"),
            ("PASS", "pa:ss word"),
            ("CLIENT_SECRET", "s3cr&t"),
            ("REFRESH", "refresh-0"),
            ("BAD", "line\r\nX: y"),
        ]);
        Self {
            executor: HttpExecutor::new(egress, Arc::new(FixedClock)),
            secrets: Arc::new(Secrets(secrets)),
        }
    }

    /// Prepares a tool.
    pub(crate) fn tool(&self, http: Value) -> Tool<'_> {
        Tool { world: self, http, schema: json!({}), execution: Execution::default() }
    }
}

/// A tool under test.
#[derive(Clone)]
pub(crate) struct Tool<'w> {
    world: &'w World,
    http: Value,
    schema: Value,
    execution: Execution,
}

impl Tool<'_> {
    /// Declares arguments; a name that ends with `!` is required.
    pub(crate) fn args(mut self, names: &[&str]) -> Self {
        let properties: serde_json::Map<_, _> =
            names.iter().map(|name| (name.trim_end_matches('!').to_owned(), json!({}))).collect();
        let required: Vec<_> = names.iter().filter_map(|name| name.strip_suffix('!')).collect();
        self.schema = json!({"type": "object", "properties": properties, "required": required});
        self
    }

    pub(crate) fn execution(mut self, execution: Value) -> Self {
        self.execution = serde_json::from_value(execution).unwrap();
        self
    }

    fn prepare(&self) -> Result<Arc<dyn Prepared>, Vec<Problem>> {
        let http: Http = serde_json::from_value(self.http.clone()).unwrap();
        let mut spec = ToolSpec::new(ToolName::new("probe").unwrap(), Implementation::Http(Box::new(http)));
        spec.version = Version::new("v2").unwrap();
        spec.input_schema = self.schema.clone().into();
        spec.execution = self.execution.clone();
        self.world.executor.prepare(&Arc::new(spec), None)
    }

    /// Returns the problems of the definition.
    pub(crate) fn problems(&self) -> Vec<String> {
        match self.prepare() {
            Ok(_) => Vec::new(),
            Err(problems) => problems.iter().map(|p| format!("{} ({})", p, p.code)).collect(),
        }
    }

    /// Runs one attempt; returns the context too.
    pub(crate) async fn run_at(&self, attempt: u32, args: &Value) -> (Outcome, CallContext) {
        let deadline = Instant::now() + Duration::from_secs(20);
        let tenant = TenantId::default_tenant();
        let mut context =
            CallContext::new(CallId(uuid::Uuid::nil()), tenant, deadline, Arc::clone(&self.world.secrets));
        context.attempt = attempt;
        let prepared = self.prepare().unwrap_or_else(|problems| panic!("{problems:?}"));
        let outcome = prepared.run(&context, args.as_object().unwrap()).await;
        (outcome, context)
    }

    /// Runs the first attempt.
    pub(crate) async fn run(&self, args: Value) -> Outcome {
        self.run_at(0, &args).await.0
    }

    /// Runs the first attempt, which has to fail.
    pub(crate) async fn fail(&self, args: Value) -> CallError {
        self.run(args).await.unwrap_err()
    }
}

/// Returns what matters of an error, in one line: code, whether it may be repeated, and the model's text.
pub(crate) fn brief(error: &CallError) -> String {
    let again = if error.retryable { "again" } else { "final" };
    format!("{} {again}: {}", error.code, error.model_text().trim_start_matches("Tool call failed: "))
}

/// A server that answers every request with what it saw.
pub(crate) async fn echo() -> Upstream {
    use axum::body::Bytes;
    use axum::http::{HeaderMap, Method, Uri};
    let handler = |method: Method, uri: Uri, headers: HeaderMap, body: Bytes| async move {
        axum::Json(haft_testkit::upstream::describe(&method, &uri, &headers, &body))
    };
    Upstream::serve(axum::Router::new().fallback(handler)).await.unwrap()
}
