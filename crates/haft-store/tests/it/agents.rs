//! Agents: revisions, life cycle, conflicts.

use std::sync::Arc;

use haft_core::agent::{Agent, AgentDefinition, AgentModel};
use haft_core::catalog::StoreError;
use haft_core::id::AgentId;
use haft_core::name::{AgentSlug, TenantId};
use haft_core::runnable::Mode;
use haft_core::tool::Status;
use haft_store::{ResourceQuery, ResourceUpdate, Store};
use serde_json::json;

use crate::harness::{Harness, on_both};

on_both![
    an_agent_is_created_found_and_listed,
    each_changed_save_is_a_revision,
    a_stale_save_is_a_conflict,
    publishing_copies_the_revision,
    status_and_enabled_agree,
    of_concurrent_creations_one_succeeds,
    a_deleted_agent_frees_its_slug,
    a_deleted_tenant_leaves_no_agent,
    names_are_read_again_after_changes,
];

pub(crate) fn slug(text: &str) -> AgentSlug {
    AgentSlug::new(text).unwrap()
}

pub(crate) fn definition(name: &str) -> AgentDefinition {
    AgentDefinition::new(slug(name), AgentModel::new("scripted"))
}

pub(crate) fn with_instructions(name: &str, text: &str) -> AgentDefinition {
    AgentDefinition { instructions: text.to_owned(), ..definition(name) }
}

fn default_tenant() -> TenantId {
    TenantId::default_tenant()
}

async fn create(store: &Store, name: &str) -> Agent {
    store.agents().create(&default_tenant(), definition(name), "ann").await.unwrap()
}

async fn update(
    store: &Store,
    id: AgentId,
    definition: AgentDefinition,
    expected_revision: Option<u32>,
) -> Result<Agent, StoreError> {
    let update = ResourceUpdate { definition, expected_revision, author: "bob".to_owned() };
    store.agents().update(&default_tenant(), id, update).await
}

fn conflict(result: Result<Agent, StoreError>) -> String {
    match result {
        Err(StoreError::Conflict(text)) => text,
        other => panic!("{other:?}"),
    }
}

async fn an_agent_is_created_found_and_listed(mut harness: Harness) {
    let mut assistant = definition("assistant");
    "Ärztin 100%".clone_into(&mut assistant.name);
    "NUL \u{0} is text, too".clone_into(&mut assistant.instructions);
    assistant.variables.insert("place".to_owned(), json!({"city": "Zürich"}));
    let created = harness.store.agents().create(&default_tenant(), assistant.clone(), "ann").await.unwrap();
    assert_eq!((&*created.definition, created.revision, created.status), (&assistant, 1, Status::Draft));
    assert_eq!((created.published.as_ref(), created.enabled, created.path.as_deref()), (None, true, None));
    assert_eq!(created.created_by.as_deref(), Some("ann"));
    harness.restart().await;
    let store = &harness.store;
    assert_eq!(store.agents().get(&default_tenant(), created.id).await.unwrap(), Some(created.clone()));
    let found = store.agents().find(&default_tenant(), "assistant").await.unwrap();
    assert_eq!(found, Some(created.clone()));
    let other = TenantId::new("acme").unwrap();
    assert_eq!(store.agents().get(&other, created.id).await.unwrap(), None);
    assert_eq!(store.agents().find(&other, "assistant").await.unwrap(), None);
    assert_eq!(store.agents().list(&other, &ResourceQuery::default()).await.unwrap(), (Vec::new(), 0));
    let reviewer = create(store, "reviewer").await;
    let list = async |query: ResourceQuery| {
        let (agents, total) = store.agents().list(&default_tenant(), &query).await.unwrap();
        (agents.iter().map(|agent| agent.definition.slug.to_string()).collect::<Vec<_>>(), total)
    };
    let all = ["assistant".to_owned(), "reviewer".to_owned()];
    assert_eq!(list(ResourceQuery::default()).await, (all.to_vec(), 2));
    for (q, expected) in [("VIEW", &all[1..]), ("ärztin 100%", &all[..1]), ("_", &[]), ("", &all[..])] {
        let found = list(ResourceQuery { q: Some(q.to_owned()), ..ResourceQuery::default() }).await;
        assert_eq!(found.0, expected, "{q}");
    }
    let second = list(ResourceQuery { skip: 1, limit: 1, ..ResourceQuery::default() }).await;
    assert_eq!(second, (all[1..].to_vec(), 2));
    store.agents().publish(&default_tenant(), reviewer.id, None).await.unwrap();
    let published = list(ResourceQuery { status: Some(Status::Published), ..ResourceQuery::default() }).await;
    assert_eq!(published, (all[1..].to_vec(), 1));
}

async fn each_changed_save_is_a_revision(harness: Harness) {
    let store = &harness.store;
    let one = create(store, "assistant").await;
    let same = update(store, one.id, definition("assistant"), None).await.unwrap();
    assert_eq!(same, one, "nothing changed, not even the time");
    let two = update(store, one.id, with_instructions("helper", "Help."), Some(1)).await.unwrap();
    assert_eq!((two.revision, two.definition.slug.as_str(), two.id), (2, "helper", one.id));
    assert_eq!((two.created_by.as_deref(), two.modified_by.as_deref()), (Some("ann"), Some("bob")));
    assert!(two.modified_at > one.modified_at);
    assert_eq!(store.agents().find(&default_tenant(), "assistant").await.unwrap(), None);
    // An earlier definition is a new revision again.
    let three = update(store, one.id, definition("assistant"), Some(2)).await.unwrap();
    let revisions = store.agents().revisions(&default_tenant(), one.id).await.unwrap();
    let numbers: Vec<u32> = revisions.iter().map(|revision| revision.number).collect();
    assert_eq!((numbers.as_slice(), three.revision), (&[3, 2, 1][..], 3));
    assert_eq!(revisions[0].hash, revisions[2].hash);
    assert_ne!(revisions[0].hash, revisions[1].hash);
    let second = store.agents().revision(&default_tenant(), one.id, 2).await.unwrap();
    assert_eq!(second.as_ref(), Some(&revisions[1]));
    assert_eq!(second.unwrap().created_by, Some(Arc::from("bob")));
    assert_eq!(store.agents().revision(&default_tenant(), one.id, 4).await.unwrap(), None);
    let other = TenantId::new("acme").unwrap();
    assert_eq!(store.agents().revisions(&other, one.id).await.unwrap(), []);
}

async fn a_stale_save_is_a_conflict(harness: Harness) {
    let store = &harness.store;
    let agent = create(store, "assistant").await;
    create(store, "reviewer").await;
    update(store, agent.id, with_instructions("assistant", "two"), Some(1)).await.unwrap();
    let stale = update(store, agent.id, with_instructions("assistant", "mine"), Some(1)).await;
    assert_eq!(
        conflict(stale),
        "the agent `assistant` was changed meanwhile: its newest revision is 2, not 1"
    );
    let stale = store.agents().publish(&default_tenant(), agent.id, Some(1)).await;
    assert!(conflict(stale).contains("was changed meanwhile"));
    let taken = update(store, agent.id, definition("reviewer"), None).await;
    assert_eq!(conflict(taken), "an agent `reviewer` already exists");
    let taken = store.agents().create(&default_tenant(), definition("assistant"), "ann").await;
    assert_eq!(conflict(taken), "an agent `assistant` already exists");
    let elsewhere = TenantId::new("acme").unwrap();
    let foreign =
        ResourceUpdate { definition: definition("x"), expected_revision: None, author: String::new() };
    let foreign = store.agents().update(&elsewhere, agent.id, foreign).await;
    assert!(matches!(foreign, Err(StoreError::NotFound { .. })));
    let kept = store.agents().get(&default_tenant(), agent.id).await.unwrap().unwrap();
    assert_eq!((kept.revision, kept.definition.instructions.as_str()), (2, "two"));
}

async fn publishing_copies_the_revision(harness: Harness) {
    let (store, tenant) = (&harness.store, default_tenant());
    let agent = create(store, "assistant").await;
    assert_eq!(agent.runnable(Mode::Production), None);
    let published = store.agents().publish(&tenant, agent.id, Some(1)).await.unwrap();
    assert_eq!((published.status, published.published.as_ref().unwrap().0), (Status::Published, 1));
    assert!(published.published_at.is_some());
    let newer = update(store, agent.id, with_instructions("assistant", "two"), None).await.unwrap();
    let (number, definition) = newer.runnable(Mode::Production).unwrap();
    assert_eq!((number, definition.instructions.as_str()), (1, ""));
    let (number, definition) = newer.runnable(Mode::Debug).unwrap();
    assert_eq!((number, definition.instructions.as_str()), (2, "two"));
    let again = store.agents().set_status(&tenant, agent.id, Status::Published).await.unwrap();
    assert_eq!(again.published.unwrap().0, 2);
    let withdrawn = store.agents().set_status(&tenant, agent.id, Status::Draft).await.unwrap();
    assert_eq!((withdrawn.status, withdrawn.published, withdrawn.published_at), (Status::Draft, None, None));
}

async fn status_and_enabled_agree(harness: Harness) {
    let (store, tenant) = (&harness.store, default_tenant());
    let id = create(store, "assistant").await.id;
    store.agents().publish(&tenant, id, None).await.unwrap();
    let state = |agent: Agent| (agent.status, agent.enabled, agent.published.is_some());
    let set = async |status| state(store.agents().set_status(&tenant, id, status).await.unwrap());
    let enable = async |enabled| state(store.agents().set_enabled(&tenant, id, enabled).await.unwrap());
    assert_eq!(enable(false).await, (Status::Published, false, true));
    assert_eq!(set(Status::Deprecated).await, (Status::Deprecated, false, true));
    assert_eq!(enable(true).await, (Status::Deprecated, true, true));
    assert_eq!(set(Status::Disabled).await, (Status::Disabled, false, true));
    assert_eq!(enable(true).await, (Status::Published, true, true));
    assert_eq!(set(Status::Draft).await, (Status::Draft, true, false));
    assert_eq!(set(Status::Disabled).await, (Status::Disabled, false, false));
    assert_eq!(enable(true).await, (Status::Draft, true, false));
}

async fn of_concurrent_creations_one_succeeds(harness: Harness) {
    let (other, _) = harness.another().await;
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..10 {
        let store = Arc::clone(if number % 2 == 0 { &harness.store } else { &other });
        tasks.spawn(async move { store.agents().create(&default_tenant(), definition("one"), "ann").await });
    }
    let (won, lost): (Vec<_>, Vec<_>) = tasks.join_all().await.into_iter().partition(Result::is_ok);
    assert_eq!((won.len(), lost.len()), (1, 9));
    assert!(lost.into_iter().all(|result| conflict(result).contains("already exists")));
    // Of two who save at once with the same base, one is heard.
    let id = won.into_iter().next().unwrap().unwrap().id;
    let both = tokio::join!(
        update(&harness.store, id, with_instructions("one", "a"), Some(1)),
        update(&other, id, with_instructions("one", "b"), Some(1)),
    );
    assert_ne!(both.0.is_ok(), both.1.is_ok());
    other.close().await;
}

async fn a_deleted_agent_frees_its_slug(harness: Harness) {
    let (store, tenant) = (&harness.store, default_tenant());
    let agent = create(store, "assistant").await;
    store.agents().delete(&tenant, agent.id).await.unwrap();
    assert_eq!(store.agents().get(&tenant, agent.id).await.unwrap(), None);
    assert_eq!(store.agents().revisions(&tenant, agent.id).await.unwrap(), []);
    assert!(matches!(store.agents().delete(&tenant, agent.id).await, Err(StoreError::NotFound { .. })));
    assert_ne!(create(store, "assistant").await.id, agent.id);
}

async fn a_deleted_tenant_leaves_no_agent(harness: Harness) {
    let (store, acme) = (&harness.store, TenantId::new("acme").unwrap());
    store.tenants().create(acme.clone(), "Acme".into()).await.unwrap();
    store.agents().create(&acme, definition("assistant"), "ann").await.unwrap();
    let kept = create(store, "assistant").await;
    store.tenants().delete(acme.clone()).await.unwrap();
    assert_eq!(store.agents().list(&acme, &ResourceQuery::default()).await.unwrap().1, 0);
    assert_eq!(store.agents().get(&default_tenant(), kept.id).await.unwrap(), Some(kept));
}

async fn names_are_read_again_after_changes(harness: Harness) {
    let (store, tenant) = (&harness.store, default_tenant());
    let mut known = store.agents().names(None).await.unwrap().unwrap().counter;
    let mut changed = async || {
        let found = store.agents().names(Some(known)).await.unwrap()?;
        known = found.counter;
        let names = found.names.into_iter();
        Some(names.map(|agent| (agent.slug, agent.is_published)).collect::<Vec<_>>())
    };
    let one = |name: &str, is_published| Some(vec![(name.to_owned(), is_published)]);
    assert_eq!(changed().await, None);
    let id = create(store, "assistant").await.id;
    assert_eq!(changed().await, one("assistant", false));
    assert_eq!(changed().await, None);
    store.agents().publish(&tenant, id, None).await.unwrap();
    assert_eq!(changed().await, one("assistant", true));
    update(store, id, definition("helper"), None).await.unwrap();
    assert_eq!(changed().await, one("helper", true));
    store.agents().delete(&tenant, id).await.unwrap();
    assert_eq!(changed().await, Some(vec![]));

    let acme = TenantId::new("acme").unwrap();
    store.tenants().create(acme.clone(), "Acme".into()).await.unwrap();
    store.agents().create(&acme, definition("assistant"), "ann").await.unwrap();
    assert_eq!(changed().await, one("assistant", false));
    store.tenants().delete(acme).await.unwrap();
    assert_eq!(changed().await, Some(vec![]));
}
