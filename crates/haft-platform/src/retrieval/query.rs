//! Queries.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Instant;

use haft_core::catalog::StoreError;
use haft_core::executor::CallContext;
use haft_core::invocation::Lineage;
use haft_core::outcome::{CallError, ErrorCode};
use haft_core::problem::excerpt;
use haft_core::retrieval::{
    ChunkHit, ChunkRecord, MAX_QUERY, MAX_TOP_K, Pipeline, RetrievalMode, RetrievalQuery, Retrieved,
};
use haft_retrieval::{Filter, RetrievalHit, embed_all};
use haft_runtime::pipeline::{CallOptions, Request};
use serde_json::{Map, Value, json};

use super::embedding::{self, Endpoint};
use super::filter;
use super::host::RetrievalHost;
use super::index::Search;
use super::update::{self, UpdateError};
use crate::in_service::require_in_service;

impl RetrievalHost {
    /// Queries a pipeline for a call of a tool: as a call of its own, below that one.
    pub async fn query_within(
        self: &Arc<Self>,
        call: &CallContext,
        surface: &'static str,
        reference: &str,
        query: RetrievalQuery,
    ) -> Result<Retrieved, CallError> {
        let options = CallOptions {
            request_id: crate::request_id::current(),
            session: call.session.clone(),
            ..CallOptions::default()
        };
        let request = Request {
            mode: call.mode,
            timeout: Some(call.deadline.saturating_duration_since(Instant::now())),
            lineage: Lineage::below(call),
            options: Some(Box::new(options)),
            ..Request::new(Arc::clone(call.principal()), surface, Map::new())
        };
        self.query(request, reference, query).await
    }

    /// Queries a pipeline of the caller's tenant: a call of it, which passes all steps of the pipeline of calls.
    pub async fn query(
        self: &Arc<Self>,
        mut request: Request,
        reference: &str,
        query: RetrievalQuery,
    ) -> Result<Retrieved, CallError> {
        let calls = self.calls.get().and_then(Weak::upgrade);
        let calls = calls
            .ok_or_else(|| CallError::new(ErrorCode::Cancelled, "the server is starting or stopping"))?;
        let tenant = &request.principal.tenant;
        let missing = || {
            let message = format!("pipeline `{}` not found", excerpt(reference, 100));
            CallError::new(ErrorCode::NotFound, message)
        };
        let found = self
            .parts
            .store
            .documents()
            .queried_pipeline(tenant, reference)
            .await
            .map_err(|error| store_error(&error))?;
        let pipeline = &found.ok_or_else(missing)?;
        request.args = args_of(&query);
        let input = check(pipeline, query);
        let work = |query| async move {
            let found = self.search(pipeline, query).await?;
            let value = json!({"pipeline": found.pipeline, "hits": found.hits.len()});
            Ok((found, value))
        };
        calls.call_resource(&pipeline.callable(), request, input, work).await
    }

    async fn search(
        self: &Arc<Self>,
        pipeline: &Pipeline,
        query: CheckedQuery,
    ) -> Result<Retrieved, CallError> {
        let CheckedQuery { query, filter } = query;
        let search = Search {
            vector: self.query_vector(pipeline, &query).await?,
            query: query.query,
            top_k: usize::try_from(query.top_k).unwrap_or(usize::MAX),
            filter,
            mode: query.mode,
        };
        let index = update::current_index(self, pipeline).await.map_err(update_error)?;
        let searching = tokio::task::spawn_blocking(move || index.search(&search));
        let hits =
            searching.await.map_err(|error| CallError::internal(format!("the search failed: {error}")))?;
        let hits = hits.map_err(|error| CallError::internal(format!("the search failed: {error}")))?;
        let hits = self.with_texts(pipeline, hits).await?;
        Ok(Retrieved { pipeline: pipeline.definition.slug.clone(), hits })
    }

    /// Embeds a query. Without its vector, a hybrid query compares words alone.
    async fn query_vector(
        &self,
        pipeline: &Pipeline,
        query: &RetrievalQuery,
    ) -> Result<Option<Vec<f32>>, CallError> {
        let model = match (&pipeline.serving().embedding, query.mode) {
            (_, RetrievalMode::Bm25) | (None, RetrievalMode::Hybrid) => return Ok(None),
            (Some(model), _) => model,
            (None, RetrievalMode::Embedding) => {
                let message = "the pipeline has no embedding model; use `mode` `bm25`, or set `embedding`";
                return Err(CallError::new(ErrorCode::InvalidArguments, message));
            }
        };
        let embedded = async {
            let endpoint =
                Endpoint::connect(self, &pipeline.tenant, model).await.map_err(|error| error.to_string())?;
            let vectors = embed_all(&endpoint, std::slice::from_ref(&query.query)).await;
            Ok(vectors.map_err(|error| embedding::describe(&error))?.pop())
        };
        match (embedded.await, query.mode) {
            (Ok(vector), _) => Ok(vector),
            (Err(error), RetrievalMode::Embedding) => {
                let error: String = error;
                Err(CallError::new(ErrorCode::Network, error).for_model("the embedding model is unavailable"))
            }
            (Err(error), _) => {
                tracing::warn!(pipeline = %pipeline.definition.slug, error, "a query compares words alone");
                Ok(None)
            }
        }
    }

    async fn with_texts(
        &self,
        pipeline: &Pipeline,
        hits: Vec<RetrievalHit>,
    ) -> Result<Vec<ChunkHit>, CallError> {
        let ids: Vec<String> = hits.iter().map(|hit| hit.chunk.clone()).collect();
        let found = self
            .parts
            .store
            .documents()
            .chunks_by_ids(pipeline.id, &ids)
            .await
            .map_err(|error| store_error(&error))?;
        let mut found: HashMap<String, (ChunkRecord, String)> =
            found.into_iter().map(|(chunk, name)| (chunk.id.clone(), (chunk, name))).collect();
        // A chunk that was deleted meanwhile is left out.
        let with_text = hits.into_iter().filter_map(|hit| {
            let (chunk, document) = found.remove(&hit.chunk)?;
            Some(ChunkHit {
                chunk_id: chunk.id,
                document_id: chunk.document,
                document,
                text: chunk.text,
                score: hit.score,
                bm25: hit.bm25,
                cosine: hit.cosine,
                headings: chunk.headings,
                position: chunk.position,
                metadata: chunk.metadata,
            })
        });
        Ok(with_text.collect())
    }
}

fn store_error(error: &StoreError) -> CallError {
    CallError::new(ErrorCode::StoreUnavailable, error.with_cause()).for_model("the documents are unavailable")
}

fn update_error(error: UpdateError) -> CallError {
    match error {
        UpdateError::Store(error) => store_error(&error),
        error @ (UpdateError::Index(_) | UpdateError::CutOff) => CallError::internal(error.to_string()),
    }
}

/// A query that is valid.
struct CheckedQuery {
    query: RetrievalQuery,
    filter: Option<Filter>,
}

/// Returns the arguments in the record of a query.
fn args_of(query: &RetrievalQuery) -> Map<String, Value> {
    let RetrievalQuery { query, top_k, filter, mode, published_only: _ } = query;
    let mut args = Map::new();
    args.insert("query".to_owned(), json!(excerpt(query, MAX_QUERY)));
    args.insert("top_k".to_owned(), json!(top_k));
    args.insert("mode".to_owned(), json!(mode));
    if let Some(filter) = filter {
        args.insert("filter".to_owned(), filter.clone());
    }
    args
}

/// Checks a query, and that the pipeline is published where it has to be.
fn check(pipeline: &Pipeline, query: RetrievalQuery) -> Result<CheckedQuery, CallError> {
    let invalid = |message: String| CallError::new(ErrorCode::InvalidArguments, message);
    require_in_service(&pipeline.resource)?;
    if query.published_only && pipeline.published.is_none() {
        let slug = &pipeline.definition.slug;
        let message = format!("pipeline `{slug}` is a draft; publish it with `haft pipeline publish {slug}`");
        return Err(CallError::new(ErrorCode::NotPublished, message));
    }
    if query.query.trim().is_empty() {
        return Err(invalid("`query` is empty".to_owned()));
    }
    if query.query.len() > MAX_QUERY {
        return Err(invalid(format!("`query` exceeds the limit of {MAX_QUERY} bytes")));
    }
    if query.top_k == 0 || query.top_k > MAX_TOP_K {
        return Err(invalid(format!("`top_k` is {}; use 1 to {MAX_TOP_K}", query.top_k)));
    }
    let filter = query.filter.as_ref().map(filter::parse).transpose()?;
    Ok(CheckedQuery { query, filter })
}
