//! Many changes in one step, and what a crash leaves of one.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use haft_core::artifact::{ArtifactContent, ArtifactDefinition, ArtifactRuntime};
use haft_core::catalog::{FileForm, SourceText, StoreError};
use haft_core::name::{ArtifactSlug, BundleSlug, PipelineSlug, TenantId};
use haft_core::retrieval::{DocumentSource, PipelineDefinition};
use haft_core::tool::Status;
use haft_store::{
    ApplyChanges, ApplyScope, BundleFields, NewDocument, PipelineChange, ResourceChange, ToolStep,
};
use serde_json::json;

use crate::harness::{Harness, on_both, spec};

on_both![
    a_step_is_applied_to_the_state_that_it_was_planned_for,
    pipelines_and_artifacts_are_part_of_a_step,
    documents_that_nobody_planned_to_delete_stay,
];

fn scope() -> ApplyScope {
    ApplyScope { bundles: vec![BundleSlug::new("web").unwrap()], ..ApplyScope::default() }
}

fn create(name: &str) -> ToolStep {
    ToolStep::Create {
        bundle: BundleSlug::new("web").unwrap(),
        spec: Box::new(spec(name, "Applied")),
        text: SourceText { form: FileForm::Yaml, text: String::new() },
        enabled: true,
        status: Status::Published,
    }
}

fn web() -> BundleFields {
    BundleFields {
        slug: BundleSlug::new("web").unwrap(),
        display_name: "Web".into(),
        description: String::new(),
        enabled: true,
    }
}

async fn digest(harness: &Harness) -> String {
    harness.store.catalog().apply_state(TenantId::default_tenant(), scope()).await.unwrap().digest
}

async fn apply(harness: &Harness, digest: String, changes: ApplyChanges) -> Result<(), StoreError> {
    harness.store.catalog().apply(TenantId::default_tenant(), scope(), digest, changes).await
}

async fn a_step_is_applied_to_the_state_that_it_was_planned_for(harness: Harness) {
    let first = digest(&harness).await;
    let tools = vec![create("one"), create("two")];
    let changes = ApplyChanges { bundles: vec![web()], tools, ..ApplyChanges::default() };
    apply(&harness, first.clone(), changes.clone()).await.unwrap();
    let one = harness.mirror().named("one").unwrap().clone();
    assert_eq!((one.status, one.published.map(|(number, _)| number)), (Status::Published, Some(1)));
    // The same again is planned for a state that is gone.
    assert!(matches!(apply(&harness, first, changes).await, Err(StoreError::Conflict(_))));
    // A failure in the middle leaves nothing.
    let tools = vec![ToolStep::Delete { id: one.id }, create("three"), create("two")];
    let changes = ApplyChanges { tools, ..ApplyChanges::default() };
    assert!(apply(&harness, digest(&harness).await, changes).await.is_err());
    assert!(harness.mirror().named("one").is_some() && harness.mirror().named("three").is_none());
    if harness.is_embedded() {
        assert!(harness.path("skills/web/one.yaml").exists());
        assert!(!harness.path("skills/web/three.yaml").exists() && !harness.path(".apply-journal").exists());
    }
    harness.assert_consistent().await;
}

fn references() -> ApplyScope {
    ApplyScope { pipelines: true, artifacts: true, ..scope() }
}

fn definition(slug: &str) -> PipelineDefinition {
    PipelineDefinition::new(PipelineSlug::new(slug).unwrap())
}

fn artifact(source: &str) -> ArtifactDefinition {
    let content = ArtifactContent {
        name: "Count".to_owned(),
        description: String::new(),
        runtime: ArtifactRuntime::Bash,
        source: source.to_owned(),
        inputs: Vec::new(),
    };
    let slug = ArtifactSlug::new("count").unwrap();
    ArtifactDefinition { slug, content: content.into() }
}

fn pipeline(slug: &str, status: Status) -> PipelineChange {
    let definition = Box::new(definition(slug));
    PipelineChange::Definition(ResourceChange::Create { definition, enabled: true, status })
}

async fn apply_references(
    harness: &Harness,
    pipelines: Vec<PipelineChange>,
    artifacts: Vec<ResourceChange<ArtifactDefinition>>,
    tools: Vec<ToolStep>,
) -> Result<(), StoreError> {
    let tenant = TenantId::default_tenant();
    let digest = harness.store.catalog().apply_state(tenant.clone(), references()).await.unwrap().digest;
    let bundles = if tools.is_empty() { Vec::new() } else { vec![web()] };
    let changes = ApplyChanges { bundles, tools, pipelines, artifacts, ..ApplyChanges::default() };
    harness.store.catalog().apply(tenant, references(), digest, changes).await
}

async fn pipelines_and_artifacts_are_part_of_a_step(mut harness: Harness) {
    let tenant = TenantId::default_tenant();
    let names = harness.store.pipelines().names(None).await.unwrap().unwrap().counter;
    let pipelines = vec![pipeline("handbook", Status::Published), pipeline("a", Status::Draft)];
    let created = vec![ResourceChange::Create {
        definition: Box::new(artifact("one")),
        enabled: true,
        status: Status::Published,
    }];
    // Nothing else changes: it is committed all the same.
    apply_references(&harness, pipelines, created, Vec::new()).await.unwrap();
    assert!(harness.store.pipelines().names(Some(names)).await.unwrap().is_some(), "nodes notice it");
    harness.restart().await;
    let state = harness.store.catalog().apply_state(tenant.clone(), references()).await.unwrap();
    let shown: Vec<(&str, Status)> =
        state.pipelines.iter().map(|pipeline| (pipeline.definition.slug.as_str(), pipeline.status)).collect();
    assert_eq!(shown, [("a", Status::Draft), ("handbook", Status::Published)]);
    let (a, handbook, count) =
        (state.pipelines[0].id, state.pipelines[1].clone(), state.artifacts[0].clone());
    assert_eq!((count.slug.as_str(), count.revision, count.published_revision), ("count", 1, Some(1)));

    let mut changed = definition("handbook");
    changed.chunking.size = 500;
    let changed = Box::new(changed);
    let steps = || {
        vec![
            PipelineChange::Definition(ResourceChange::Update {
                id: handbook.id,
                definition: changed.clone(),
                enabled: true,
                status: Status::Draft,
            }),
            PipelineChange::Delete { id: a, documents: 0 },
        ]
    };
    let update = || {
        vec![ResourceChange::Update {
            id: count.id,
            definition: Box::new(artifact("two")),
            enabled: true,
            status: Status::Published,
        }]
    };
    // A failure in the middle leaves nothing.
    let failed = apply_references(&harness, steps(), update(), vec![create("one"), create("one")]).await;
    assert!(failed.is_err());
    let after = harness.store.catalog().apply_state(tenant.clone(), references()).await.unwrap();
    assert_eq!((&after.pipelines, &after.digest), (&state.pipelines, &state.digest));
    apply_references(&harness, steps(), update(), vec![create("one")]).await.unwrap();
    let after = harness.store.catalog().apply_state(tenant.clone(), references()).await.unwrap();
    assert_eq!(after.pipelines.len(), 1);
    assert_eq!(
        (after.pipelines[0].definition.chunking.size, after.pipelines[0].status),
        (500, Status::Draft)
    );
    assert!(after.pipelines[0].ingest_revision > handbook.ingest_revision, "documents are read again");
    assert_eq!(after.artifacts[0].revision, 2);
    let newest = harness.store.artifacts().find(&tenant, "count").await.unwrap().unwrap();
    assert_eq!((&newest.hash, newest.definition.content.source.as_str()), (&after.artifacts[0].hash, "two"));
    let taken = vec![pipeline("handbook", Status::Draft)];
    let taken = apply_references(&harness, taken, Vec::new(), Vec::new()).await;
    assert!(matches!(taken, Err(StoreError::Conflict(_))), "{taken:?}");
    let deleted = vec![ResourceChange::Delete { id: count.id }];
    apply_references(&harness, Vec::new(), deleted, Vec::new()).await.unwrap();
    assert_eq!(harness.store.artifacts().find(&tenant, "count").await.unwrap(), None);
    // Only what belongs to the scope is read.
    let state = harness.store.catalog().apply_state(tenant, scope()).await.unwrap();
    assert!(state.pipelines.is_empty() && state.artifacts.is_empty());
}

async fn documents_that_nobody_planned_to_delete_stay(harness: Harness) {
    let tenant = TenantId::default_tenant();
    let stored = crate::pipelines::create(&harness.store, &tenant, "handbook").await.unwrap();
    let digest = harness.store.catalog().apply_state(tenant.clone(), references()).await.unwrap().digest;
    let document = NewDocument {
        name: "guide.md".to_owned(),
        source: DocumentSource::Upload,
        media_type: None,
        metadata: std::collections::BTreeMap::new(),
        content: Some(b"text".to_vec()),
        error: None,
    };
    harness.store.documents().add(&stored, document).await.unwrap();
    let now = harness.store.catalog().apply_state(tenant.clone(), references()).await.unwrap();
    assert_eq!(
        (&now.digest, now.pipelines[0].documents),
        (&digest, 1),
        "documents are not part of the state"
    );
    let delete = |documents| vec![PipelineChange::Delete { id: stored.id, documents }];
    let refused = apply_references(&harness, delete(0), Vec::new(), Vec::new()).await.unwrap_err();
    assert!(
        refused.to_string().contains("had 0 documents when the plan was made and has 1 now"),
        "{refused}"
    );
    assert!(harness.store.documents().pipeline(&tenant, "handbook").await.unwrap().is_some());
    apply_references(&harness, delete(1), Vec::new(), Vec::new()).await.unwrap();
    assert_eq!(harness.store.documents().pipeline(&tenant, "handbook").await.unwrap(), None);
    assert!(harness.store.documents().claim(5).await.unwrap().is_empty(), "its documents are gone");
}

#[tokio::test]
async fn an_interrupted_step_is_undone_before_files_are_read() {
    let mut harness = Harness::sqlite().await;
    let changes =
        ApplyChanges { bundles: vec![web()], tools: vec![create("one")], ..ApplyChanges::default() };
    apply(&harness, digest(&harness).await, changes).await.unwrap();
    let before = harness.mirror();
    let old = std::fs::read(harness.path("skills/web/one.yaml")).unwrap();
    let text = String::from_utf8(old.clone()).unwrap();
    let journal = json!({"id": "never committed", "folders": ["skills/new"], "files": [
        {"path": "skills/web/one.yaml", "before": [STANDARD.encode(&old), 0o644]},
        {"path": "skills/web/two.yaml", "before": null},
        {"path": "skills/new/bundle.yaml", "before": null},
    ]});
    harness.write(".apply-journal", &journal.to_string());
    harness.write("skills/web/one.yaml", &text.replace("Applied", "Half applied"));
    harness.write("skills/web/two.yaml", &text.replace("one", "two"));
    harness.write("skills/new/bundle.yaml", "description: half\n");
    harness.restart().await;
    assert_eq!(std::fs::read(harness.path("skills/web/one.yaml")).unwrap(), old);
    assert_eq!(harness.mirror(), before, "nothing of the step is there");
    assert!(!harness.path("skills/new").exists() && !harness.path(".apply-journal").exists());
}
