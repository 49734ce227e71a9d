//! Code artifacts and their versions.

use haft_core::artifact::{ArtifactContent, ArtifactRuntime};
use haft_core::catalog::StoreError;
use haft_core::name::{ArtifactSlug, TenantId};
use haft_store::{ListPage, NewArtifact};

use crate::harness::{Harness, on_both};

on_both![versions_never_change, artifacts_belong_to_a_tenant];

pub(crate) fn artifact(slug: &str, source: &str) -> NewArtifact {
    let content = ArtifactContent {
        name: "Größe".to_owned(),
        description: String::new(),
        runtime: ArtifactRuntime::Bash,
        source: source.to_owned(),
        inputs: Vec::new(),
    };
    NewArtifact { slug: ArtifactSlug::new(slug).unwrap(), content }
}

async fn versions_never_change(mut harness: Harness) {
    let tenant = TenantId::default_tenant();
    let first = harness.store.create_artifact(&tenant, artifact("count", "one")).await.unwrap();
    let same = harness.store.update_artifact(&tenant, first.id, artifact("count", "one")).await.unwrap();
    assert_eq!(same, Some(first.clone()), "the same content is no new version");
    let second =
        harness.store.update_artifact(&tenant, first.id, artifact("count", "two")).await.unwrap().unwrap();
    assert_eq!((second.newest.version, second.newest.content.source.as_str()), (2, "two"));
    harness.restart().await;
    let store = &harness.store;
    assert_eq!(store.artifact(&tenant, "count").await.unwrap(), Some(second.clone()));
    let source = async |reference: &str, number: Option<u32>| {
        let found = store.artifact_version(&tenant, reference, number).await.unwrap();
        found.map(|(id, version)| {
            assert_eq!(id, first.id);
            version.content.source.clone()
        })
    };
    assert_eq!(source("count", Some(1)).await.as_deref(), Some("one"));
    assert_eq!(source(&first.id.to_string(), Some(2)).await.as_deref(), Some("two"));
    assert_eq!(source("count", None).await.as_deref(), Some("two"));
    assert_eq!(source("count", Some(3)).await, None);
    let versions = store.artifact_versions(first.id, None, 10).await.unwrap();
    assert_eq!(versions, [second.newest.clone(), first.newest.clone()]);
    assert_eq!(store.artifact_versions(first.id, Some(2), 10).await.unwrap(), [first.newest]);
}

async fn artifacts_belong_to_a_tenant(harness: Harness) {
    let (own, stranger) = (TenantId::default_tenant(), TenantId::new("acme").unwrap());
    let store = &harness.store;
    let first = store.create_artifact(&own, artifact("count", "one")).await.unwrap();
    let again = store.create_artifact(&own, artifact("count", "one")).await;
    assert!(matches!(again, Err(StoreError::Conflict(_))), "{again:?}");
    store.create_artifact(&stranger, artifact("count", "other")).await.unwrap();
    let id = first.id.to_string();
    assert_eq!(store.artifact(&stranger, &id).await.unwrap(), None);
    assert_eq!(store.artifact_version(&stranger, &id, None).await.unwrap(), None);
    assert_eq!(store.update_artifact(&stranger, first.id, artifact("x", "y")).await.unwrap(), None);
    assert!(!store.delete_artifact(&stranger, first.id).await.unwrap());
    let names = store.artifact_names(None).await.unwrap().unwrap();
    assert_eq!(names.names.len(), 2);
    assert!(store.delete_artifact(&own, first.id).await.unwrap());
    assert_eq!(store.artifacts(&own, &ListPage::ALL).await.unwrap(), []);
    assert_eq!(store.artifact_names(Some(names.counter)).await.unwrap().unwrap().names.len(), 1);
}
