//! The `rag_retrieval` executor: queries a pipeline of the caller's tenant.

use std::sync::Arc;

use haft_core::BoxFuture;
use haft_core::executor::{CallContext, Executor, Prepared};
use haft_core::implementation::{Implementation, Kind, RagRetrieval};
use haft_core::name::TenantId;
use haft_core::outcome::{CallError, ErrorCode, Outcome};
use haft_core::problem::{Problem, excerpt};
use haft_core::retrieval::{DEFAULT_TOP_K, MAX_TOP_K, Retrieval, RetrievalMode, RetrievalQuery};
use haft_core::runnable::Mode;
use haft_core::spec::ToolSpec;
use serde_json::{Map, Value, json};

/// Runs retrieval tools.
pub struct RetrievalExecutor {
    retrieval: Arc<dyn Retrieval>,
}

impl RetrievalExecutor {
    /// Creates the executor over the pipelines of tenants.
    pub fn new(retrieval: Arc<dyn Retrieval>) -> Self {
        Self { retrieval }
    }
}

impl Executor for RetrievalExecutor {
    fn kind(&self) -> Kind {
        Kind::RagRetrieval
    }

    fn missing_reference(&self, tenant: &TenantId, spec: &ToolSpec) -> Option<Problem> {
        let Implementation::RagRetrieval(rag) = &spec.implementation else { return None };
        // A global tool uses the pipeline that each tenant has under this name.
        if tenant.is_global() || self.retrieval.exists(tenant, &rag.pipeline_id) {
            return None;
        }
        let message = format!("pipeline `{}` not found", excerpt(&rag.pipeline_id, 100));
        Some(Problem::new("implementation.pipeline_id", "not_found", message))
    }

    fn prepare(
        &self,
        spec: &Arc<ToolSpec>,
        _folder: Option<&str>,
    ) -> Result<Arc<dyn Prepared>, Vec<Problem>> {
        let Implementation::RagRetrieval(rag) = &spec.implementation else {
            return Err(vec![Problem::new("implementation.type", "wrong_type", "expected `rag_retrieval`")]);
        };
        Ok(Arc::new(RetrievalTool::new(Arc::clone(&self.retrieval), rag)?))
    }
}

struct RetrievalTool {
    retrieval: Arc<dyn Retrieval>,
    pipeline: String,
    /// What the definition says; arguments override `top_k` and narrow the filter.
    top_k: u32,
    filter: Option<Value>,
    mode: RetrievalMode,
}

impl RetrievalTool {
    fn new(retrieval: Arc<dyn Retrieval>, rag: &RagRetrieval) -> Result<Self, Vec<Problem>> {
        let mut problems = Vec::new();
        let mut invalid = |field: &str, message: String| {
            problems.push(Problem::new(format!("implementation.config.{field}"), "invalid_value", message));
        };
        let top_k = match rag.config.get("top_k") {
            None | Some(Value::Null) => DEFAULT_TOP_K,
            Some(value) => hits(value).unwrap_or_else(|| {
                invalid("top_k", format!("expected an integer from 1 to {MAX_TOP_K}"));
                DEFAULT_TOP_K
            }),
        };
        let filter = rag.config.get("filter").filter(|filter| !filter.is_null()).cloned();
        if filter.as_ref().is_some_and(|filter| !filter.is_object()) {
            invalid("filter", "expected an object".to_owned());
        }
        let mode = rag
            .config
            .get("mode")
            .map_or(Some(RetrievalMode::default()), |mode| serde_json::from_value(mode.clone()).ok());
        let mode = mode.unwrap_or_else(|| {
            invalid("mode", "expected `hybrid`, `bm25` or `embedding`".to_owned());
            RetrievalMode::default()
        });
        if !problems.is_empty() {
            return Err(problems);
        }
        Ok(Self { retrieval, pipeline: rag.pipeline_id.clone(), top_k, filter, mode })
    }

    fn query(&self, call: &CallContext, args: &Map<String, Value>) -> Result<RetrievalQuery, CallError> {
        let invalid = |message: String| CallError::new(ErrorCode::InvalidArguments, message);
        let query = args.get("query").and_then(Value::as_str).filter(|query| !query.trim().is_empty());
        let query = query.ok_or_else(|| invalid("`query` must be a text that is not empty".to_owned()))?;
        let top_k = match args.get("top_k") {
            None | Some(Value::Null) => self.top_k,
            Some(value) => hits(value)
                .ok_or_else(|| invalid(format!("`top_k` must be an integer from 1 to {MAX_TOP_K}")))?,
        };
        let given = args.get("filter").filter(|filter| !filter.is_null()).cloned();
        let filter = match (self.filter.clone(), given) {
            (Some(own), Some(given)) => Some(json!({"all": [own, given]})),
            (own, given) => own.or(given),
        };
        let published_only = call.mode == Mode::Production;
        Ok(RetrievalQuery { query: query.to_owned(), top_k, filter, mode: self.mode, published_only })
    }
}

fn hits(value: &Value) -> Option<u32> {
    let number = u32::try_from(value.as_u64()?).ok()?;
    (1..=MAX_TOP_K).contains(&number).then_some(number)
}

impl Prepared for RetrievalTool {
    fn run<'a>(&'a self, call: &'a CallContext, args: &'a Map<String, Value>) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            let query = self.query(call, args)?;
            let text = query.query.clone();
            let found = self.retrieval.query(call, &self.pipeline, query).await?;
            Ok(json!({"query": text, "pipeline": found.pipeline, "hits": found.hits}))
        })
    }

    fn preview(&self, args: &Map<String, Value>) -> Option<String> {
        let query = args.get("query").and_then(Value::as_str)?;
        Some(format!("query pipeline `{}`: {query}", self.pipeline))
    }
}

#[cfg(test)]
#[path = "retrieval_tests.rs"]
mod tests;
