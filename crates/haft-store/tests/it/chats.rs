//! Chats: branches, searches, sharing, answers of runs.

use haft_core::chat::{Chat, Message, MessageRole};
use haft_core::id::{ChatId, MessageId, RunId};
use haft_core::name::TenantId;
use haft_store::{ChatChange, ChatQuery, ChatScope, NewChat, NewMessage};
use serde_json::{Value, json};

use crate::harness::{Harness, call_id, on_both};

on_both![
    a_branch_is_read_from_the_root,
    chats_are_found_by_title_and_text,
    a_shared_chat_is_listed_for_everybody,
    the_answer_of_a_run_is_written_when_it_ends,
];

fn tenant() -> TenantId {
    TenantId::default_tenant()
}

async fn chat(harness: &Harness, owner: &str, title: &str) -> Chat {
    let new = NewChat {
        title: title.to_owned(),
        owner: owner.to_owned(),
        owner_name: owner.to_owned(),
        agent: Some("assistant".to_owned()),
    };
    harness.store.chats().create(&tenant(), new).await.unwrap()
}

async fn say(harness: &Harness, chat: ChatId, parent_id: Option<MessageId>, content: Value) -> Message {
    let new = NewMessage { parent_id, role: MessageRole::User, content, run_id: None };
    harness.store.chats().add_message(&tenant(), chat, new).await.unwrap().unwrap()
}

fn query(scope: ChatScope, q: &str) -> ChatQuery {
    ChatQuery { scope, q: Some(q.to_owned()), before: None, limit: 100 }
}

async fn titles(harness: &Harness, query: ChatQuery) -> Vec<String> {
    let found = harness.store.chats().list(&tenant(), &query).await.unwrap();
    found.into_iter().map(|chat| chat.title).collect()
}

async fn a_branch_is_read_from_the_root(harness: Harness) {
    let id = chat(&harness, "ann", "x").await.id;
    let root = say(&harness, id, None, json!("root")).await;
    let left = say(&harness, id, Some(root.id), json!("left")).await;
    let right = say(&harness, id, Some(root.id), json!("right")).await;
    let leaf = say(&harness, id, Some(right.id), json!("leaf")).await;
    let branch = async |leaf| harness.store.chats().branch(&tenant(), id, leaf).await.unwrap();
    assert_eq!(branch(leaf.id).await, [root.clone(), right, leaf.clone()]);
    assert_eq!(branch(left.id).await, [root.clone(), left]);
    assert_eq!(branch(root.id).await, [root]);
    let other = chat(&harness, "ann", "y").await.id;
    assert_eq!(harness.store.chats().branch(&tenant(), other, leaf.id).await.unwrap(), []);
    let acme = TenantId::new("acme").unwrap();
    assert_eq!(harness.store.chats().branch(&acme, id, leaf.id).await.unwrap(), []);
}

async fn chats_are_found_by_title_and_text(harness: Harness) {
    let report = chat(&harness, "ann", "Quarterly Übersicht 100%").await.id;
    let other = chat(&harness, "ann", "Other").await.id;
    say(
        &harness,
        other,
        None,
        json!([{"type": "text", "text": "The WEATHER\nin Zürich"}, {"type": "image"}]),
    )
    .await;
    say(&harness, report, None, json!("say \"hello\" \u{0}")).await;
    chat(&harness, "bob", "Übersicht of Bob").await;
    let own = || ChatScope::Owner("ann".to_owned());
    for (q, expected) in [
        ("übersicht", &["Quarterly Übersicht 100%"][..]),
        ("0%", &["Quarterly Übersicht 100%"]),
        ("weather", &["Other"]),
        ("ZÜRICH", &["Other"]),
        ("\"hello\"", &["Quarterly Übersicht 100%"]),
        // A name of a field, not a text.
        ("image", &[]),
        ("_", &[]),
        ("", &["Other", "Quarterly Übersicht 100%"]),
    ] {
        assert_eq!(titles(&harness, query(own(), q)).await, expected, "{q}");
    }
    let all = titles(&harness, query(ChatScope::All, "übersicht")).await;
    assert_eq!(all, ["Übersicht of Bob", "Quarterly Übersicht 100%"]);
    let renamed = ChatChange { title: Some("Annual".to_owned()), ..ChatChange::default() };
    harness.store.chats().change(&tenant(), report, renamed).await.unwrap();
    assert_eq!(titles(&harness, query(own(), "quarterly")).await, Vec::<String>::new());
    assert_eq!(titles(&harness, query(own(), "annual")).await, ["Annual"]);
    let before = ChatQuery { before: Some(other), ..query(own(), "") };
    assert_eq!(titles(&harness, before).await, ["Annual"]);
}

async fn a_shared_chat_is_listed_for_everybody(harness: Harness) {
    let id = chat(&harness, "ann", "Mine").await.id;
    chat(&harness, "ann", "Private").await;
    let shared = || query(ChatScope::Shared, "");
    assert_eq!(titles(&harness, shared()).await, Vec::<String>::new());
    let share = |shared| ChatChange { shared: Some(shared), ..ChatChange::default() };
    let changed = harness.store.chats().change(&tenant(), id, share(true)).await.unwrap().unwrap();
    assert!(changed.shared);
    assert_eq!(titles(&harness, shared()).await, ["Mine"]);
    let acme = TenantId::new("acme").unwrap();
    assert_eq!(harness.store.chats().list(&acme, &shared()).await.unwrap(), []);
    let agent = ChatChange { agent: Some("reviewer".to_owned()), ..ChatChange::default() };
    let changed = harness.store.chats().change(&tenant(), id, agent).await.unwrap().unwrap();
    assert_eq!((changed.shared, changed.agent.as_deref()), (true, Some("reviewer")));
    harness.store.chats().change(&tenant(), id, share(false)).await.unwrap();
    assert_eq!(titles(&harness, shared()).await, Vec::<String>::new());
}

async fn the_answer_of_a_run_is_written_when_it_ends(mut harness: Harness) {
    let id = chat(&harness, "ann", "x").await.id;
    let question = say(&harness, id, None, json!("why?")).await;
    let run_id = RunId(call_id(&harness.clock).0);
    let new = NewMessage {
        parent_id: Some(question.id),
        role: MessageRole::Assistant,
        content: json!([]),
        run_id: Some(run_id),
    };
    let answer = harness.store.chats().add_message(&tenant(), id, new).await.unwrap().unwrap();
    assert_eq!(answer.run_id, Some(run_id));
    let content = json!([{"type": "text", "text": "because"}]);
    let written =
        harness.store.chats().set_message_content(&tenant(), id, answer.id, content.clone()).await.unwrap();
    assert!(written);
    harness.restart().await;
    let stored = harness.store.chats().message(&tenant(), id, answer.id).await.unwrap();
    assert_eq!(stored, Some(Message { content: content.clone(), ..answer.clone() }));
    assert_eq!(titles(&harness, query(ChatScope::All, "BECAUSE")).await, ["x"]);
    let other = chat(&harness, "ann", "y").await.id;
    let foreign =
        harness.store.chats().set_message_content(&tenant(), other, answer.id, content).await.unwrap();
    assert!(!foreign);
}
