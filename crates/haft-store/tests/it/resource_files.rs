//! Pipelines and code artifacts that are defined by files.

use haft_core::catalog::StoreError;
use haft_core::name::TenantId;
use haft_core::tool::Status;
use haft_store::ResourceQuery;

use crate::harness::Harness;
use crate::pipelines::upload;

fn tenant() -> TenantId {
    TenantId::default_tenant()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_define_pipelines_and_artifacts() {
    let mut harness = Harness::sqlite().await;
    harness.write("pipelines/handbook.yaml", "chunking: {size: 500}\n");
    harness.write("artifacts/count.yaml", "runtime: bash\nsource_file: count.sh\n");
    harness.write("artifacts/count.sh", "echo one");
    harness.restart().await;
    let pipeline = harness.store.documents().pipeline(&tenant(), "handbook").await.unwrap().unwrap();
    assert_eq!((pipeline.path.as_deref(), pipeline.status), (Some("pipelines/handbook.yaml"), Status::Draft));
    harness.store.pipelines().publish(&tenant(), pipeline.id, None).await.unwrap();
    harness.store.documents().add(&pipeline, upload("a.txt", b"text")).await.unwrap();
    let artifact = harness.store.artifacts().find(&tenant(), "count").await.unwrap().unwrap();
    assert_eq!((artifact.path.as_deref(), artifact.revision), (Some("artifacts/count.yaml"), 1));
    let refused = harness.store.artifacts().delete(&tenant(), artifact.id).await;
    assert!(matches!(refused, Err(StoreError::Conflict(_))), "{refused:?}");
    // A changed file beside the definition is a new version; a changed definition of a published pipeline is a draft.
    harness.write("artifacts/count.sh", "echo two");
    harness.write("pipelines/handbook.yaml", "chunking: {size: 400}\n");
    harness.restart().await;
    let artifact = harness.store.artifacts().find(&tenant(), "count").await.unwrap().unwrap();
    assert_eq!((artifact.revision, artifact.definition.content.source.as_str()), (2, "echo two"));
    let edited = harness.store.documents().pipeline(&tenant(), "handbook").await.unwrap().unwrap();
    assert_eq!((edited.definition.chunking.size, edited.serving().chunking.size), (400, 500));
    assert_eq!(edited.ingest_revision, pipeline.ingest_revision);
    // An invalid file keeps the definition, with the error.
    harness.write("pipelines/handbook.yaml", "chunking: [\n");
    harness.restart().await;
    let broken = harness.store.pipelines().find(&tenant(), "handbook").await.unwrap().unwrap();
    assert!(broken.error.is_some());
    assert_eq!(harness.store.pipelines().file_errors(&tenant()).await.unwrap().len(), 1);
    assert_eq!(harness.store.artifacts().file_errors(&tenant()).await.unwrap(), []);
    // A pipeline whose file is gone is hidden; its documents come back with it.
    std::fs::remove_file(harness.path("pipelines/handbook.yaml")).unwrap();
    harness.restart().await;
    let listed =
        harness.store.documents().list_pipelines(&tenant(), &ResourceQuery::default()).await.unwrap();
    assert_eq!(listed, (Vec::new(), 0));
    harness.write("pipelines/handbook.yaml", "chunking: {size: 400}\n");
    harness.restart().await;
    let back = harness.store.documents().pipeline(&tenant(), "handbook").await.unwrap().unwrap();
    assert_eq!((back.id, back.documents, back.error.as_deref()), (pipeline.id, 1, None));
    std::fs::remove_file(harness.path("pipelines/handbook.yaml")).unwrap();
    harness.restart().await;
    harness.clock.advance(49);
    harness.store.reap().await.unwrap();
    assert_eq!(harness.store.documents().pipeline_generation(pipeline.id).await.unwrap(), None);
}
