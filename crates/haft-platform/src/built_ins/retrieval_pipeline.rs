//! `retrieval_pipeline`: searches the documents of a pipeline.

use haft_builtins::{BuiltIn, Describe, describe};
use haft_core::executor::CallContext;
use haft_core::name::NameError;
use haft_core::outcome::Outcome;
use haft_core::retrieval::{DEFAULT_TOP_K, MAX_QUERY, MAX_TOP_K, RetrievalQuery};
use haft_core::runnable::Mode;
use haft_core::spec::ToolSpec;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::context::Context;
use crate::late::Late;

pub(super) fn spec() -> Result<ToolSpec, NameError> {
    let mut spec = describe(Describe {
        name: "retrieval_pipeline",
        description: "Search the documents of a retrieval pipeline, best match first. Returns passages with their document, \
                      headings, position and score. Quote or summarise them, and name the document.",
        category: "retrieval",
        tags: &["retrieval", "search", "documents", "read-only"],
        input: json!({
            "type": "object",
            "properties": {
                "pipeline": {"type": "string", "minLength": 1, "maxLength": 100, "description": "Slug or id of the pipeline"},
                "query": {"type": "string", "minLength": 1, "maxLength": MAX_QUERY, "description": "What to look for, in plain words"},
                "top_k": {"type": "integer", "minimum": 1, "maximum": MAX_TOP_K, "description": "Maximum number of passages; default 5"},
                "filter": {"type": "object", "description": "Condition on the metadata of documents, such as {\"team\": \"core\"}"},
            },
            "required": ["pipeline", "query"],
            "additionalProperties": false,
        }),
        output: json!({
            "type": "object",
            "properties": {
                "query": {"type": "string"}, "pipeline": {"type": "string"},
                "hits": {"type": "array", "items": {"type": "object"}},
            },
            "required": ["query", "pipeline", "hits"],
        }),
    })?;
    spec.execution.timeout_ms = Some(60_000);
    spec.execution.is_pure = true;
    Ok(spec)
}

/// Queries pipelines.
pub(super) struct RetrievalPipeline(pub(super) Late<Context>);

#[derive(Deserialize)]
pub(super) struct Args {
    pipeline: String,
    query: String,
    top_k: Option<u32>,
    filter: Option<Value>,
}

impl BuiltIn for RetrievalPipeline {
    type Args = Args;

    async fn call(&self, call: &CallContext, args: Args) -> Outcome {
        let app = self.0.get()?;
        let query = RetrievalQuery {
            top_k: args.top_k.unwrap_or(DEFAULT_TOP_K),
            filter: args.filter.filter(|filter| !filter.is_null()),
            published_only: call.mode == Mode::Production,
            ..RetrievalQuery::new(args.query.clone())
        };
        let host = app.retrieval();
        let found = host.query_within(call, "retrieval_pipeline", &args.pipeline, query).await?;
        Ok(json!({"query": args.query, "pipeline": found.pipeline, "hits": found.hits}))
    }
}
