//! Code artifacts and their versions.

use haft_core::artifact::{ArtifactContent, ArtifactDefinition, ArtifactRuntime, CodeArtifact};
use haft_core::catalog::StoreError;
use haft_core::id::ArtifactId;
use haft_core::name::{ArtifactSlug, TenantId};
use haft_store::{ResourceQuery, ResourceUpdate, RevisionSelector, Store};

use crate::harness::{Harness, on_both};

on_both![versions_never_change, artifacts_belong_to_a_tenant, a_draft_leaves_the_published_version];

pub(crate) fn artifact(slug: &str, source: &str) -> ArtifactDefinition {
    let content = ArtifactContent {
        name: "Größe".to_owned(),
        description: String::new(),
        runtime: ArtifactRuntime::Bash,
        source: source.to_owned(),
        inputs: Vec::new(),
    };
    ArtifactDefinition { slug: ArtifactSlug::new(slug).unwrap(), content: content.into() }
}

pub(crate) async fn update(
    store: &Store,
    tenant: &TenantId,
    id: ArtifactId,
    definition: ArtifactDefinition,
) -> Result<CodeArtifact, StoreError> {
    let update = ResourceUpdate { definition, expected_revision: None, author: "ann".to_owned() };
    store.artifacts().update(tenant, id, update).await
}

async fn versions_never_change(mut harness: Harness) {
    let tenant = TenantId::default_tenant();
    let first = harness.store.artifacts().create(&tenant, artifact("count", "one"), "ann").await.unwrap();
    let same = update(&harness.store, &tenant, first.id, artifact("count", "one")).await.unwrap();
    assert_eq!(same, first, "the same content is no new version");
    let second = update(&harness.store, &tenant, first.id, artifact("count", "two")).await.unwrap();
    assert_eq!((second.revision, second.definition.content.source.as_str()), (2, "two"));
    harness.restart().await;
    let store = &harness.store;
    assert_eq!(store.artifacts().find(&tenant, "count").await.unwrap(), Some(second.clone()));
    let source = async |reference: &str, number: Option<u32>| {
        let selector = number.map_or(RevisionSelector::Newest, RevisionSelector::Number);
        let found = store.artifacts().revision_of(&tenant, reference, selector).await.unwrap();
        found.map(|(id, version)| {
            assert_eq!(id, first.id);
            version.definition.content.source.clone()
        })
    };
    assert_eq!(source("count", Some(1)).await.as_deref(), Some("one"));
    assert_eq!(source(&first.id.to_string(), Some(2)).await.as_deref(), Some("two"));
    assert_eq!(source("count", None).await.as_deref(), Some("two"));
    assert_eq!(source("count", Some(3)).await, None);
    let versions = store.artifacts().revisions_before(&tenant, first.id, None, 10).await.unwrap();
    let shown = versions.iter().map(|version| (version.number, &version.hash, &version.definition));
    let expected = [(2, &second.hash, &second.definition), (1, &first.hash, &first.definition)];
    assert_eq!(shown.collect::<Vec<_>>(), expected);
    let before = store.artifacts().revisions_before(&tenant, first.id, Some(2), 10).await.unwrap();
    assert_eq!(before, versions[1..]);
}

async fn artifacts_belong_to_a_tenant(harness: Harness) {
    let (own, stranger) = (TenantId::default_tenant(), TenantId::new("acme").unwrap());
    let store = &harness.store;
    let first = store.artifacts().create(&own, artifact("count", "one"), "ann").await.unwrap();
    let again = store.artifacts().create(&own, artifact("count", "one"), "ann").await;
    assert!(matches!(again, Err(StoreError::Conflict(_))), "{again:?}");
    store.artifacts().create(&stranger, artifact("count", "other"), "ann").await.unwrap();
    let id = first.id.to_string();
    assert_eq!(store.artifacts().find(&stranger, &id).await.unwrap(), None);
    let foreign = store.artifacts().revision_of(&stranger, &id, RevisionSelector::Newest).await.unwrap();
    assert_eq!(foreign, None);
    let foreign = update(store, &stranger, first.id, artifact("x", "y")).await;
    assert!(matches!(foreign, Err(StoreError::NotFound { .. })), "{foreign:?}");
    let foreign = store.artifacts().delete(&stranger, first.id).await;
    assert!(matches!(foreign, Err(StoreError::NotFound { .. })), "{foreign:?}");
    let names = store.artifacts().names(None).await.unwrap().unwrap();
    assert_eq!(names.names.len(), 2);
    store.artifacts().delete(&own, first.id).await.unwrap();
    assert_eq!(store.artifacts().list(&own, &ResourceQuery::default()).await.unwrap(), (Vec::new(), 0));
    assert_eq!(store.artifacts().names(Some(names.counter)).await.unwrap().unwrap().names.len(), 1);
}

async fn a_draft_leaves_the_published_version(harness: Harness) {
    let (store, tenant) = (&harness.store, TenantId::default_tenant());
    let first = store.artifacts().create(&tenant, artifact("count", "one"), "ann").await.unwrap();
    let source = async |selector| {
        let found = store.artifacts().revision_of(&tenant, "count", selector).await.unwrap();
        found.map(|(_, version)| version.definition.content.source.clone())
    };
    assert_eq!(source(RevisionSelector::Published).await, None);
    store.artifacts().publish(&tenant, first.id, None).await.unwrap();
    update(store, &tenant, first.id, artifact("count", "two")).await.unwrap();
    assert_eq!(source(RevisionSelector::Published).await.as_deref(), Some("one"));
    assert_eq!(source(RevisionSelector::Newest).await.as_deref(), Some("two"));
    let names = store.artifacts().names(None).await.unwrap().unwrap().names;
    assert_eq!((names[0].revision, names[0].is_published, names[0].is_in_service), (2, true, true));
    store.artifacts().publish(&tenant, first.id, Some(2)).await.unwrap();
    assert_eq!(source(RevisionSelector::Published).await.as_deref(), Some("two"));
    let query = ResourceQuery { q: Some("GRÖ".to_owned()), ..ResourceQuery::default() };
    assert_eq!(store.artifacts().list(&tenant, &query).await.unwrap().1, 1);
}
