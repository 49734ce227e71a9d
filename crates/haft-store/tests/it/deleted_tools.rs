//! Deleted tools are hidden, come back on request with their revisions and their text, and are removed after 48 hours.

use std::fs;

use haft_core::catalog::{Backup, FileForm, NewTool, SourceText, StoreError, Transition};
use haft_core::id::ToolId;
use haft_core::name::TenantId;
use haft_core::tool::Status;

use crate::harness::{Harness, new_tool, on_both, spec};

on_both![
    a_restored_tool_is_as_it_was,
    a_new_tool_replaces_a_deleted_one,
    a_tool_without_a_backup_cannot_be_restored,
    a_tool_is_not_restored_into_a_deleted_bundle,
];

fn tenant() -> TenantId {
    TenantId::default_tenant()
}

async fn deleted(harness: &Harness) -> Vec<ToolId> {
    let found = harness.store.catalog().deleted_tools(&tenant()).await.unwrap();
    found.into_iter().map(|deleted| deleted.tool.id).collect()
}

async fn is_missing(harness: &Harness, tenant: &TenantId, id: ToolId) -> bool {
    matches!(harness.store.catalog().undelete_tool(tenant, id).await, Err(StoreError::NotFound { .. }))
}

async fn a_restored_tool_is_as_it_was(mut harness: Harness) {
    let tool = harness.create(spec("weather", "one")).await.unwrap();
    harness.store.catalog().transition(tool.id, Transition::Publish).await.unwrap();
    let before = harness.store.catalog().update_tool(tool.id, spec("weather", "two").into()).await.unwrap();
    assert!(is_missing(&harness, &tenant(), tool.id).await, "it is not deleted");
    harness.store.catalog().delete_tool(tool.id, Backup::Keep).await.unwrap();
    assert_eq!(deleted(&harness).await, [tool.id]);
    harness.restart().await;
    assert!(harness.mirror().tools.is_empty());
    assert!(harness.store.catalog().revisions(tool.id).await.is_err());
    let stranger = TenantId::new("acme").unwrap();
    assert!(is_missing(&harness, &stranger, tool.id).await);
    assert_eq!(harness.store.catalog().deleted_tools(&stranger).await.unwrap(), []);
    harness.clock.advance(47);
    harness.store.reap().await.unwrap();
    let restored = harness.store.catalog().undelete_tool(&tenant(), tool.id).await.unwrap();
    assert_eq!(restored, before);
    assert_eq!((restored.status, restored.published.map(|(number, _)| number)), (Status::Published, Some(1)));
    assert_eq!(harness.store.catalog().revisions(tool.id).await.unwrap().len(), 2);
    assert_eq!(deleted(&harness).await, []);
    harness.assert_consistent().await;
    harness.restart().await;
    assert_eq!(harness.mirror().tools[&tool.id], before);
    harness.store.catalog().delete_tool(tool.id, Backup::Keep).await.unwrap();
    harness.clock.advance(49);
    assert_eq!(deleted(&harness).await, []);
    assert!(is_missing(&harness, &tenant(), tool.id).await);
    harness.store.reap().await.unwrap();
    assert_ne!(harness.create(spec("weather", "three")).await.unwrap().id, tool.id);
    harness.assert_consistent().await;
}

async fn a_new_tool_replaces_a_deleted_one(harness: Harness) {
    let first = harness.create(spec("weather", "one")).await.unwrap();
    harness.store.catalog().delete_tool(first.id, Backup::Keep).await.unwrap();
    let second = harness.create(spec("weather", "two")).await.unwrap();
    assert_ne!(second.id, first.id);
    assert!(is_missing(&harness, &tenant(), first.id).await);
    assert_eq!(deleted(&harness).await, []);
    harness.assert_consistent().await;
}

async fn a_tool_without_a_backup_cannot_be_restored(harness: Harness) {
    let tool = harness.create(spec("weather", "one")).await.unwrap();
    harness.store.catalog().delete_tool(tool.id, Backup::Discard).await.unwrap();
    assert_eq!(deleted(&harness).await, []);
    assert!(is_missing(&harness, &tenant(), tool.id).await);
}

async fn a_tool_is_not_restored_into_a_deleted_bundle(harness: Harness) {
    let tool = harness.create(spec("weather", "one")).await.unwrap();
    harness.store.catalog().delete_tool(tool.id, Backup::Keep).await.unwrap();
    harness.store.catalog().delete_bundle(tool.bundle_id).await.unwrap();
    let error = harness.store.catalog().undelete_tool(&tenant(), tool.id).await.unwrap_err();
    assert_eq!(error.to_string(), "bundle `web` is deleted; create it again to restore it");
    harness.assert_consistent().await;
}

#[tokio::test]
async fn the_text_of_the_author_is_restored() {
    let harness = Harness::sqlite().await;
    let text = "# Why it is here.\nname: weather\ndescription: one\nimplementation:\n  type: function\n  function: weather\n";
    let parsed =
        haft_definition::dialect::read(text, FileForm::Yaml, &haft_definition::dialect::Defaults::default());
    let new = NewTool {
        form: FileForm::Yaml,
        text: Some(SourceText { form: FileForm::Yaml, text: text.to_owned() }),
        ..new_tool("web", parsed.unwrap().spec)
    };
    let tool = harness.store.catalog().create_tool(new).await.unwrap();
    let path = harness.path(tool.path.as_deref().unwrap());
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
    harness.store.catalog().delete_tool(tool.id, Backup::Keep).await.unwrap();
    assert!(!path.exists());
    let restored = harness.store.catalog().undelete_tool(&tenant(), tool.id).await.unwrap();
    assert_eq!(restored, tool);
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
    harness.assert_consistent().await;
}

#[tokio::test]
async fn a_file_does_not_restore_a_deleted_tool() {
    let mut harness = Harness::sqlite().await;
    let tool = harness.create(spec("weather", "one")).await.unwrap();
    harness.store.catalog().transition(tool.id, Transition::Publish).await.unwrap();
    let path = harness.path(tool.path.as_deref().unwrap());
    let text = fs::read_to_string(&path).unwrap();
    harness.store.catalog().delete_tool(tool.id, Backup::Keep).await.unwrap();
    fs::write(&path, text).unwrap();
    harness.restart().await;
    let new = harness.mirror().named("weather").cloned().unwrap();
    assert_ne!(new.id, tool.id);
    assert_eq!(new.status, Status::Draft);
    harness.assert_consistent().await;
}

#[tokio::test]
async fn a_tool_whose_file_vanished_is_restored_with_a_new_file() {
    let mut harness = Harness::sqlite().await;
    let tool = harness.create(spec("weather", "one")).await.unwrap();
    let path = harness.path(tool.path.as_deref().unwrap());
    fs::remove_file(&path).unwrap();
    harness.restart().await;
    assert_eq!(deleted(&harness).await, [tool.id]);
    let restored = harness.store.catalog().undelete_tool(&tenant(), tool.id).await.unwrap();
    assert_eq!((restored.id, restored.spec), (tool.id, tool.spec));
    assert!(harness.path(restored.path.as_deref().unwrap()).exists());
    harness.assert_consistent().await;
}
