//! Tools with Python dependencies, which are installed in the real sandbox from an index on loopback.
#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use haft_core::Clock as _;
use haft_core::catalog::{Change, ChangeSink as _};
use haft_core::executor::{CallArtifacts, CallContext, CallEvent, EventSink, Executor as _, Prepared};
use haft_core::id::{BundleId, CallId, ToolId};
use haft_core::implementation::{Implementation, Python, Script, ScriptRuntime};
use haft_core::name::{BundleSlug, TenantId};
use haft_core::outcome::{CallError, ErrorCode, Outcome};
use haft_core::secret::Secret;
use haft_core::spec::ToolSpec;
use haft_core::tool::{Source, Status, Tool, Usage};
use haft_executors::process::{ProcessSettings, Processes};
use haft_executors::python::{PythonEnvironments, PythonExecutor, PythonPool, PythonSettings};
use haft_executors::script::ScriptExecutor;
use haft_runtime::clock::SystemClock;
use haft_runtime::executors::Executors;
use haft_runtime::registry::Registry;
use haft_sandbox::{EngineName, Sandbox, Settings};
use haft_testkit::prerequisite::{Prerequisite, skip};
use serde_json::json;
use tempfile::TempDir;

use super::packages::{Index, PackageFile};
use super::rig::{Secrets, spec, until};

/// Executors with environments in a home folder.
struct Installation {
    home: Arc<TempDir>,
    scripts: ScriptExecutor,
    functions: PythonExecutor,
    environments: PythonEnvironments,
}

/// How an installation differs from the default.
struct Options {
    engine: EngineName,
    path: String,
    read_only: Vec<PathBuf>,
    python: PythonSettings,
}

impl Options {
    fn of(index: &Index) -> Self {
        Self {
            engine: EngineName::Bubblewrap,
            path: "/usr/bin:/bin".to_owned(),
            read_only: Vec::new(),
            python: PythonSettings {
                index_url: Some(Secret::new(index.url())),
                build_timeout: Duration::from_mins(1),
                ..PythonSettings::default()
            },
        }
    }
}

impl Installation {
    fn new(index: &Index) -> Self {
        Self::with(Arc::new(tempfile::tempdir().unwrap()), Options::of(index))
    }

    fn with(home: Arc<TempDir>, options: Options) -> Self {
        let Options { engine, path, read_only, python } = options;
        let hidden = vec![home.path().to_owned()];
        let settings = Settings { engine, hidden, read_only, ..Settings::new(home.path().join("run")) };
        let settings = Sandbox::open(settings).unwrap();
        let processes = Processes::new(settings, ProcessSettings { path, ..ProcessSettings::default() });
        let environments = PythonEnvironments::new(processes.clone(), home.path(), python);
        let pool = PythonPool::new(processes.clone()).with_environments(environments.clone());
        let folder = Some(home.path().to_owned());
        Self {
            scripts: ScriptExecutor::new(processes, pool.clone()).with_home(folder.clone()),
            functions: PythonExecutor::new(pool, folder),
            home,
            environments,
        }
    }

    /// Writes a file of the bundle.
    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        let path = self.home.path().join("skills/set").join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }

    fn script(&self, body: &str, dependencies: &[&str]) -> Arc<dyn Prepared> {
        self.scripts
            .prepare(&Arc::new(script(body, dependencies)), None)
            .unwrap_or_else(|all| panic!("{all:?}"))
    }

    fn function(&self, dependencies: &[&str]) -> Arc<dyn Prepared> {
        let mut python = Python::new("tools:run");
        python.dependencies = dependencies.iter().map(|line| (*line).to_owned()).collect();
        let mut spec = spec("function", Implementation::Python(python), &[]);
        spec.sandbox = true;
        self.functions.prepare(&Arc::new(spec), Some("skills/set")).unwrap_or_else(|all| panic!("{all:?}"))
    }

    /// Returns what is in the folder of environments, except locks.
    fn stored(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.home.path().join("python-envs")).into_iter().flatten();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.filter(|name| !name.contains(".lock")).collect();
        names.sort();
        names
    }
}

fn script(body: &str, dependencies: &[&str]) -> ToolSpec {
    let mut script = Script::new(ScriptRuntime::Python, body);
    script.dependencies = dependencies.iter().map(|line| (*line).to_owned()).collect();
    let mut spec = spec("tool", Implementation::Script(script), &[]);
    spec.sandbox = true;
    spec
}

/// The events of a call.
#[derive(Default)]
struct Events(Mutex<Vec<CallEvent>>);

impl EventSink for Events {
    fn emit(&self, event: CallEvent) {
        self.0.lock().unwrap().push(event);
    }
}

/// Runs a call of a tenant with a timeout; returns what it left, too.
async fn call_as(
    tool: &Arc<dyn Prepared>,
    tenant: &str,
    timeout: Duration,
) -> (Outcome, CallArtifacts, Vec<CallEvent>) {
    let (id, tenant) = (CallId(uuid::Uuid::nil()), TenantId::new(tenant).unwrap());
    let mut context = CallContext::new(id, tenant, Instant::now() + timeout, Arc::new(Secrets));
    let events = Arc::new(Events::default());
    context.events = Some(Arc::clone(&events) as Arc<dyn EventSink>);
    let outcome = tool.run(&context, &serde_json::Map::new()).await;
    let events = std::mem::take(&mut *events.0.lock().unwrap());
    (outcome, context.take_artifacts().unwrap_or_default(), events)
}

async fn call(tool: &Arc<dyn Prepared>) -> Outcome {
    call_as(tool, "default", Duration::from_mins(1)).await.0
}

async fn failed(tool: &Arc<dyn Prepared>) -> CallError {
    let error = call(tool).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::NotReady, "{error}");
    assert!(!error.message.contains("hunter2") && !error.message.contains("robot"), "{error}");
    assert_eq!(
        error.for_model.as_deref(),
        Some("this tool is unavailable: its Python dependencies could not be installed")
    );
    error
}

const BODY: &str = "import demo; print(demo.ANSWER)";

fn demo() -> PackageFile {
    PackageFile::wheel("demo", "1.0", "ANSWER = 42", &["other>=2"])
}

fn other() -> PackageFile {
    PackageFile::wheel("other", "2.5", "NAME = 'other'", &[])
}

#[tokio::test]
async fn a_declared_package_is_installed_on_the_first_call() {
    for engine in [EngineName::Bubblewrap, EngineName::Landlock] {
        let index = Index::serve(&[demo(), other()]).await;
        let home = Arc::new(tempfile::tempdir().unwrap());
        let installation = Installation::with(home, Options { engine, ..Options::of(&index) });
        let body = "import demo, other, sys; print(demo.ANSWER, other.NAME, 'demo' in sys.modules)";
        let tool = installation.script(body, &["Demo>=1"]);
        let (outcome, left, events) = call_as(&tool, "default", Duration::from_mins(1)).await;
        assert_eq!(outcome, Ok(json!("42 other True")), "{engine}");
        assert!(left.preparation > Duration::ZERO, "{engine}");
        let first = CallEvent::Progress(0.0, "installing Python dependencies: demo".to_owned());
        assert_eq!(events.first(), Some(&first), "{engine}");
        let shown = |event: &CallEvent| matches!(event, CallEvent::Output(line) if line.contains("demo"));
        assert!(events.iter().any(shown), "{engine} {events:?}");
        assert!(!format!("{events:?}").contains("hunter2"), "{events:?}");

        let requests = index.requests();
        let (outcome, left, _) = call_as(&tool, "default", Duration::from_mins(1)).await;
        assert_eq!((outcome, left.preparation), (Ok(json!("42 other True")), Duration::ZERO), "{engine}");
        assert_eq!((index.requests(), installation.stored().len()), (requests, 1), "{engine}");
    }
}

#[tokio::test]
async fn tools_and_tenants_share_an_environment_that_they_cannot_change() {
    let index = Index::serve(&[demo(), other()]).await;
    let installation = Installation::new(&index);
    installation.write("tools.py", "import demo\ndef run(workspace): return demo.ANSWER\n");
    installation.write("requirements.txt", "# for all tools\ndemo\n");
    let function = installation.function(&[]);
    let write =
        "import demo, os\nfor path in demo.__path__[0], demo.__file__:\n  print(os.access(path, os.W_OK))";
    let other_script = installation.script(write, &["demo"]);
    let mut host = script(BODY, &["demo"]);
    host.sandbox = false;
    let host = installation.scripts.prepare(&Arc::new(host), None).unwrap_or_else(|all| panic!("{all:?}"));
    // A script beside the file needs no line of its own.
    let beside = installation.scripts.prepare(&Arc::new(script(BODY, &[])), Some("skills/set"));
    let beside = beside.unwrap_or_else(|all| panic!("{all:?}"));
    assert_eq!(call(&function).await, Ok(json!(42)));
    assert_eq!(call(&other_script).await, Ok(json!("False\nFalse")));
    assert_eq!(call(&host).await, Ok(json!(42)));
    assert_eq!(call(&beside).await, Ok(json!(42)));
    let (outcome, left, _) = call_as(&function, "other", Duration::from_mins(1)).await;
    assert_eq!((outcome, left.preparation), (Ok(json!(42)), Duration::ZERO));
    assert_eq!((index.downloads(), installation.stored().len()), (2, 1));

    // The file may change while the tool is in use.
    installation.write("requirements.txt", "demo\nmissing\n");
    until(async || call(&function).await.is_err()).await;
    installation.write("requirements.txt", "demo\n");
    until(async || call(&function).await.is_ok()).await;
}

#[tokio::test]
async fn concurrent_first_calls_install_once() {
    let index = Index::serve(&[demo(), other()]).await;
    let home = Arc::new(tempfile::tempdir().unwrap());
    // As two processes with the same home folder.
    let installations = [0, 1].map(|_| Installation::with(Arc::clone(&home), Options::of(&index)));
    let tools: Vec<_> =
        installations.iter().flat_map(|all| [0, 1].map(|_| all.script(BODY, &["demo"]))).collect();
    let calls = tools.iter().map(|tool| call_as(tool, "default", Duration::from_mins(1)));
    for (outcome, left, _) in futures_util::future::join_all(calls).await {
        assert_eq!(outcome, Ok(json!(42)));
        assert!(left.preparation > Duration::ZERO);
    }
    assert_eq!((index.downloads(), installations[0].stored().len()), (2, 1));
}

#[tokio::test]
async fn failures_name_the_reason_and_leave_nothing() {
    let source = PackageFile::source("source", "1.0", "ANSWER = 7");
    let clash = PackageFile::wheel("clash", "1.0", "", &["other<2"]);
    let old = PackageFile::wheel("other", "1.0", "", &[]);
    let index = Index::serve(&[demo(), other(), source, clash, old]).await;
    let installation = Installation::new(&index);
    let wrong = format!("demo==1.0 {}", other().hash());
    let right = format!("demo==1.0 {}", demo().hash());
    for (dependencies, reason, words) in [
        (&["missing"][..], "not_found", "does not exist in the index"),
        (&["demo>=9"], "not_found", "demo"),
        (&["source"], "not_found", "`python.allow_builds` also installs packages from source"),
        (&["demo", "clash"], "conflict", "clash"),
        (&[wrong.as_str()], "hash_mismatch", "does not match its `--hash`"),
        (&[right.as_str()], "missing_hash", "other"),
    ] {
        let error = failed(&installation.script(BODY, dependencies)).await;
        assert_eq!(error.details.as_ref().unwrap()["reason"], reason, "{error}");
        assert!(error.message.contains(words) && !error.retryable, "{words}: {error}");
        assert_eq!(installation.stored(), [""; 0], "{error}");
    }
    let both = [right, format!("other==2.5 {}", other().hash())];
    let tool = installation.script(BODY, &[&both[0], &both[1]]);
    assert_eq!(call(&tool).await, Ok(json!(42)));
}

#[tokio::test]
async fn an_unreachable_index_may_be_tried_again() {
    let index = Index::serve(&[demo(), other()]).await;
    let mut options = Options::of(&index);
    // Nothing listens on this port.
    options.python.index_url = Some(Secret::new("http://robot:hunter2-token@127.0.0.1:9/simple/".to_owned()));
    let installation = Installation::with(Arc::new(tempfile::tempdir().unwrap()), options);
    let error = failed(&installation.script(BODY, &["demo"])).await;
    assert_eq!(error.details.as_ref().unwrap()["reason"], "unreachable", "{error}");
    assert!(error.retryable && error.message.contains("`python.index_url`"), "{error}");
}

#[tokio::test]
async fn packages_are_built_from_source_only_if_that_is_allowed() {
    let source = PackageFile::source("source", "1.0", "ANSWER = 7");
    let index = Index::serve(&[source]).await;
    let mut options = Options::of(&index);
    options.python.allow_builds = true;
    let installation = Installation::with(Arc::new(tempfile::tempdir().unwrap()), options);
    let tool = installation.script("import source; print(source.ANSWER)", &["source"]);
    assert_eq!(call(&tool).await, Ok(json!(7)));
}

#[tokio::test]
async fn vendored_wheels_need_no_network() {
    let index = Index::serve(&[demo(), other()]).await;
    let installation = Installation::new(&index);
    installation.write("tools.py", "import demo\ndef run(workspace): return demo.ANSWER\n");
    installation.write(&format!("wheels/{}", demo().name), demo().bytes);
    let function = installation.function(&["demo"]);
    let error = failed(&function).await;
    assert!(error.message.contains("a package is missing in the folder `wheels`"), "{error}");
    installation.write(&format!("wheels/{}", other().name), other().bytes);
    until(async || call(&function).await == Ok(json!(42))).await;
    assert_eq!(index.requests(), 0);
}

#[tokio::test]
async fn a_call_does_not_wait_longer_than_its_timeout() {
    let index = Index::serve(&[demo(), other()]).await;
    let installation = Installation::new(&index);
    index.hold(true);
    let body = "import demo, time; time.sleep(1.2); print(demo.ANSWER)";
    let tool = installation.script(body, &["demo"]);
    let error = call_as(&tool, "default", Duration::from_millis(1100)).await.0.unwrap_err();
    assert_eq!((error.code, error.retryable), (ErrorCode::NotReady, true));
    let (before, after) = error.message.split_once(" s so far").unwrap();
    assert!(before.starts_with("installing dependencies ("), "{error}");
    assert_eq!(after, "); call the tool again later");
    assert!(tool.grace() > Duration::from_mins(1));
    // The installation goes on, and its time is not part of the timeout of a call.
    let second = tokio::spawn(async move { call_as(&tool, "default", Duration::from_secs(20)).await });
    tokio::time::sleep(Duration::from_millis(500)).await;
    index.hold(false);
    let (outcome, left, _) = second.await.unwrap();
    assert_eq!(outcome, Ok(json!(42)));
    assert!(left.preparation > Duration::from_millis(400));
    assert_eq!(index.downloads(), 2);
}

#[tokio::test]
async fn limits_stop_an_installation() {
    let large = PackageFile::wheel("large", "1.0", &format!("TEXT = '{}'", "x".repeat(3 << 20)), &[]);
    let index = Index::serve(&[large]).await;
    let mut options = Options::of(&index);
    options.python.max_bytes = 2 << 20;
    let installation = Installation::with(Arc::new(tempfile::tempdir().unwrap()), options);
    let error = failed(&installation.script("import large", &["large"])).await;
    assert_eq!(
        error.message,
        "failed to install Python dependencies: the packages need more than 2097152 bytes (`python.max_bytes`)"
    );
    let mut options = Options::of(&index);
    options.python.build_timeout = Duration::from_secs(2);
    index.hold(true);
    let installation = Installation::with(Arc::new(tempfile::tempdir().unwrap()), options);
    let error = failed(&installation.script("import large", &["large"])).await;
    assert!(error.message.contains("stopped after 2s (`python.build_timeout`)"), "{error}");
    assert_eq!(installation.stored(), [""; 0]);
}

/// Returns a tool as the registry has it.
fn registered(spec: ToolSpec) -> Tool {
    let now = SystemClock.now();
    Tool {
        id: ToolId(uuid::Uuid::now_v7()),
        tenant: TenantId::new("other").unwrap(),
        bundle_id: BundleId(uuid::Uuid::now_v7()),
        bundle: BundleSlug::user_created(),
        spec: Arc::new(spec),
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
    }
}

#[tokio::test]
async fn what_nothing_uses_is_removed() {
    let index = Index::serve(&[demo(), other()]).await;
    let installation = Installation::new(&index);
    let (one, two) = (script(BODY, &["demo"]), script("import other", &["other"]));
    for spec in [&one, &two] {
        let tool = installation.scripts.prepare(&Arc::new(spec.clone()), None);
        call(&tool.unwrap_or_else(|all| panic!("{all:?}"))).await.unwrap();
    }
    let environments = &installation.environments;
    let key = environments.key_of(&one, None).await.unwrap().unwrap();
    let registry = Registry::new(Executors::default());
    registry.apply(vec![Change::Tool(Box::new(registered(one)))]);
    let referenced = environments.referenced(&registry.snapshot(), None).await.unwrap();
    assert_eq!(referenced, HashSet::from([key.clone()]));
    let left = installation.home.path().join("python-envs").join(format!(".building-{}", "a".repeat(40)));
    std::fs::create_dir_all(left.join("packages")).unwrap();
    let days = |days: u32| SystemClock.now().checked_add(Duration::from_hours(24) * days).unwrap();
    assert_eq!(environments.collect(HashSet::new(), days(13)).await.unwrap().removed, []);
    assert!(!left.exists());
    assert_eq!(installation.stored().len(), 2);
    let collected = environments.collect(referenced, days(15)).await.unwrap();
    assert_eq!((collected.removed.len(), collected.bytes > 0), (1, true));
    assert_eq!(installation.stored(), [key.as_str()]);
    // It is installed again when it is needed.
    let again = installation.script("import other; print(other.NAME)", &["other"]);
    assert_eq!(call(&again).await, Ok(json!("other")));
}

#[tokio::test]
async fn a_declared_import_is_not_reported_as_missing() {
    let index = Index::serve(&[demo(), other()]).await;
    let installation = Installation::new(&index);
    let examine = async |dependencies: &[&str]| {
        let spec = script("import demo, nothing", dependencies);
        let problems = installation.scripts.examine(&spec).await;
        problems.into_iter().map(|problem| problem.message).collect::<Vec<_>>()
    };
    let missing =
        |module| format!("the module `{module}` cannot be imported; add its package to `dependencies`");
    assert_eq!(examine(&[]).await, [missing("demo"), missing("nothing")]);
    assert_eq!(examine(&["demo"]).await, [""; 0]);
    call(&installation.script(BODY, &["demo"])).await.unwrap();
    assert_eq!(examine(&["demo"]).await, [missing("nothing")]);
}

#[tokio::test]
async fn uv_installs_the_same_where_it_is_present() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/peers/python/bin");
    if !folder.join("uv").is_file() {
        return skip(Prerequisite::McpPeers, "`target/peers/python/bin/uv` is not installed");
    }
    // Where the sandbox can show it: it has its own `/tmp` and `/work`.
    let programs = tempfile::tempdir_in("/var/tmp").unwrap();
    std::fs::copy(folder.join("uv"), programs.path().join("uv")).unwrap();
    let folder = programs.path().to_owned();
    let source = PackageFile::source("source", "1.0", "ANSWER = 7");
    let clash = PackageFile::wheel("clash", "1.0", "", &["other<2"]);
    let index = Index::serve(&[demo(), other(), source, clash]).await;
    let with_uv = || Options {
        path: format!("/usr/bin:/bin:{}", folder.display()),
        read_only: vec![folder.clone()],
        ..Options::of(&index)
    };
    let installation = Installation::with(Arc::new(tempfile::tempdir().unwrap()), with_uv());
    assert_eq!(call(&installation.script(BODY, &["demo"])).await, Ok(json!(42)));
    let stored = installation.stored();
    let about = installation.home.path().join("python-envs").join(&stored[0]).join("environment.json");
    assert!(std::fs::read_to_string(about).unwrap().contains("\"installer\": \"uv\""));

    let wrong = format!("other==2.5 {}", demo().hash());
    let right = format!("demo==1.0 {}", demo().hash());
    for (dependencies, reason) in [
        (&["missing"][..], "not_found"),
        (&["demo>=9"], "not_found"),
        (&["source"], "not_found"),
        (&["demo", "clash"], "conflict"),
        (&[wrong.as_str()], "hash_mismatch"),
        (&[right.as_str()], "missing_hash"),
    ] {
        let error = failed(&installation.script(BODY, dependencies)).await;
        assert_eq!(error.details.as_ref().unwrap()["reason"], reason, "{error}");
    }
    let mut options = with_uv();
    options.python.index_url = Some(Secret::new("http://robot:hunter2-token@127.0.0.1:9/simple/".to_owned()));
    let unreachable = Installation::with(Arc::new(tempfile::tempdir().unwrap()), options);
    let error = failed(&unreachable.script(BODY, &["demo"])).await;
    assert_eq!(error.details.as_ref().unwrap()["reason"], "unreachable", "{error}");

    installation.write("tools.py", "import demo\ndef run(workspace): return demo.ANSWER\n");
    installation.write(&format!("wheels/{}", demo().name), demo().bytes);
    installation.write(&format!("wheels/{}", other().name), other().bytes);
    let requests = index.requests();
    assert_eq!(call(&installation.function(&["demo"])).await, Ok(json!(42)));
    assert_eq!(index.requests(), requests);
}

/// Set where the test runs as a process of its own: the home folder, and the URL of the index.
const HOME: &str = "HAFT_TEST_PYTHON_HOME";
const INDEX: &str = "HAFT_TEST_PYTHON_INDEX";

#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "the test is started once more, to be killed")]
async fn a_killed_installation_leaves_nothing_that_is_used() {
    let index = Index::serve(&[demo(), other()]).await;
    if let Some(home) = std::env::var_os(HOME) {
        let mut options = Options::of(&index);
        options.python.index_url = Some(Secret::new(std::env::var(INDEX).unwrap()));
        let home = Arc::new(tempfile::Builder::new().tempdir_in(home).unwrap());
        let installation = Installation::with(home, options);
        drop(call(&installation.script(BODY, &["demo"])).await);
        return;
    }
    index.hold(true);
    let outer = tempfile::tempdir().unwrap();
    let name = "python::environments::a_killed_installation_leaves_nothing_that_is_used";
    let mut child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name])
        .env(HOME, outer.path())
        .env(INDEX, index.url())
        .spawn()
        .unwrap();
    // It has begun to install.
    until(async || index.requests() > 0).await;
    child.kill().unwrap();
    child.wait().unwrap();
    let home = std::fs::read_dir(outer.path()).unwrap().next().unwrap().unwrap().path();
    let names = |home: &Path| {
        let entries = std::fs::read_dir(home.join("python-envs")).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.retain(|name| !name.contains(".lock"));
        names
    };
    assert!(names(&home).iter().all(|name| name.starts_with(".building-")), "{:?}", names(&home));
    assert_eq!(names(&home).len(), 1);
    index.hold(false);
    // The same folder again, with what the killed process left.
    let again = Arc::new(tempfile::tempdir().unwrap());
    std::fs::rename(home.join("python-envs"), again.path().join("python-envs")).unwrap();
    let installation = Installation::with(again, Options::of(&index));
    assert_eq!(call(&installation.script(BODY, &["demo"])).await, Ok(json!(42)));
    assert!(installation.stored().iter().all(|name| !name.starts_with('.')), "{:?}", installation.stored());
}
