//! Agents that are defined by files in `agents/`.

use std::time::{Duration, Instant};

use haft_core::agent::Agent;
use haft_core::catalog::StoreError;
use haft_core::name::TenantId;
use haft_core::tool::Status;
use haft_store::{ResourceQuery, ResourceUpdate};

use crate::agents::definition;
use crate::harness::Harness;

fn tenant() -> TenantId {
    TenantId::default_tenant()
}

async fn agent(harness: &Harness, name: &str) -> Option<Agent> {
    harness.store.agents().find(&tenant(), name).await.unwrap()
}

async fn slugs(harness: &Harness) -> Vec<String> {
    let (agents, _) = harness.store.agents().list(&tenant(), &ResourceQuery::default()).await.unwrap();
    agents.iter().map(|agent| agent.definition.slug.to_string()).collect()
}

/// Waits until the agents are as expected.
async fn until(harness: &Harness, what: &str, check: impl AsyncFn(&Harness) -> bool) -> Duration {
    let start = Instant::now();
    while !check(harness).await {
        assert!(start.elapsed() < Duration::from_mins(1), "timed out: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    start.elapsed()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_are_indexed_at_the_start() {
    let mut harness = Harness::sqlite().await;
    harness.write("agents/assistant.yaml", "model: scripted\ninstructions: Help.\n");
    harness.write("agents/team.yml", "agents:\n  one: {model: scripted}\n  two: {model: scripted}\n");
    harness.write("agents/notes.txt", "no agent");
    harness.restart().await;
    assert_eq!(slugs(&harness).await, ["assistant", "one", "two"]);
    let found = agent(&harness, "assistant").await.unwrap();
    assert_eq!((found.path.as_deref(), found.revision), (Some("agents/assistant.yaml"), 1));
    assert_eq!((found.definition.instructions.as_str(), found.status), ("Help.", Status::Draft));
    let published = harness.store.agents().publish(&tenant(), found.id, None).await.unwrap();
    // A new start reads the same files and changes nothing.
    harness.restart().await;
    assert_eq!(agent(&harness, "assistant").await, Some(published.clone()));
    // The index is rebuilt from the files.
    harness.store.catalog().reindex().await.unwrap();
    assert_eq!(agent(&harness, "assistant").await, Some(published));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_is_picked_up_changed_and_removed_while_haft_runs() {
    let harness = Harness::sqlite().await;
    let watching = harness.store.watch();
    // The folder does not exist yet.
    harness.write("agents/assistant.yaml", "model: scripted\n");
    until(&harness, "the file is read", async |harness| agent(harness, "assistant").await.is_some()).await;
    let first = agent(&harness, "assistant").await.unwrap();
    harness.store.agents().publish(&tenant(), first.id, None).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    harness.write("agents/assistant.yaml", "model: scripted\ninstructions: Help.\n");
    let time = until(&harness, "the change is read", async |harness| {
        agent(harness, "assistant").await.is_some_and(|agent| agent.revision == 2)
    })
    .await;
    assert!(time < Duration::from_secs(10), "{time:?}");
    let second = agent(&harness, "assistant").await.unwrap();
    assert_eq!((second.id, second.published.as_ref().map(|(number, _)| *number)), (first.id, Some(1)));
    std::fs::remove_file(harness.path("agents/assistant.yaml")).unwrap();
    until(&harness, "the agent is removed", async |harness| agent(harness, "assistant").await.is_none())
        .await;
    // The file comes back, as from an editor that replaces it: so does the agent, with its state.
    harness.write("agents/renamed.yaml", "slug: assistant\nmodel: scripted\ninstructions: Help.\n");
    until(&harness, "the agent is back", async |harness| agent(harness, "assistant").await.is_some()).await;
    let back = agent(&harness, "assistant").await.unwrap();
    assert_eq!((back.id, back.path.as_deref()), (first.id, Some("agents/renamed.yaml")));
    assert_eq!((back.revision, back.published), (2, second.published));
    watching.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broken_file_keeps_the_last_definition() {
    let mut harness = Harness::sqlite().await;
    harness.write("agents/assistant.yaml", "model: scripted\ninstructions: Help.\n");
    harness.restart().await;
    let valid = agent(&harness, "assistant").await.unwrap();
    harness.write("agents/assistant.yaml", "model: [scripted\n");
    harness.write("agents/other.yaml", "max_iterations: none\n");
    harness.restart().await;
    let broken = agent(&harness, "assistant").await.unwrap();
    assert!(broken.error.is_some());
    assert_eq!(Agent { error: None, ..broken.clone() }, valid);
    let refused = harness.store.agents().publish(&tenant(), valid.id, None).await;
    assert!(matches!(refused, Err(StoreError::Conflict(text)) if text.starts_with("cannot publish: ")));
    let errors = harness.store.agents().file_errors(&tenant()).await.unwrap();
    let paths: Vec<&str> = errors.iter().map(|error| error.path.as_str()).collect();
    assert_eq!(paths, ["agents/assistant.yaml", "agents/other.yaml"]);
    harness.write("agents/assistant.yaml", "model: scripted\ninstructions: Help.\n");
    std::fs::remove_file(harness.path("agents/other.yaml")).unwrap();
    harness.restart().await;
    assert_eq!(agent(&harness, "assistant").await, Some(valid));
    assert_eq!(harness.store.agents().file_errors(&tenant()).await.unwrap(), []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_second_file_of_a_slug_is_reported() {
    let mut harness = Harness::sqlite().await;
    harness.write("agents/b.yaml", "slug: assistant\nmodel: scripted\n");
    harness.restart().await;
    harness.write("agents/a.yaml", "slug: assistant\nmodel: other\n");
    let stored = harness.store.agents().create(&tenant(), definition("stored"), "ann").await.unwrap();
    harness.write("agents/c.yaml", "slug: stored\nmodel: scripted\n");
    harness.restart().await;
    let winner = agent(&harness, "assistant").await.unwrap();
    assert_eq!(
        (winner.path.as_deref(), winner.definition.model.name.as_str()),
        (Some("agents/b.yaml"), "scripted")
    );
    let errors = harness.store.agents().file_errors(&tenant()).await.unwrap();
    let texts: Vec<(&str, &str)> =
        errors.iter().map(|error| (error.path.as_str(), error.error.as_str())).collect();
    assert_eq!(
        texts,
        [
            ("agents/a.yaml", "`assistant` is already defined by `agents/b.yaml`; change one of the slugs"),
            (
                "agents/c.yaml",
                "an agent `stored` is already stored without a file; delete it or change the slug"
            ),
        ]
    );
    // Each is used as soon as the other one is gone.
    std::fs::remove_file(harness.path("agents/b.yaml")).unwrap();
    harness.store.agents().delete(&tenant(), stored.id).await.unwrap();
    harness.restart().await;
    let successor = agent(&harness, "assistant").await.unwrap();
    assert_eq!((successor.id, successor.path.as_deref()), (winner.id, Some("agents/a.yaml")));
    assert_eq!(agent(&harness, "stored").await.unwrap().path.as_deref(), Some("agents/c.yaml"));
    assert_eq!(harness.store.agents().file_errors(&tenant()).await.unwrap(), []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_api_does_not_change_an_agent_of_a_file() {
    let mut harness = Harness::sqlite().await;
    harness.write("agents/assistant.yaml", "model: scripted\n");
    harness.restart().await;
    let found = agent(&harness, "assistant").await.unwrap();
    let update =
        ResourceUpdate { definition: definition("other"), expected_revision: None, author: "ann".to_owned() };
    let expected =
        "the agent `assistant` is defined by the file `agents/assistant.yaml`; edit or remove that file";
    for refused in [
        harness.store.agents().update(&tenant(), found.id, update).await.map(drop),
        harness.store.agents().delete(&tenant(), found.id).await,
    ] {
        assert!(matches!(&refused, Err(StoreError::Conflict(text)) if text == expected), "{refused:?}");
    }
    let disabled = harness.store.agents().set_enabled(&tenant(), found.id, false).await.unwrap();
    assert!(!disabled.enabled);
    // The slug of a file that was removed is free.
    std::fs::remove_file(harness.path("agents/assistant.yaml")).unwrap();
    harness.restart().await;
    let created = harness.store.agents().create(&tenant(), definition("assistant"), "ann").await.unwrap();
    assert_ne!(created.id, found.id);
}
