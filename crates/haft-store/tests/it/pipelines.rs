//! Retrieval pipelines: documents, chunks, claims.

use std::collections::BTreeMap;

use haft_core::catalog::StoreError;
use haft_core::id::PipelineId;
use haft_core::name::{PipelineSlug, TenantId};
use haft_core::retrieval::{
    ChunkPosition, ChunkRecord, DocumentInfo, DocumentSource, DocumentState, EmbeddingModel, IngestStatus,
    Pipeline, PipelineDefinition,
};
use haft_core::tool::Status;
use haft_store::{
    ClaimedDocument, DocumentChunks, KeptChunk, NewDocument, ResourceQuery, ResourceUpdate, Store,
    StoredChunks,
};
use serde_json::json;

use crate::harness::{Harness, on_both};

on_both![
    pipelines_belong_to_a_tenant,
    documents_keep_their_content,
    chunks_are_stored_at_the_cost_of_what_changed,
    a_claim_is_fenced,
    a_change_of_the_definition_queues_documents,
    documents_follow_the_published_definition,
    a_dead_node_leaves_its_documents_to_others,
    the_number_of_chunks_is_limited,
];

pub(crate) fn definition(slug: &str) -> PipelineDefinition {
    PipelineDefinition::new(PipelineSlug::new(slug).unwrap())
}

fn own() -> TenantId {
    TenantId::default_tenant()
}

pub(crate) async fn pipeline(harness: &Harness) -> Pipeline {
    create(&harness.store, &own(), "handbook").await.unwrap()
}

pub(crate) async fn create(store: &Store, tenant: &TenantId, slug: &str) -> Result<Pipeline, StoreError> {
    let created = store.pipelines().create(tenant, definition(slug), "ann").await?;
    store.documents().pipeline_of(created).await
}

/// Changes the definition of a pipeline.
async fn change(
    store: &Store,
    id: PipelineId,
    definition: PipelineDefinition,
) -> Result<Pipeline, StoreError> {
    let update = ResourceUpdate { definition, expected_revision: None, author: "bob".to_owned() };
    let changed = store.pipelines().update(&own(), id, update).await?;
    store.documents().pipeline_of(changed).await
}

pub(crate) fn upload(name: &str, content: &[u8]) -> NewDocument {
    NewDocument {
        name: name.to_owned(),
        source: DocumentSource::Upload,
        media_type: Some("text/plain".to_owned()),
        metadata: BTreeMap::from([("team".to_owned(), json!("core"))]),
        content: Some(content.to_owned()),
        error: None,
    }
}

pub(crate) fn chunk(
    document: &DocumentInfo,
    id: &str,
    text: &str,
    embedding: Option<Vec<f32>>,
) -> ChunkRecord {
    ChunkRecord {
        id: id.to_owned(),
        document: document.id,
        ordinal: 0,
        hash: format!("hash of {id}"),
        headings: vec!["Größe".to_owned(), "\0".to_owned()],
        text: text.to_owned(),
        position: ChunkPosition { page: Some(2), line: None, start: 3, end: 9 },
        language: "english".to_owned(),
        metadata: BTreeMap::new(),
        embedding,
    }
}

async fn claim(harness: &Harness) -> ClaimedDocument {
    let mut claimed = harness.store.documents().claim(5).await.unwrap();
    assert_eq!(claimed.len(), 1);
    claimed.pop().unwrap()
}

pub(crate) fn chunks(pipeline: &Pipeline, add: Vec<ChunkRecord>) -> DocumentChunks {
    DocumentChunks {
        format: "text".to_owned(),
        content: ("hash".to_owned(), 4),
        revision: pipeline.ingest_revision,
        total: add.len() as u64,
        add,
        max_chunks: 100,
        ..DocumentChunks::default()
    }
}

async fn pipelines_belong_to_a_tenant(mut harness: Harness) {
    let created = pipeline(&harness).await;
    let stranger = TenantId::new("acme").unwrap();
    let again = create(&harness.store, &own(), "handbook").await;
    assert!(matches!(again, Err(StoreError::Conflict(_))), "{again:?}");
    create(&harness.store, &stranger, "handbook").await.unwrap();
    harness.restart().await;
    let store = &harness.store;
    let names = store.pipelines().names(None).await.unwrap().unwrap();
    assert_eq!(names.names.len(), 2);
    assert_eq!(store.pipelines().names(Some(names.counter)).await.unwrap(), None);
    for reference in ["handbook", &created.id.to_string()] {
        assert_eq!(store.documents().pipeline(&own(), reference).await.unwrap().as_ref(), Some(&created));
        assert_eq!(
            store.documents().queried_pipeline(&own(), reference).await.unwrap().as_ref(),
            Some(&created)
        );
    }
    assert_eq!(store.documents().pipeline(&stranger, &created.id.to_string()).await.unwrap(), None);
    assert_eq!(
        store.documents().list_pipelines(&own(), &ResourceQuery::default()).await.unwrap(),
        (vec![created.clone()], 1)
    );
    let published = store.pipelines().publish(&own(), created.id, None).await.unwrap();
    assert_eq!(published.status, Status::Published);
    let foreign = store.pipelines().delete(&stranger, created.id).await;
    assert!(matches!(foreign, Err(StoreError::NotFound { .. })), "{foreign:?}");
    store.pipelines().delete(&own(), created.id).await.unwrap();
    let listed = store.documents().list_pipelines(&own(), &ResourceQuery::default()).await.unwrap();
    assert_eq!(listed, (Vec::new(), 0));
    assert_eq!(store.pipelines().names(Some(names.counter)).await.unwrap().unwrap().names.len(), 1);
}

async fn documents_keep_their_content(mut harness: Harness) {
    let pipeline = pipeline(&harness).await;
    let content: Vec<u8> = (0..2_500_000_u32).flat_map(u32::to_le_bytes).take(2_500_001).collect();
    let added = harness.store.documents().add(&pipeline, upload("b.bin", &content)).await.unwrap();
    harness.store.documents().add(&pipeline, upload("a.txt", b"")).await.unwrap();
    harness.restart().await;
    let store = &harness.store;
    assert_eq!(store.documents().content(added.id).await.unwrap(), Some(content.clone()));
    let listed = store.documents().list(&pipeline, &[], None, 10).await.unwrap();
    assert_eq!(listed.iter().map(|document| document.name.as_str()).collect::<Vec<_>>(), ["a.txt", "b.bin"]);
    assert_eq!(listed[1], added);
    assert_eq!((added.state, added.bytes), (DocumentState::Queued, 2_500_001));
    let after = store.documents().list(&pipeline, &[DocumentState::Queued], Some("a.txt"), 10).await.unwrap();
    assert_eq!(after, std::slice::from_ref(&added));
    assert_eq!(store.documents().list(&pipeline, &[DocumentState::Done], None, 10).await.unwrap(), []);
    // The same content changes nothing; another one replaces it under the same id.
    assert_eq!(store.documents().add(&pipeline, upload("b.bin", &content)).await.unwrap(), added);
    let replaced = store.documents().add(&pipeline, upload("b.bin", b"short")).await.unwrap();
    assert_eq!((replaced.id, replaced.bytes), (added.id, 5));
    assert_eq!(store.documents().content(added.id).await.unwrap().as_deref(), Some(&b"short"[..]));
    let bad = NewDocument { content: None, error: Some("too large".to_owned()), ..upload("c", b"") };
    assert_eq!(store.documents().add(&pipeline, bad).await.unwrap().state, DocumentState::Failed);
    let counted = store.documents().pipeline(&own(), "handbook").await.unwrap().unwrap();
    assert_eq!((counted.documents, counted.bytes, counted.chunks), (3, 5, 0));
    let status = store.documents().ingest_status(&pipeline).await.unwrap();
    assert_eq!(status, IngestStatus { queued: 2, failed: 1, ..IngestStatus::default() });
    assert!(store.documents().delete(&pipeline, added.id).await.unwrap());
    assert_eq!(store.documents().content(added.id).await.unwrap(), None);
}

async fn chunks_are_stored_at_the_cost_of_what_changed(harness: Harness) {
    let (store, pipeline) = (&harness.store, pipeline(&harness).await);
    let document = store.documents().add(&pipeline, upload("a.txt", b"text")).await.unwrap();
    let claimed = claim(&harness).await;
    assert_eq!(store.documents().claim(5).await.unwrap().len(), 0);
    store.documents().record_progress(&claimed, 1, 3).await.unwrap();
    let running = store.documents().get(&pipeline, document.id).await.unwrap().unwrap();
    assert_eq!((running.state, running.progress.unwrap().total), (DocumentState::Running, 3));
    let vector = vec![0.5, -1.25e-7, f32::MIN_POSITIVE];
    let add = vec![
        chunk(&document, "one", "first \0 text", Some(vector.clone())),
        chunk(&document, "two", "second", None),
    ];
    assert_eq!(
        store.documents().store_chunks(&claimed, chunks(&pipeline, add.clone())).await.unwrap(),
        StoredChunks::Stored
    );
    let done = store.documents().get(&pipeline, document.id).await.unwrap().unwrap();
    assert_eq!((done.state, done.chunks, done.format.as_deref()), (DocumentState::Done, 2, Some("text")));
    let changes = store.documents().index_changes(pipeline.id).await.unwrap().unwrap();
    assert_eq!((changes.generation, changes.documents.len()), (2, 1));
    assert_eq!((changes.documents[0].generation, &changes.documents[0].metadata), (2, &document.metadata));
    let read = store.documents().chunks_after(document.id, 0, "", 10).await.unwrap();
    // PostgreSQL stores no NUL in a text.
    let expected = [ChunkRecord { text: "first \u{fffd} text".to_owned(), ..add[0].clone() }, add[1].clone()];
    assert_eq!(read, expected);
    assert_eq!(store.documents().chunks_after(document.id, 0, "one", 10).await.unwrap(), [add[1].clone()]);

    store.documents().reingest(&pipeline).await.unwrap();
    let claimed = claim(&harness).await;
    let position = ChunkPosition { page: None, line: Some(1), start: 0, end: 1 };
    let kept = KeptChunk { id: "two".into(), ordinal: 7, position, is_embedded: false, embedding: None };
    let second = DocumentChunks {
        keep: vec![kept],
        remove: vec!["one".to_owned()],
        total: 2,
        ..chunks(&pipeline, vec![chunk(&document, "three", "third", None)])
    };
    store.documents().store_chunks(&claimed, second).await.unwrap();
    let changes = store.documents().index_changes(pipeline.id).await.unwrap().unwrap();
    assert_eq!(changes.generation, 3);
    let new = store.documents().chunks_after(document.id, 2, "", 10).await.unwrap();
    assert_eq!(new.iter().map(|chunk| chunk.id.as_str()).collect::<Vec<_>>(), ["three"]);
    let stored = store.documents().stored_chunks(document.id).await.unwrap();
    let two = stored.iter().find(|chunk| chunk.id == "two").unwrap();
    assert_eq!((stored.len(), two.ordinal, two.position, two.is_embedded), (2, 7, position, false));
    let ids = ["two", "one", "three"].map(str::to_owned);
    let mut found = store.documents().chunks_by_ids(pipeline.id, &ids).await.unwrap();
    found.sort_by(|a, b| a.0.id.cmp(&b.0.id));
    let found: Vec<_> = found.iter().map(|(chunk, name)| (chunk.id.as_str(), name.as_str())).collect();
    assert_eq!(found, [("three", "a.txt"), ("two", "a.txt")]);

    // What stays as it is leaves the generation alone.
    store.documents().reingest(&pipeline).await.unwrap();
    store.documents().keep_chunks(&claim(&harness).await).await.unwrap();
    assert_eq!(store.documents().pipeline_generation(pipeline.id).await.unwrap(), Some(3));
    store.documents().delete(&pipeline, document.id).await.unwrap();
    let changes = store.documents().index_changes(pipeline.id).await.unwrap().unwrap();
    assert_eq!((changes.generation, changes.documents.len()), (4, 0));
}

async fn a_claim_is_fenced(harness: Harness) {
    let (store, pipeline) = (&harness.store, pipeline(&harness).await);
    let document = store.documents().add(&pipeline, upload("a.txt", b"old")).await.unwrap();
    let claimed = claim(&harness).await;
    store.documents().add(&pipeline, upload("a.txt", b"new")).await.unwrap();
    let late = chunks(&pipeline, vec![chunk(&document, "old", "old", None)]);
    assert_eq!(store.documents().store_chunks(&claimed, late).await.unwrap(), StoredChunks::Superseded);
    let late = store.documents().fail(&claimed, Some("old")).await;
    assert!(matches!(late, Err(StoreError::ClaimLost)), "{late:?}");
    let state = store.documents().get(&pipeline, document.id).await.unwrap().unwrap();
    assert_eq!((state.state, state.error, state.chunks), (DocumentState::Queued, None, 0));
    let claimed = claim(&harness).await;
    store.documents().fail(&claimed, Some("no \0 text")).await.unwrap();
    let failed = store.documents().get(&pipeline, document.id).await.unwrap().unwrap();
    assert_eq!((failed.state, failed.error.as_deref()), (DocumentState::Failed, Some("no \u{fffd} text")));
    // The same content of a failed document is tried again.
    let again = store.documents().add(&pipeline, upload("a.txt", b"new")).await.unwrap();
    assert_eq!(again.state, DocumentState::Queued);
}

async fn a_change_of_the_definition_queues_documents(harness: Harness) {
    let (store, first) = (&harness.store, pipeline(&harness).await);
    let document = store.documents().add(&first, upload("a.txt", b"text")).await.unwrap();
    let claimed = claim(&harness).await;
    let vector = Some(vec![1.0]);
    store
        .documents()
        .store_chunks(&claimed, chunks(&first, vec![chunk(&document, "a", "a", vector)]))
        .await
        .unwrap();
    let state = async || store.documents().get(&first, document.id).await.unwrap().unwrap().state;
    let renamed = PipelineDefinition { description: "other".to_owned(), ..definition("manual") };
    let changed = change(store, first.id, renamed).await.unwrap();
    assert_eq!(
        (changed.ingest_revision, changed.definition.slug.as_str()),
        (first.ingest_revision, "manual")
    );
    assert_eq!(state().await, DocumentState::Done);
    let embedding = EmbeddingModel {
        model: "m".to_owned(),
        base_url: "http://localhost".to_owned(),
        credential: None,
        dimensions: None,
    };
    let embedded = PipelineDefinition { embedding: Some(embedding), ..definition("manual") };
    let changed = change(store, first.id, embedded).await.unwrap();
    assert_eq!((changed.ingest_revision, state().await), (first.ingest_revision + 1, DocumentState::Queued));
    assert!(!store.documents().stored_chunks(document.id).await.unwrap()[0].is_embedded);
    // What was made with the earlier definition is not stored.
    let claimed = claim(&harness).await;
    let late = chunks(&first, vec![]);
    assert_eq!(store.documents().store_chunks(&claimed, late).await.unwrap(), StoredChunks::Superseded);
    assert_eq!(state().await, DocumentState::Queued);
    create(store, &own(), "taken").await.unwrap();
    let taken = change(store, first.id, definition("taken")).await;
    assert!(matches!(taken, Err(StoreError::Conflict(_))), "{taken:?}");
}

async fn a_dead_node_leaves_its_documents_to_others(mut harness: Harness) {
    let pipeline = pipeline(&harness).await;
    harness.store.documents().add(&pipeline, upload("a.txt", b"text")).await.unwrap();
    let claimed = claim(&harness).await;
    let (other, _) = harness.another().await;
    assert_eq!(other.documents().claim(5).await.unwrap().len(), 0, "its node is alive");
    other.close().await;
    harness.restart().await;
    let again = claim(&harness).await;
    assert_eq!(again.info.id, claimed.info.id);
    let late = harness.store.documents().store_chunks(&claimed, chunks(&pipeline, vec![])).await.unwrap();
    assert_eq!(late, StoredChunks::Superseded);
}

async fn the_number_of_chunks_is_limited(harness: Harness) {
    let (store, pipeline) = (&harness.store, pipeline(&harness).await);
    for (name, expected) in [("a", StoredChunks::Stored), ("b", StoredChunks::TooMany { chunks: 4 })] {
        let document = store.documents().add(&pipeline, upload(name, name.as_bytes())).await.unwrap();
        let claimed = claim(&harness).await;
        let add = ["1", "2"].map(|id| chunk(&document, &format!("{name}{id}"), "x", None)).to_vec();
        let new = DocumentChunks { max_chunks: 3, ..chunks(&pipeline, add) };
        assert_eq!(store.documents().store_chunks(&claimed, new).await.unwrap(), expected);
    }
}

async fn documents_follow_the_published_definition(harness: Harness) {
    let (store, first) = (&harness.store, pipeline(&harness).await);
    store.pipelines().publish(&own(), first.id, None).await.unwrap();
    let document = store.documents().add(&first, upload("a.txt", b"text")).await.unwrap();
    let claimed = claim(&harness).await;
    store
        .documents()
        .store_chunks(&claimed, chunks(&first, vec![chunk(&document, "a", "a", None)]))
        .await
        .unwrap();
    let state = async || store.documents().get(&first, document.id).await.unwrap().unwrap().state;
    let mut other = definition("handbook");
    other.chunking.size = 500;
    // A draft changes nothing.
    let draft = change(store, first.id, other).await.unwrap();
    assert_eq!((draft.revision, draft.published_revision()), (2, Some(1)));
    assert_eq!((draft.serving().chunking.size, draft.definition.chunking.size), (300, 500));
    assert_eq!((draft.ingest_revision, state().await), (first.ingest_revision, DocumentState::Done));
    let published = store.pipelines().publish(&own(), first.id, Some(2)).await.unwrap();
    assert_eq!(published.serving().chunking.size, 500);
    let published = store.documents().pipeline_of(published).await.unwrap();
    assert_eq!(
        (published.ingest_revision, state().await),
        (first.ingest_revision + 1, DocumentState::Queued)
    );
    // Neither does a restored revision, until it is published.
    let revisions = store.pipelines().revisions(&own(), first.id).await.unwrap();
    let restored = change(store, first.id, (*revisions[1].definition).clone()).await.unwrap();
    assert_eq!((restored.revision, restored.ingest_revision), (3, published.ingest_revision));
    assert_eq!(revisions[1].hash, restored.hash);
    // A pipeline without a published revision is read by its newest one.
    store.pipelines().set_status(&own(), first.id, Status::Draft).await.unwrap();
    let withdrawn = store.documents().pipeline(&own(), "handbook").await.unwrap().unwrap();
    assert_eq!(
        (withdrawn.serving().chunking.size, withdrawn.ingest_revision),
        (300, published.ingest_revision + 1)
    );
}
