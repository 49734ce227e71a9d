//! Deleted resources are hidden, come back on request, and are removed after 48 hours.

use haft_core::catalog::StoreError;
use haft_core::limit::LimitName;
use haft_core::name::TenantId;
use haft_core::tenant::TenantLimits;
use haft_core::tool::Status;
use haft_store::{ResourceQuery, RevisionSelector, TenantChange};

use crate::agents::{definition, with_instructions};
use crate::artifacts::{artifact, update};
use crate::harness::{Harness, on_both};
use crate::pipelines::{self, upload};

on_both![
    a_restored_resource_is_as_it_was,
    a_new_resource_takes_the_slug_of_a_deleted_one,
    documents_survive_a_deletion_for_two_days,
    a_tenant_has_as_many_resources_as_its_limits_allow,
];

fn tenant() -> TenantId {
    TenantId::default_tenant()
}

fn conflict<T: std::fmt::Debug>(result: Result<T, StoreError>) -> String {
    match result {
        Err(StoreError::Conflict(message)) => message,
        other => panic!("expected a conflict, got {other:?}"),
    }
}

async fn a_restored_resource_is_as_it_was(mut harness: Harness) {
    let artifacts = harness.store.artifacts();
    let created = artifacts.create(&tenant(), artifact("count", "one"), "ann").await.unwrap();
    artifacts.publish(&tenant(), created.id, None).await.unwrap();
    let before = update(&harness.store, &tenant(), created.id, artifact("count", "two")).await.unwrap();
    artifacts.delete(&tenant(), created.id).await.unwrap();
    assert_eq!(artifacts.find(&tenant(), "count").await.unwrap(), None);
    assert_eq!(artifacts.get(&tenant(), created.id).await.unwrap(), None);
    let revision = artifacts.revision_of(&tenant(), "count", RevisionSelector::Published).await.unwrap();
    assert_eq!(revision, None);
    assert_eq!(artifacts.names(None).await.unwrap().unwrap().names, []);
    let query = ResourceQuery { deleted: true, ..ResourceQuery::default() };
    let (deleted, total) = artifacts.list(&tenant(), &query).await.unwrap();
    assert_eq!((deleted.len(), total, deleted[0].id), (1, 1, created.id));
    assert!(deleted[0].deleted_at.is_some());
    harness.restart().await;
    let artifacts = harness.store.artifacts();
    let stranger = TenantId::new("acme").unwrap();
    let foreign = artifacts.undelete(&stranger, &created.id.to_string()).await;
    assert!(matches!(foreign, Err(StoreError::NotFound { .. })), "{foreign:?}");
    harness.clock.advance(47);
    harness.store.reap().await.unwrap();
    let restored = artifacts.undelete(&tenant(), "count").await.unwrap();
    assert_eq!(restored, before);
    assert_eq!((restored.status, restored.published_revision()), (Status::Published, Some(1)));
    assert_eq!(artifacts.names(None).await.unwrap().unwrap().names.len(), 1);
    assert_eq!(conflict(artifacts.undelete(&tenant(), "count").await), "the artifact `count` is not deleted");
    let missing = artifacts.undelete(&tenant(), "other").await;
    assert!(matches!(missing, Err(StoreError::NotFound { .. })), "{missing:?}");
    artifacts.delete(&tenant(), created.id).await.unwrap();
    harness.clock.advance(49);
    assert_eq!(harness.store.artifacts().list(&tenant(), &query).await.unwrap(), (Vec::new(), 0));
    let late = artifacts.undelete(&tenant(), "count").await;
    assert!(matches!(late, Err(StoreError::NotFound { .. })), "{late:?}");
    harness.store.reap().await.unwrap();
    let created = artifacts.create(&tenant(), artifact("count", "three"), "ann").await.unwrap();
    assert_eq!(created.revision, 1);
}

async fn a_new_resource_takes_the_slug_of_a_deleted_one(harness: Harness) {
    let agents = harness.store.agents();
    let first = agents.create(&tenant(), with_instructions("helper", "one"), "ann").await.unwrap();
    agents.delete(&tenant(), first.id).await.unwrap();
    let second = agents.create(&tenant(), with_instructions("helper", "two"), "ann").await.unwrap();
    assert_ne!(first.id, second.id);
    for reference in ["helper", &first.id.to_string()] {
        assert_eq!(
            conflict(agents.undelete(&tenant(), reference).await),
            "cannot restore the agent `helper`: another agent has this slug now; change or delete that one first"
        );
    }
    // The last one that was deleted comes back by its slug, the other one by its id.
    agents.delete(&tenant(), second.id).await.unwrap();
    assert_eq!(agents.undelete(&tenant(), "helper").await.unwrap().id, second.id);
    agents.delete(&tenant(), second.id).await.unwrap();
    let restored = agents.undelete(&tenant(), &first.id.to_string()).await.unwrap();
    assert_eq!((restored.id, restored.definition.slug.as_str()), (first.id, "helper"));
    assert_eq!(agents.find(&tenant(), "helper").await.unwrap().unwrap().id, first.id);
    let listed = agents.list(&tenant(), &ResourceQuery::default()).await.unwrap();
    assert_eq!((listed.0.len(), listed.1), (1, 1));
}

async fn documents_survive_a_deletion_for_two_days(harness: Harness) {
    let store = &harness.store;
    let pipeline = pipelines::pipeline(&harness).await;
    for number in 0..45 {
        store.documents().add(&pipeline, upload(&format!("{number}.txt"), b"text")).await.unwrap();
    }
    store.pipelines().delete(&tenant(), pipeline.id).await.unwrap();
    assert_eq!(store.documents().pipeline_generation(pipeline.id).await.unwrap(), None);
    assert_eq!(store.documents().claim(10).await.unwrap().len(), 0, "nothing is read for a deleted pipeline");
    store.pipelines().undelete(&tenant(), "handbook").await.unwrap();
    let restored = store.documents().pipeline(&tenant(), "handbook").await.unwrap().unwrap();
    assert_eq!((restored.documents, restored.ingest_revision), (45, pipeline.ingest_revision));
    assert_eq!(store.documents().claim(10).await.unwrap().len(), 10);
    store.pipelines().delete(&tenant(), pipeline.id).await.unwrap();
    harness.clock.advance(49);
    store.reap().await.unwrap();
    let missing = store.pipelines().undelete(&tenant(), &pipeline.id.to_string()).await;
    assert!(matches!(missing, Err(StoreError::NotFound { .. })), "{missing:?}");
    assert_eq!(store.documents().list(&pipeline, &[], None, 100).await.unwrap(), []);
}

async fn a_tenant_has_as_many_resources_as_its_limits_allow(harness: Harness) {
    let (store, acme) = (&harness.store, TenantId::new("acme").unwrap());
    store.tenants().create(acme.clone(), "Acme".into()).await.unwrap();
    let limits = TenantLimits { max_agents: Some(2), max_artifacts: Some(1), ..TenantLimits::default() };
    let change = TenantChange { limits: Some(limits), ..TenantChange::default() };
    store.tenants().update(acme.clone(), change).await.unwrap();
    let first = store.agents().create(&acme, definition("one"), "ann").await.unwrap();
    store.agents().create(&acme, definition("two"), "ann").await.unwrap();
    match store.agents().create(&acme, definition("three"), "ann").await {
        Err(StoreError::LimitReached { limit: LimitName::Agents, value: 2, message }) => assert_eq!(
            message,
            "the tenant `acme` has 2 agents; its limit is 2 (`limits.max_agents`); delete an agent first"
        ),
        other => panic!("{other:?}"),
    }
    // A deleted resource does not count, and is restored only within the limit.
    store.agents().delete(&acme, first.id).await.unwrap();
    store.agents().create(&acme, definition("three"), "ann").await.unwrap();
    let refused = store.agents().undelete(&acme, "one").await;
    assert!(matches!(refused, Err(StoreError::LimitReached { .. })), "{refused:?}");
    store.artifacts().create(&acme, artifact("a", "x"), "ann").await.unwrap();
    let refused = store.artifacts().create(&acme, artifact("b", "x"), "ann").await;
    assert!(
        matches!(refused, Err(StoreError::LimitReached { limit: LimitName::Artifacts, .. })),
        "{refused:?}"
    );
    pipelines::create(store, &acme, "p").await.unwrap();
    let usage = store.limits().tenant_usage(&acme).await.unwrap();
    assert_eq!((usage.agents, usage.pipelines, usage.artifacts), (2, 1, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_takes_the_slug_of_a_deleted_resource() {
    let mut harness = Harness::sqlite().await;
    let deleted = harness.store.agents().create(&tenant(), definition("helper"), "ann").await.unwrap();
    harness.store.agents().delete(&tenant(), deleted.id).await.unwrap();
    harness.write("agents/helper.yaml", "model: scripted\n");
    harness.restart().await;
    let agents = harness.store.agents();
    let of_file = agents.find(&tenant(), "helper").await.unwrap().unwrap();
    assert_eq!(of_file.path.as_deref(), Some("agents/helper.yaml"));
    assert_ne!(of_file.id, deleted.id);
    assert!(
        conflict(agents.undelete(&tenant(), &deleted.id.to_string()).await).contains("has this slug now")
    );
    // A resource of a deleted file is restored only by its file.
    std::fs::remove_file(harness.path("agents/helper.yaml")).unwrap();
    harness.restart().await;
    let agents = harness.store.agents();
    assert_eq!(
        conflict(agents.undelete(&tenant(), &of_file.id.to_string()).await),
        format!(
            "the agent `{}` was defined by the file `agents/helper.yaml`; put the file back to restore it",
            of_file.id
        )
    );
    // The one that was deleted before is still there.
    assert_eq!(agents.undelete(&tenant(), &deleted.id.to_string()).await.unwrap().id, deleted.id);
}
