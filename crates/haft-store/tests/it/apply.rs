//! Many changes in one step, and what a crash leaves of one.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use haft_core::catalog::{FileForm, SourceText, StoreError};
use haft_core::name::{BundleSlug, TenantId};
use haft_core::tool::Status;
use haft_store::{ApplyChanges, ApplyScope, BundleFields, ToolStep};
use serde_json::json;

use crate::harness::{Harness, on_both, spec};

on_both![a_step_is_applied_to_the_state_that_it_was_planned_for];

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
    harness.store.apply_state(TenantId::default_tenant(), scope()).await.unwrap().digest
}

async fn apply(harness: &Harness, digest: String, changes: ApplyChanges) -> Result<(), StoreError> {
    harness.store.apply(TenantId::default_tenant(), scope(), digest, changes).await
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
