//! A trivial function of a component, called in this process: by wasmtime, by the executor, and through the whole
//! pipeline.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use haft_core::bundle::Bundle;
use haft_core::catalog::{Change, ChangeSink as _};
use haft_core::executor::{CallContext, Executor as _};
use haft_core::id::{BundleId, CallId, ToolId};
use haft_core::implementation::{Implementation, Wasm};
use haft_core::name::{BundleSlug, TenantId, ToolName};
use haft_core::runnable::Mode;
use haft_core::secret::{Secret, SecretError, SecretSource};
use haft_core::spec::ToolSpec;
use haft_core::tool::{Source, Status, Tool, Usage};
use haft_core::{BoxFuture, Clock as _};
use haft_runtime::clock::SystemClock;
use haft_runtime::executors::Executors;
use haft_runtime::limits::LimitSettings;
use haft_runtime::pipeline::{CallTarget, Pipeline, PipelineParts, Principal, Request};
use haft_runtime::registry::Registry;
use haft_wasm::{WasmExecutor, WasmSettings};
use serde_json::{Map, Value, json};
use uuid::Uuid;
use wasmtime::component::{Component, Linker};
use wasmtime::{Config, Engine, InstanceAllocationStrategy, PoolingAllocationConfig, Store};

const ADD: &str = r#"(component
  (core module $m (func (export "add") (param i32 i32) (result i32) (i32.add (local.get 0) (local.get 1))))
  (core instance $i (instantiate $m))
  (func (export "add") (param "a" s32) (param "b" s32) (result s32) (canon lift (core func $i "add"))))"#;

const CALLS: usize = 50_000;

/// Prints the table.
pub async fn run() -> Result<()> {
    println!("\n## A call of a trivial function in WebAssembly, in this process\n");
    println!("| variant | p50 µs | p99 µs | ratio to wasmtime |");
    println!("| --- | ---: | ---: | ---: |");
    let bytes = wat::parse_str(ADD)?;
    let base = row("wasmtime: instance and call", None, plain(&bytes)?);
    row("haft: the executor", Some(base), executor(&bytes).await?);
    row("haft: the pipeline, record in memory", Some(base), pipeline(&bytes).await?);
    Ok(())
}

fn row(name: &str, base: Option<f64>, mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    let at = |part: usize| times.get(times.len() * part / 100).map_or(0.0, |time| time.as_secs_f64() * 1e6);
    let (p50, p99) = (at(50), at(99));
    println!("| {name} | {p50:.1} | {p99:.1} | {:.1} |", p50 / base.unwrap_or(p50));
    p50
}

/// The lower bound: a new instance for each call.
fn plain(bytes: &[u8]) -> Result<Vec<Duration>> {
    let mut config = Config::new();
    config.allocation_strategy(InstanceAllocationStrategy::Pooling(PoolingAllocationConfig::new()));
    let engine = Engine::new(&config).map_err(|error| anyhow!("{error:#}"))?;
    let measure = || -> wasmtime::Result<Vec<Duration>> {
        let linked = Linker::<()>::new(&engine).instantiate_pre(&Component::new(&engine, bytes)?)?;
        let mut times = Vec::with_capacity(CALLS);
        for _ in 0..CALLS {
            let started = Instant::now();
            let mut store = Store::new(&engine, ());
            let add =
                linked.instantiate(&mut store)?.get_typed_func::<(i32, i32), (i32,)>(&mut store, "add")?;
            add.call(&mut store, (40, 2))?;
            drop(store);
            times.push(started.elapsed());
        }
        Ok(times)
    };
    measure().map_err(|error| anyhow!("{error:#}"))
}

fn spec(bytes: &[u8]) -> Result<Arc<ToolSpec>> {
    let wasm = Wasm { base64: Some(STANDARD.encode(bytes)), function: Some("add".into()), ..Wasm::default() };
    let mut spec = ToolSpec::new(ToolName::new("add")?, Implementation::Wasm(wasm));
    let integer = json!({"type": "integer"});
    spec.input_schema =
        json!({"type": "object", "properties": {"a": integer, "b": integer}, "required": ["a", "b"]}).into();
    Ok(Arc::new(spec))
}

fn args() -> Map<String, Value> {
    Map::from_iter([("a".to_owned(), json!(40)), ("b".to_owned(), json!(2))])
}

async fn executor(bytes: &[u8]) -> Result<Vec<Duration>> {
    let executor = WasmExecutor::new(WasmSettings::default());
    let prepared = executor.prepare(&spec(bytes)?, None).map_err(|problems| anyhow!("{problems:?}"))?;
    let (args, tenant) = (args(), TenantId::default_tenant());
    let mut times = Vec::with_capacity(CALLS);
    for _ in 0..CALLS {
        let started = Instant::now();
        let deadline = started + Duration::from_secs(30);
        let call = CallContext::new(CallId(Uuid::nil()), tenant.clone(), deadline, Arc::new(NoSecrets));
        anyhow::ensure!(prepared.run(&call, &args).await? == json!(42), "wrong sum");
        times.push(started.elapsed());
    }
    Ok(times)
}

async fn pipeline(bytes: &[u8]) -> Result<Vec<Duration>> {
    let executor = WasmExecutor::new(WasmSettings::default());
    let registry = Arc::new(Registry::new(Executors::default().with(Arc::new(executor))));
    let (bundle, tool) = stored(spec(bytes)?);
    registry.apply(vec![Change::Bundle(bundle), Change::Tool(Box::new(tool))]);
    let pipeline = Arc::new(Pipeline::new(PipelineParts {
        registry,
        ledger: None,
        waiting: None,
        policy: Arc::default(),
        limits: LimitSettings::default(),
        tenant_limits: None,
        observer: None,
        rejections: None,
        secrets: Arc::new(NoSecrets),
        clock: Arc::new(SystemClock),
        stages: Vec::new(),
        max_running: 16,
        workspace: None,
        workspaces: None,
        results: None,
    }));
    let tool = CallTarget::Named("add".parse().ok().context("a reference")?);
    let principal = Arc::new(Principal::anonymous(TenantId::default_tenant()).elevated(true));
    let request = Request { mode: Mode::Debug, ..Request::new(principal, "bench", args()) };
    let mut times = Vec::with_capacity(CALLS);
    for _ in 0..CALLS {
        let request = request.clone();
        let started = Instant::now();
        let response = pipeline.call(tool.clone(), request).await?;
        anyhow::ensure!(response.record.value == Some(json!(42)), "wrong sum");
        times.push(started.elapsed());
    }
    Ok(times)
}

fn stored(spec: Arc<ToolSpec>) -> (Bundle, Tool) {
    let (now, id) = (SystemClock.now(), BundleId(Uuid::nil()));
    let (tenant, slug) = (TenantId::default_tenant(), BundleSlug::user_created());
    let bundle = Bundle {
        id,
        tenant: tenant.clone(),
        slug: slug.clone(),
        display_name: String::new(),
        description: String::new(),
        enabled: true,
        kind: haft_core::bundle::BundleKind::User,
        created_at: now,
        modified_at: now,
        soft_deleted_at: None,
    };
    let tool = Tool {
        id: ToolId(Uuid::nil()),
        tenant,
        bundle_id: id,
        bundle: slug,
        spec,
        revision: 1,
        published: None,
        status: Status::Draft,
        enabled: true,
        built_in: false,
        fault: None,
        source: Source::User,
        path: None,
        usage: Usage::default(),
        created_at: now,
        modified_at: now,
        published_at: None,
        lifecycle: haft_core::lifecycle::Lifecycle::default(),
    };
    (bundle, tool)
}

struct NoSecrets;

impl SecretSource for NoSecrets {
    fn secret<'a>(
        &'a self,
        _: &'a TenantId,
        _: &'a str,
    ) -> BoxFuture<'a, Result<Option<Secret>, SecretError>> {
        Box::pin(async { Ok(None) })
    }
}
