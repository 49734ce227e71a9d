use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use haft_core::Timestamp;
use haft_core::artifact::ArtifactVersion;
use haft_core::id::CallId;
use haft_core::name::ToolName;
use haft_core::secret::{Secret, SecretError, SecretSource};
use serde_json::json;
use uuid::Uuid;

use super::*;

struct NoSecrets;

impl SecretSource for NoSecrets {
    fn secret<'a>(
        &'a self,
        _: &'a TenantId,
        _: &'a str,
    ) -> BoxFuture<'a, Result<Option<Secret>, SecretError>> {
        Box::pin(std::future::ready(Ok(None)))
    }
}

/// Returns the body of a script and its arguments, instead of running it; counts what it prepares.
#[derive(Default)]
struct Echo(Arc<AtomicUsize>);

struct EchoTool(String);

impl Executor for Echo {
    fn kind(&self) -> Kind {
        Kind::Script
    }

    fn prepare(&self, spec: &Arc<ToolSpec>, _: Option<&str>) -> Result<Arc<dyn Prepared>, Vec<Problem>> {
        self.0.fetch_add(1, Ordering::SeqCst);
        let Implementation::Script(script) = &spec.implementation else { panic!("not a script") };
        if script.body == "bad" {
            return Err(vec![Problem::new("implementation.body", "syntax", "bad body")]);
        }
        Ok(Arc::new(EchoTool(script.body.clone())))
    }
}

impl Prepared for EchoTool {
    fn run<'a>(&'a self, _: &'a CallContext, args: &'a Map<String, Value>) -> BoxFuture<'a, Outcome> {
        Box::pin(std::future::ready(Ok(json!({"body": self.0, "args": args}))))
    }
}

/// Artifacts of the tenant `acme`, by name and version.
#[derive(Default)]
struct Stored(Mutex<BTreeMap<String, Vec<&'static str>>>);

impl Stored {
    fn find(&self, reference: &str, version: VersionSelector) -> Option<(u32, &'static str)> {
        let all = self.0.lock().unwrap();
        let sources = all.get(reference)?;
        let number = match version {
            VersionSelector::Newest | VersionSelector::Published => u32::try_from(sources.len()).unwrap(),
            VersionSelector::Pinned(number) => number,
        };
        Some((number, sources.get(usize::try_from(number).unwrap() - 1)?))
    }
}

impl CodeArtifacts for Stored {
    fn version<'a>(
        &'a self,
        tenant: &'a TenantId,
        reference: &'a str,
        version: VersionSelector,
    ) -> BoxFuture<'a, Result<Option<(ArtifactId, ArtifactVersion)>, CallError>> {
        let found = self.find(reference, version).filter(|_| tenant.as_str() == "acme");
        let version = found.map(|(version, source)| {
            let content = json!({"runtime": "bash", "source": source,
                "inputs": [{"name": "city", "type": "string", "required": true}, {"name": "n", "default": 2}]});
            let content = Arc::new(serde_json::from_value(content).unwrap());
            let (hash, created_at) = (String::new(), Timestamp::UNIX_EPOCH);
            (ArtifactId(Uuid::nil()), ArtifactVersion { version, content, hash, created_by: None, created_at })
        });
        Box::pin(std::future::ready(Ok(version)))
    }

    fn exists(&self, tenant: &TenantId, reference: &str, version: VersionSelector) -> bool {
        tenant.as_str() == "acme" && self.find(reference, version).is_some()
    }
}

struct Bench {
    stored: Arc<Stored>,
    prepared: Arc<AtomicUsize>,
    executor: ArtifactExecutor,
}

fn bench() -> Bench {
    let (stored, prepared) = (Arc::new(Stored::default()), Arc::new(AtomicUsize::new(0)));
    stored.0.lock().unwrap().insert("count".to_owned(), vec!["one"]);
    let runtimes = Executors::default().with(Arc::new(Echo(Arc::clone(&prepared))));
    let executor = ArtifactExecutor::new(runtimes, Some(Arc::clone(&stored) as _));
    Bench { stored, prepared, executor }
}

fn spec(implementation: Value) -> Arc<ToolSpec> {
    let mut map = implementation;
    map["type"] = json!("artifact");
    Arc::new(ToolSpec::new(ToolName::new("t").unwrap(), serde_json::from_value(map).unwrap()))
}

async fn run(tool: &Arc<dyn Prepared>, tenant: &str, args: Value) -> Outcome {
    let deadline = Instant::now() + Duration::from_secs(5);
    let tenant = TenantId::new(tenant).unwrap();
    let call = CallContext::new(CallId(Uuid::now_v7()), tenant, deadline, Arc::new(NoSecrets));
    tool.run(&call, args.as_object().unwrap()).await
}

fn prepare(bench: &Bench, implementation: Value) -> Arc<dyn Prepared> {
    let prepared = bench.executor.prepare(&spec(implementation), None);
    prepared.unwrap_or_else(|problems| panic!("{problems:?}"))
}

#[tokio::test]
async fn a_tool_follows_the_newest_version_or_pins_one() {
    let bench = bench();
    let newest = prepare(&bench, json!({"artifact_id": "count"}));
    let pinned = prepare(&bench, json!({"artifact_id": "count", "artifact_version": "1"}));
    let args = || json!({"city": "${HOME} {{x}}", "other": 1});
    let expected = |body: &str| json!({"body": body, "args": {"city": "${HOME} {{x}}", "n": 2}});
    assert_eq!(run(&newest, "acme", args()).await.unwrap(), expected("one"));
    bench.stored.0.lock().unwrap().get_mut("count").unwrap().push("two");
    for _ in 0..3 {
        assert_eq!(run(&newest, "acme", args()).await.unwrap(), expected("two"));
        assert_eq!(run(&pinned, "acme", args()).await.unwrap(), expected("one"));
    }
    assert_eq!(bench.prepared.load(Ordering::SeqCst), 3, "each tool prepares a version once");
}

#[tokio::test]
async fn inline_source_works_the_same() {
    let bench = bench();
    let inputs = json!([{"name": "city", "type": "string", "required": true}]);
    let inline = prepare(&bench, json!({"runtime": "bash", "source": "echo", "inputs": inputs}));
    let value = run(&inline, "acme", json!({"city": "Bern"})).await.unwrap();
    assert_eq!(value, json!({"body": "echo", "args": {"city": "Bern"}}));
    let error = run(&inline, "acme", json!({})).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::InvalidArguments);
    assert_eq!(error.message, "missing required input `city` of the artifact");
    let problems = bench.executor.prepare(&spec(json!({"runtime": "bash", "source": "bad"})), None);
    assert_eq!(problems.err().unwrap()[0].field, "implementation.source");
}

#[tokio::test]
async fn missing_artifacts_are_reported() {
    let bench = bench();
    let tool = prepare(&bench, json!({"artifact_id": "count"}));
    let error = run(&tool, "other", json!({"city": "a"})).await.unwrap_err();
    assert_eq!((error.code, error.message.as_str()), (ErrorCode::NotReady, "artifact `count` not found"));
    let problem = |tenant: &str, implementation: Value| {
        let tenant = TenantId::new(tenant).unwrap();
        bench.executor.missing_reference(&tenant, &spec(implementation)).map(|problem| problem.message)
    };
    assert_eq!(problem("acme", json!({"artifact_id": "count"})), None);
    assert_eq!(problem("acme", json!({"runtime": "bash", "source": "x"})), None);
    assert_eq!(problem("other", json!({"artifact_id": "count"})).unwrap(), "artifact `count` not found");
    let pinned = problem("acme", json!({"artifact_id": "count", "artifact_version": "7"}));
    assert_eq!(pinned.unwrap(), "artifact `count` has no version 7, or does not exist");
    let invalid =
        bench.executor.prepare(&spec(json!({"artifact_id": "count", "artifact_version": "1.0"})), None);
    assert_eq!(invalid.err().unwrap()[0].field, "implementation.artifact_version");
}

#[test]
fn python_source_is_not_a_template() {
    assert_eq!(literal_python("print('x')"), "print('x')");
    let wrapped = literal_python("print('${x}')");
    assert!(!wrapped.contains("${") && wrapped.contains("<artifact>"), "{wrapped}");
}
