//! What the tests share: an executor, tools of text, and the parts of modules that all of them have.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use haft_core::BoxFuture;
use haft_core::executor::{CallContext, CallEvent, EventSink, Executor, Prepared};
use haft_core::id::CallId;
use haft_core::implementation::{Implementation, Wasm};
use haft_core::name::{TenantId, ToolName};
use haft_core::outcome::{CallError, Outcome};
use haft_core::secret::{Secret, SecretError, SecretSource};
use haft_core::spec::ToolSpec;
use haft_wasm::{CacheSettings, WasmExecutor, WasmLimits, WasmSettings};
use serde_json::{Value, json};

/// One secret is stored.
struct Secrets;

impl SecretSource for Secrets {
    fn secret<'a>(
        &'a self,
        _: &'a TenantId,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Option<Secret>, SecretError>> {
        Box::pin(async move { Ok((name == "API_KEY").then(|| Secret::new(format!("stored {name}")))) })
    }
}

/// Keeps what a call tells those who watch.
#[derive(Default)]
pub(crate) struct Watcher(pub(crate) Mutex<Vec<CallEvent>>);

impl EventSink for Watcher {
    fn emit(&self, event: CallEvent) {
        self.0.lock().unwrap().push(event);
    }
}

/// Returns settings for tests: few places, so that the pool is small.
pub(crate) fn settings() -> WasmSettings {
    limited(LIMITS)
}

/// What guests may have in most tests.
pub(crate) const LIMITS: WasmLimits =
    WasmLimits { memory_bytes: 16 << 20, total_memory_bytes: 1 << 30, at_once: 16 };

pub(crate) fn limited(limits: WasmLimits) -> WasmSettings {
    WasmSettings { limits, ..WasmSettings::default() }
}

pub(crate) fn cached(folder: &Path, key: &str) -> WasmSettings {
    let cache = CacheSettings { folder: folder.to_owned(), key: Secret::new(key.to_owned()) };
    WasmSettings { cache: Some(cache), ..settings() }
}

pub(crate) fn executor() -> WasmExecutor {
    WasmExecutor::new(settings())
}

/// A definition under test.
#[derive(Clone)]
pub(crate) struct Tool {
    pub(crate) executor: WasmExecutor,
    pub(crate) spec: ToolSpec,
    folder: Option<&'static str>,
}

impl Tool {
    /// A tool of a module in the text format.
    pub(crate) fn of(wat: &str) -> Self {
        Self::of_bytes(&wat::parse_str(wat).unwrap_or_else(|error| panic!("{error}\n{wat}")))
    }

    pub(crate) fn of_bytes(bytes: &[u8]) -> Self {
        Self::with(Wasm { base64: Some(STANDARD.encode(bytes)), ..Wasm::default() })
    }

    pub(crate) fn of_file(file: &str, executor: &WasmExecutor) -> Self {
        let mut tool = Self::with(Wasm { file: Some(file.to_owned()), ..Wasm::default() });
        tool.folder = Some("skills/bundle");
        tool.on(executor)
    }

    fn with(wasm: Wasm) -> Self {
        let spec = ToolSpec::new(ToolName::new("probe").unwrap(), Implementation::Wasm(wasm));
        Self { executor: executor(), spec, folder: None }
    }

    pub(crate) fn on(mut self, executor: &WasmExecutor) -> Self {
        self.executor = executor.clone();
        self
    }

    pub(crate) fn function(mut self, name: &str) -> Self {
        if let Implementation::Wasm(wasm) = &mut self.spec.implementation {
            wasm.function = Some(name.to_owned());
        }
        self
    }

    /// Declares arguments.
    pub(crate) fn args(mut self, names: &[&str]) -> Self {
        let properties: serde_json::Map<_, _> =
            names.iter().map(|name| ((*name).to_owned(), json!({}))).collect();
        self.spec.input_schema = json!({"type": "object", "properties": properties}).into();
        self
    }

    pub(crate) fn limits(mut self, limits: Value) -> Self {
        self.spec.execution.limits = serde_json::from_value(limits).unwrap();
        self
    }

    pub(crate) fn prepare(&self) -> Result<Arc<dyn Prepared>, Vec<String>> {
        self.executor
            .prepare(&Arc::new(self.spec.clone()), self.folder)
            .map_err(|problems| problems.iter().map(|p| format!("{p} ({})", p.code)).collect())
    }

    /// Returns what is wrong with the definition.
    pub(crate) fn problems(&self) -> Vec<String> {
        self.prepare().err().unwrap_or_default()
    }

    pub(crate) async fn run(&self, args: Value) -> Outcome {
        run(&*self.prepare().unwrap(), args).await
    }

    pub(crate) async fn fail(&self, args: Value) -> CallError {
        self.run(args).await.unwrap_err()
    }
}

pub(crate) fn context(time: Duration) -> CallContext {
    let tenant = TenantId::default_tenant();
    CallContext::new(CallId(uuid::Uuid::nil()), tenant, Instant::now() + time, Arc::new(Secrets))
}

pub(crate) async fn run(prepared: &dyn Prepared, args: Value) -> Outcome {
    prepared.run(&context(Duration::from_mins(1)), args.as_object().unwrap()).await
}

/// The memory of a component's core module, and the allocator that the host calls.
pub(crate) const MEMORY: &str = r#"
  (memory (export "memory") 1)
  (global $next (mut i32) (i32.const 4096))
  (func (export "realloc") (param i32 i32 i32 i32) (result i32)
    (local $at i32)
    (local.set $at (i32.and
      (i32.add (global.get $next) (i32.sub (local.get 2) (i32.const 1)))
      (i32.sub (i32.const 0) (local.get 2))))
    (global.set $next (i32.add (local.get $at) (local.get 3)))
    (block $enough
      (loop $grow
        (br_if $enough (i32.le_u (global.get $next) (i32.mul (memory.size) (i32.const 65536))))
        (br_if $grow (i32.ne (memory.grow (i32.const 16)) (i32.const -1)))
        unreachable))
    (local.get $at))
"#;

/// Returns a component around the functions of one core module.
pub(crate) fn component(core: &str, exports: &str) -> String {
    format!(
        "(component (core module $m {MEMORY} {core}) (core instance $i (instantiate $m))
           (alias core export $i \"memory\" (core memory $memory))
           (alias core export $i \"realloc\" (core func $realloc))
           {exports})"
    )
}

/// The core function that returns the list or string that it is given.
pub(crate) const ECHO: &str = r#"
  (func (export "echo") (param i32 i32) (result i32)
    (i32.store (i32.const 16) (local.get 0))
    (i32.store (i32.const 20) (local.get 1))
    (i32.const 16))
"#;

/// Returns a component whose function `name` returns its argument: a string or a list.
pub(crate) fn echo(name: &str, types: &str, ty: &str) -> String {
    let export = format!(
        "{types} (func (export \"{name}\") (param \"x\" {ty}) (result {ty})
           (canon lift (core func $i \"echo\") (memory $memory) (realloc $realloc)))"
    );
    component(ECHO, &export)
}

/// Returns a WASI command; `$print` writes the bytes at an address to a descriptor.
pub(crate) fn command(imports: &str, data: &str, start: &str) -> String {
    format!(
        r#"(module
          (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
          (import "wasi_snapshot_preview1" "fd_read" (func $fd_read (param i32 i32 i32 i32) (result i32)))
          (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
          {imports}
          (memory (export "memory") 4)
          {data}
          (func $print (param $fd i32) (param $at i32) (param $length i32)
            (i32.store (i32.const 0) (local.get $at))
            (i32.store (i32.const 4) (local.get $length))
            (drop (call $fd_write (local.get $fd) (i32.const 0) (i32.const 1) (i32.const 8))))
          (func (export "_start") {start}))"#
    )
}
