use std::sync::Mutex;
use std::time::{Duration, Instant};

use haft_core::id::CallId;
use haft_core::name::{PipelineSlug, ToolName};
use haft_core::retrieval::Retrieved;
use haft_core::secret::{Secret, SecretError, SecretSource};
use uuid::Uuid;

use super::*;

/// Knows one pipeline and remembers the queries.
#[derive(Default)]
struct FakeRetrieval(Mutex<Vec<RetrievalQuery>>);

impl Retrieval for FakeRetrieval {
    fn query<'a>(
        &'a self,
        _call: &'a CallContext,
        _pipeline: &'a str,
        query: RetrievalQuery,
    ) -> BoxFuture<'a, Result<Retrieved, CallError>> {
        self.0.lock().unwrap().push(query);
        let pipeline = PipelineSlug::new("handbook").unwrap();
        Box::pin(std::future::ready(Ok(Retrieved { pipeline, hits: Vec::new() })))
    }

    fn exists(&self, tenant: &TenantId, pipeline: &str) -> bool {
        tenant.as_str() == "acme" && pipeline == "handbook"
    }
}

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

fn tool(pipeline: &str, config: &Value) -> Arc<ToolSpec> {
    let implementation = json!({"type": "rag_retrieval", "pipeline_id": pipeline, "config": config});
    let implementation = serde_json::from_value(implementation).unwrap();
    Arc::new(ToolSpec::new(ToolName::new("ask").unwrap(), implementation))
}

async fn run(known: &Arc<FakeRetrieval>, config: &Value, args: &Value) -> Outcome {
    let executor = RetrievalExecutor::new(Arc::clone(known) as _);
    let prepared =
        executor.prepare(&tool("handbook", config), None).unwrap_or_else(|problems| panic!("{problems:?}"));
    let deadline = Instant::now() + Duration::from_secs(5);
    let tenant = TenantId::new("acme").unwrap();
    let call = CallContext::new(CallId(Uuid::now_v7()), tenant, deadline, Arc::new(NoSecrets));
    prepared.run(&call, args.as_object().unwrap()).await
}

#[tokio::test]
async fn arguments_override_the_number_and_narrow_the_filter() {
    let known = Arc::new(FakeRetrieval::default());
    let config = json!({"top_k": 3, "filter": {"team": "core"}, "mode": "bm25"});
    let value = run(&known, &config, &json!({"query": "install"})).await.unwrap();
    assert_eq!(value, json!({"query": "install", "pipeline": "handbook", "hits": []}));
    run(&known, &config, &json!({"query": "x", "top_k": 9, "filter": {"year": 2026}})).await.unwrap();
    let queries = known.0.lock().unwrap().clone();
    let expected = RetrievalQuery {
        top_k: 3,
        filter: Some(json!({"team": "core"})),
        mode: RetrievalMode::Bm25,
        published_only: true,
        ..RetrievalQuery::new("install")
    };
    assert_eq!(queries[0], expected);
    assert_eq!(queries[1].top_k, 9);
    assert_eq!(queries[1].filter, Some(json!({"all": [{"team": "core"}, {"year": 2026}]})));
}

#[tokio::test]
async fn bad_arguments_and_settings_are_reported() {
    let known = Arc::new(FakeRetrieval::default());
    for args in [json!({}), json!({"query": " "}), json!({"query": "x", "top_k": 0})] {
        let error = run(&known, &json!({}), &args).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidArguments, "{args}");
    }
    let executor = RetrievalExecutor::new(known as _);
    for config in [json!({"top_k": 1000}), json!({"filter": 1}), json!({"mode": "x"})] {
        assert!(executor.prepare(&tool("handbook", &config), None).is_err(), "{config}");
    }
}

#[test]
fn a_pipeline_of_another_tenant_is_missing() {
    let executor = RetrievalExecutor::new(Arc::new(FakeRetrieval::default()));
    let missing = |tenant: &str, pipeline: &str| {
        let tenant = if tenant == "*" { TenantId::global() } else { TenantId::new(tenant).unwrap() };
        executor.missing_reference(&tenant, &tool(pipeline, &json!({}))).map(|problem| problem.message)
    };
    assert_eq!(missing("acme", "handbook"), None);
    assert_eq!(missing("*", "handbook"), None);
    assert_eq!(missing("other", "handbook").unwrap(), "pipeline `handbook` not found");
    assert_eq!(missing("acme", "gone").unwrap(), "pipeline `gone` not found");
}
