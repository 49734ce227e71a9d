//! Bundles: creating, enabling, deleting, reviving, reaping.

use haft_core::bundle::Bundle;
use haft_core::catalog::{Backup, PutBundle, PutResult, StoreError, Transition};
use haft_core::name::{BundleSlug, TenantId};
use haft_store::ReapReport;

use crate::harness::{Harness, new_tool, on_both, spec};

on_both![
    a_bundle_is_created_replaced_and_revived,
    ids_and_slugs_do_not_mix,
    a_bundle_with_tools_cannot_be_deleted,
    nothing_can_be_changed_in_a_disabled_bundle,
    nothing_can_be_created_in_a_deleted_bundle,
    a_deleted_bundle_is_reaped_after_48_hours_if_still_empty,
];

fn put(slug: &str, display_name: &str) -> PutBundle {
    PutBundle {
        id: None,
        tenant: TenantId::default_tenant(),
        slug: BundleSlug::new(slug).unwrap(),
        display_name: display_name.into(),
        description: "for tests".into(),
        enabled: true,
    }
}

async fn a_bundle_is_created_replaced_and_revived(mut harness: Harness) {
    let (one, how) = harness.store.catalog().put_bundle(put("web", "Web")).await.unwrap();
    assert_eq!((how, one.display_name.as_str()), (PutResult::Created, "Web"));
    let off = harness.store.catalog().enable_bundle(one.id, false).await.unwrap();
    assert_eq!(off, Bundle { enabled: false, ..one.clone() });
    let (two, how) = harness.store.catalog().put_bundle(put("web", "Web tools")).await.unwrap();
    assert_eq!(
        (how, two.id, two.created_at, two.enabled),
        (PutResult::Replaced, one.id, one.created_at, true)
    );
    assert!(two.modified_at > one.modified_at);
    harness.store.catalog().delete_bundle(one.id).await.unwrap();
    assert!(harness.mirror().bundles[&one.id].soft_deleted_at.is_some());
    assert!(matches!(harness.store.catalog().delete_bundle(one.id).await, Err(StoreError::NotFound { .. })));
    harness.restart().await;
    let (back, how) = harness.store.catalog().put_bundle(put("web", "Web tools")).await.unwrap();
    assert_eq!((how, back.id, back.soft_deleted_at), (PutResult::Replaced, one.id, None));
    harness.assert_consistent().await;
}

async fn ids_and_slugs_do_not_mix(harness: Harness) {
    let id = "018faf50-b7b6-7a01-9a05-a22a6e0af101".parse().unwrap();
    let (bundle, _) =
        harness.store.catalog().put_bundle(PutBundle { id: Some(id), ..put("web", "Web") }).await.unwrap();
    assert_eq!(bundle.id, id);
    let other = "018faf50-b7b6-7a01-9a05-a22a6e0af102".parse().unwrap();
    for wrong in [
        PutBundle { id: Some(other), ..put("web", "Web") },
        PutBundle { id: Some(id), ..put("net", "Net") },
        PutBundle { id: Some(id), tenant: TenantId::new("acme").unwrap(), ..put("web", "Web") },
    ] {
        assert!(matches!(harness.store.catalog().put_bundle(wrong).await, Err(StoreError::Conflict(_))));
    }
    assert!(matches!(
        harness.store.catalog().put_bundle(put("builtin", "x")).await,
        Err(StoreError::ReadOnly(_))
    ));
    assert_eq!(harness.mirror().bundles.len(), 1);
    harness.assert_consistent().await;
}

async fn a_bundle_with_tools_cannot_be_deleted(harness: Harness) {
    let tool = harness.create(spec("weather", "one")).await.unwrap();
    let error = harness.store.catalog().delete_bundle(tool.bundle_id).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "bundle `web` is not empty: it holds 1 tools or definition files; delete them first"
    );
    harness.store.catalog().delete_tool(tool.id, Backup::Discard).await.unwrap();
    harness.store.catalog().delete_bundle(tool.bundle_id).await.unwrap();
    harness.assert_consistent().await;
}

async fn nothing_can_be_changed_in_a_disabled_bundle(harness: Harness) {
    let tool = harness.create(spec("weather", "one")).await.unwrap();
    harness.store.catalog().enable_bundle(tool.bundle_id, false).await.unwrap();
    let rejected = |result: Result<_, StoreError>| match result {
        Err(error) => assert_eq!(error.to_string(), "bundle `web` is disabled; enable it first"),
        Ok(_) => panic!("it was changed"),
    };
    rejected(harness.create(spec("other", "x")).await);
    rejected(harness.store.catalog().update_tool(tool.id, spec("weather", "two").into()).await);
    rejected(harness.store.catalog().enable_tool(tool.id, false).await);
    rejected(harness.store.catalog().transition(tool.id, Transition::Publish).await);
    harness.store.catalog().delete_tool(tool.id, Backup::Keep).await.unwrap();
    harness.assert_consistent().await;
}

async fn nothing_can_be_created_in_a_deleted_bundle(harness: Harness) {
    let (bundle, _) = harness.store.catalog().put_bundle(put("web", "Web")).await.unwrap();
    harness.store.catalog().delete_bundle(bundle.id).await.unwrap();
    let error = harness.create(spec("weather", "one")).await.unwrap_err();
    assert_eq!(error.to_string(), "bundle `web` is deleted; create it again to restore it");
}

async fn a_deleted_bundle_is_reaped_after_48_hours_if_still_empty(mut harness: Harness) {
    let (bundle, _) = harness.store.catalog().put_bundle(put("web", "Web")).await.unwrap();
    let (kept, _) = harness.store.catalog().put_bundle(put("kept", "Kept")).await.unwrap();
    harness.store.catalog().delete_bundle(bundle.id).await.unwrap();
    harness.store.catalog().delete_bundle(kept.id).await.unwrap();
    harness.clock.advance(47);
    assert_eq!(harness.store.reap().await.unwrap(), ReapReport::default());
    harness.store.catalog().put_bundle(put("kept", "Kept")).await.unwrap();
    harness.clock.advance(2);
    assert_eq!(harness.store.reap().await.unwrap().bundles, 1);
    assert_eq!(harness.mirror().bundles.keys().copied().collect::<Vec<_>>(), [kept.id]);
    if harness.is_embedded() {
        assert!(!harness.path("skills/web").exists());
    }
    harness.restart().await;
    assert_eq!(harness.mirror().bundles.len(), 1);
    harness.store.catalog().create_tool(new_tool("web", spec("weather", "again"))).await.unwrap();
    harness.assert_consistent().await;
}
