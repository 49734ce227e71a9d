//! Brings the index of a pipeline up to date, at the cost of what changed.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use haft_core::catalog::StoreError;
use haft_core::id::DocumentId;
use haft_core::retrieval::Pipeline;
use haft_retrieval::IndexError;
use haft_store::{IndexChanges, IndexedDocument, Store};
use tokio::sync::mpsc::{Sender, channel};

use super::host::RetrievalHost;
use super::index::{IndexState, IndexStep, IndexedChunks, PipelineIndex, chunk_size, index_metadata};

/// How many chunks are read at a time.
const PAGE: u32 = 500;
/// How many pages wait to be indexed.
const PAGES_AHEAD: usize = 2;

/// Why an index is not up to date.
#[derive(Debug, thiserror::Error)]
pub(super) enum UpdateError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The index failed.
    #[error("cannot update the index of the pipeline: {0}")]
    Index(#[from] IndexError),
    /// The thread that updates the index ended early.
    #[error("the update of the index was cut off")]
    CutOff,
}

/// Returns the index of a pipeline as of now.
pub(super) async fn current_index(
    host: &Arc<RetrievalHost>,
    pipeline: &Pipeline,
) -> Result<Arc<PipelineIndex>, UpdateError> {
    let index = host.indexes.get(pipeline.id);
    if index.generation() == pipeline.generation {
        return Ok(index);
    }
    // In a task of its own, so that a cancelled query does not interrupt the update.
    let (updated, task_host, pipeline_id) = (Arc::clone(&index), Arc::clone(host), pipeline.id);
    let pipeline = pipeline.clone();
    let task =
        tokio::spawn(async move { bring_up_to_date(&task_host.parts.store, &pipeline, &updated).await });
    match task.await.unwrap_or(Err(UpdateError::CutOff)) {
        Ok(()) => {
            host.indexes.make_room(pipeline_id);
            Ok(index)
        }
        Err(error) => {
            // What it holds is unknown: the next query builds it anew.
            host.indexes.remove(pipeline_id);
            Err(error)
        }
    }
}

async fn bring_up_to_date(
    store: &Store,
    pipeline: &Pipeline,
    index: &Arc<PipelineIndex>,
) -> Result<(), UpdateError> {
    // Concurrent queries wait, and find the index up to date.
    let mut state = index.state.lock().await;
    if index.generation() >= pipeline.generation {
        return Ok(());
    }
    if state.is_broken {
        return Err(UpdateError::CutOff);
    }
    // It must not be used if the update fails.
    state.is_broken = true;
    update(store, pipeline, index, &mut state).await?;
    state.is_broken = false;
    Ok(())
}

async fn update(
    store: &Store,
    pipeline: &Pipeline,
    index: &Arc<PipelineIndex>,
    state: &mut IndexState,
) -> Result<(), UpdateError> {
    let changes = store.documents().index_changes(pipeline.id).await?;
    let changes = changes.ok_or_else(|| StoreError::not_found("pipeline", pipeline.id))?;
    if state.embedding != pipeline.serving().embedding {
        state.embedding.clone_from(&pipeline.serving().embedding);
        index.forget_vectors();
    }
    let (sender, receiver) = channel(PAGES_AHEAD);
    let target = Arc::clone(index);
    let applying = tokio::task::spawn_blocking(move || target.apply(receiver));
    let sent = send_changes(store, state, &changes, &sender).await;
    drop(sender);
    let applied = applying.await.map_err(|_| UpdateError::CutOff)?;
    // If the index failed, the sender only knows that nobody listens.
    applied?;
    sent?;
    index.complete(state, changes.generation);
    Ok(())
}

async fn send_changes(
    store: &Store,
    state: &mut IndexState,
    changes: &IndexChanges,
    sender: &Sender<IndexStep>,
) -> Result<(), UpdateError> {
    let current: HashSet<DocumentId> = changes.documents.iter().map(|document| document.id).collect();
    let gone: Vec<DocumentId> = state.documents.keys().filter(|id| !current.contains(id)).copied().collect();
    for id in gone {
        if let Some(document) = state.documents.remove(&id) {
            send(sender, IndexStep::Remove(document.chunks.into_keys().collect())).await?;
        }
    }
    for document in &changes.documents {
        let known = state.documents.get(&document.id).map(|known| known.generation);
        if known != Some(document.generation) {
            send_document(store, state, document, sender).await?;
        }
    }
    send(sender, IndexStep::Commit).await
}

async fn send_document(
    store: &Store,
    state: &mut IndexState,
    document: &IndexedDocument,
    sender: &Sender<IndexStep>,
) -> Result<(), UpdateError> {
    let known = state.documents.remove(&document.id);
    let known = known.unwrap_or(IndexedChunks { generation: -1, chunks: HashMap::new() });
    let mut chunks = known.chunks;
    if !chunks.is_empty() {
        let stored = store.documents().stored_chunks(document.id).await?;
        let stored: HashSet<String> = stored.into_iter().map(|chunk| chunk.id).collect();
        let removed: Vec<String> = chunks.keys().filter(|id| !stored.contains(*id)).cloned().collect();
        for id in &removed {
            chunks.remove(id);
        }
        send(sender, IndexStep::Remove(removed)).await?;
    }
    let metadata = Arc::new(index_metadata(&document.metadata));
    let mut after = String::new();
    loop {
        let page = store.documents().chunks_after(document.id, known.generation, &after, PAGE).await?;
        let Some(last) = page.last() else { break };
        after.clone_from(&last.id);
        let is_last = page.len() < usize::try_from(PAGE).unwrap_or(usize::MAX);
        chunks.extend(page.iter().map(|chunk| (chunk.id.clone(), chunk_size(chunk))));
        send(sender, IndexStep::Add(Arc::clone(&metadata), page)).await?;
        if is_last {
            break;
        }
    }
    state.documents.insert(document.id, IndexedChunks { generation: document.generation, chunks });
    Ok(())
}

async fn send(sender: &Sender<IndexStep>, step: IndexStep) -> Result<(), UpdateError> {
    sender.send(step).await.map_err(|_| UpdateError::CutOff)
}
