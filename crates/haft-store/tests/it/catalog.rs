//! Tools: creating, updating, publishing, deleting, and conflicts.

use std::sync::Arc;

use haft_core::catalog::{Backup, NewTool, StoreError, ToolChange, Transition};
use haft_core::lifecycle::Deprecation;
use haft_core::name::{TenantId, Version};
use haft_core::tool::{Status, Tool};

use crate::harness::{Harness, new_tool, on_both, spec};

on_both![
    a_new_tool_is_announced_and_survives_a_restart,
    an_existing_tool_is_a_conflict,
    an_update_appends_a_revision_only_if_the_content_differs,
    an_update_of_content_status_and_switch_is_atomic,
    enabling_does_not_change_the_modification_time,
    production_keeps_the_published_revision,
    a_new_version_label_is_a_revision_of_the_same_tool,
    deleting_removes_the_tool_with_its_revisions,
    built_in_tools_are_read_only_and_updated_with_the_program,
    built_in_tools_of_another_program_are_preserved,
    usage_is_counted,
    tenants_do_not_share_names,
    of_concurrent_creations_of_one_tool_one_succeeds,
    unknown_ids_are_not_found,
];

fn conflict<T: std::fmt::Debug>(result: Result<T, StoreError>) -> String {
    match result {
        Err(StoreError::Conflict(text)) => text,
        other => panic!("{other:?}"),
    }
}

fn read_only<T: std::fmt::Debug>(result: Result<T, StoreError>) -> String {
    match result {
        Err(StoreError::ReadOnly(text)) => text,
        other => panic!("{other:?}"),
    }
}

async fn a_new_tool_is_announced_and_survives_a_restart(mut harness: Harness) {
    let tool = harness.create(spec("weather", "one")).await.unwrap();
    assert_eq!(
        (tool.revision, tool.status, tool.enabled, tool.published.is_none(), tool.qualified().as_str()),
        (1, Status::Draft, true, true, "web:weather@1.0.0")
    );
    assert_eq!(harness.mirror().named("weather"), Some(&tool));
    harness.restart().await;
    assert_eq!(harness.mirror().named("weather"), Some(&tool));
    harness.assert_consistent().await;
}

async fn an_existing_tool_is_a_conflict(harness: Harness) {
    let tool = harness.create(spec("weather", "one")).await.unwrap();
    let text = conflict(harness.create(spec("weather", "two")).await);
    assert_eq!(
        text,
        "`web:weather@1.0.0` already exists; change or delete that tool, or choose another name or version"
    );
    assert_eq!(harness.mirror().named("weather"), Some(&tool));
    let second = haft_core::spec::ToolSpec { version: Version::new("v2").unwrap(), ..spec("weather", "two") };
    harness.create(second).await.unwrap();
    harness.store.catalog().create_tool(new_tool("other", spec("weather", "three"))).await.unwrap();
    assert_eq!(harness.mirror().tools.len(), 3);
    harness.assert_consistent().await;
}

async fn an_update_appends_a_revision_only_if_the_content_differs(harness: Harness) {
    let one = harness.create(spec("weather", "one")).await.unwrap();
    let same = harness.store.catalog().update_tool(one.id, spec("weather", "one").into()).await.unwrap();
    assert_eq!(same, one);
    let two = harness.store.catalog().update_tool(one.id, spec("weather", "two").into()).await.unwrap();
    assert_eq!((two.id, two.revision, two.created_at), (one.id, 2, one.created_at));
    assert!(two.modified_at > one.modified_at);
    // Restoring is an update with old content.
    let back = harness.store.catalog().update_tool(one.id, spec("weather", "one").into()).await.unwrap();
    assert_eq!(back.spec, one.spec);
    let revisions = harness.store.catalog().revisions(one.id).await.unwrap();
    let numbers: Vec<(u32, &str)> =
        revisions.iter().map(|r| (r.number, r.spec.description.as_str())).collect();
    assert_eq!(numbers, [(3, "one"), (2, "two"), (1, "one")]);
    assert_eq!(revisions[0].hash, revisions[2].hash);
    assert_ne!(revisions[0].hash, revisions[1].hash);
    let renamed = harness.store.catalog().update_tool(one.id, spec("other", "one").into()).await;
    assert!(matches!(renamed, Err(StoreError::Invalid(problems)) if problems[0].field == "name"));
    harness.assert_consistent().await;
}

async fn an_update_of_content_status_and_switch_is_atomic(harness: Harness) {
    let tool = harness.create(spec("weather", "one")).await.unwrap();
    let change = |description: &str, status, enabled| ToolChange {
        status: Some(status),
        enabled: Some(enabled),
        ..spec("weather", description).into()
    };
    let before = harness.sink.announced();
    let changed =
        harness.store.catalog().update_tool(tool.id, change("two", Status::Deprecated, false)).await.unwrap();
    assert_eq!(
        (changed.revision, changed.status, changed.enabled, changed.spec.description.as_str()),
        (2, Status::Deprecated, false, "two")
    );
    assert_eq!((harness.sink.announced() - before, harness.mirror().named("weather")), (1, Some(&changed)));
    if harness.is_embedded() {
        assert_eq!(
            std::fs::read_dir(harness.path("tool-history")).unwrap().count(),
            1,
            "one file was replaced"
        );
    }
    // A rejected update changes neither the status nor the switch.
    let refused = harness.store.catalog().update_tool(
        tool.id,
        ToolChange { status: Some(Status::Draft), enabled: Some(true), ..spec("other", "three").into() },
    );
    assert!(matches!(refused.await, Err(StoreError::Invalid(_))));
    assert_eq!(harness.mirror().named("weather"), Some(&changed));
    // The same update again changes and announces nothing; the switch alone is no revision.
    let same =
        harness.store.catalog().update_tool(tool.id, change("two", Status::Deprecated, false)).await.unwrap();
    assert_eq!((same, harness.sink.announced() - before), (changed.clone(), 1));
    let on =
        harness.store.catalog().update_tool(tool.id, change("two", Status::Deprecated, true)).await.unwrap();
    assert_eq!(on, Tool { enabled: true, ..changed });
    harness.assert_consistent().await;
}

async fn enabling_does_not_change_the_modification_time(harness: Harness) {
    let tool = harness.create(spec("weather", "one")).await.unwrap();
    let off = harness.store.catalog().enable_tool(tool.id, false).await.unwrap();
    assert_eq!(off, Tool { enabled: false, ..tool.clone() });
    assert_eq!(harness.store.catalog().enable_tool(tool.id, false).await.unwrap(), off);
    assert_eq!(harness.store.catalog().enable_tool(tool.id, true).await.unwrap(), tool);
    harness.assert_consistent().await;
}

async fn production_keeps_the_published_revision(mut harness: Harness) {
    let tool = harness.create(spec("weather", "one")).await.unwrap();
    let published = harness.store.catalog().transition(tool.id, Transition::Publish).await.unwrap();
    assert_eq!(published.published, Some((1, Arc::clone(&published.spec))));
    assert_eq!((published.status, published.modified_at), (Status::Published, tool.modified_at));
    let edited = harness.store.catalog().update_tool(tool.id, spec("weather", "two").into()).await.unwrap();
    assert_eq!(edited.status, Status::Published);
    assert_eq!(edited.published.as_ref().map(|(n, spec)| (*n, spec.description.as_str())), Some((1, "one")));
    harness.restart().await;
    assert_eq!(harness.mirror().named("weather"), Some(&edited));
    let again = harness.store.catalog().transition(tool.id, Transition::Publish).await.unwrap();
    assert_eq!(again.published.as_ref().map(|(n, spec)| (*n, spec.description.as_str())), Some((2, "two")));
    assert_eq!(again.published_at, published.published_at);
    let deprecated = harness
        .store
        .catalog()
        .transition(tool.id, Transition::Deprecate(Deprecation::default()))
        .await
        .unwrap();
    assert_eq!((deprecated.status, deprecated.published.is_some()), (Status::Deprecated, true));
    let draft = harness.store.catalog().transition(tool.id, Transition::Set(Status::Draft)).await.unwrap();
    assert_eq!((draft.status, draft.published), (Status::Draft, None));
    harness.assert_consistent().await;
}

async fn a_new_version_label_is_a_revision_of_the_same_tool(harness: Harness) {
    let tool = harness.create(spec("weather", "one")).await.unwrap();
    let version = Version::new("1.1.0").unwrap();
    let relabelled =
        harness.store.catalog().transition(tool.id, Transition::Relabel(version.clone())).await.unwrap();
    assert_eq!((relabelled.id, relabelled.revision, &relabelled.spec.version), (tool.id, 2, &version));
    let other = harness.create(spec("weather", "two")).await.unwrap();
    conflict(harness.store.catalog().transition(other.id, Transition::Relabel(version)).await);
    harness.assert_consistent().await;
}

async fn deleting_removes_the_tool_with_its_revisions(harness: Harness) {
    let tool = harness.create(spec("weather", "one")).await.unwrap();
    let backup = harness.store.catalog().delete_tool(tool.id, Backup::Keep).await.unwrap();
    assert_eq!(backup.is_some(), harness.is_embedded());
    assert!(harness.mirror().tools.is_empty());
    assert!(harness.store.catalog().revisions(tool.id).await.is_err());
    let again = harness.create(spec("weather", "two")).await.unwrap();
    assert_ne!(again.id, tool.id);
    assert_eq!(harness.store.catalog().delete_tool(again.id, Backup::Discard).await.unwrap(), None);
    harness.assert_consistent().await;
}

async fn built_in_tools_are_read_only_and_updated_with_the_program(mut harness: Harness) {
    let set = |specs: Vec<haft_core::spec::ToolSpec>| harness.store.catalog().set_built_ins(specs);
    set(vec![spec("echo", "one"), spec("gone", "x")]).await.unwrap();
    let echo = harness.mirror().named("echo").cloned().unwrap();
    assert_eq!((echo.built_in, echo.status, echo.bundle.as_str()), (true, Status::Published, "builtin"));
    assert!(echo.published.is_some());
    assert!(
        echo.tenant.is_global() && harness.mirror().bundles.values().all(|bundle| bundle.tenant.is_global())
    );
    let mut of_tenant = new_tool("builtin", spec("mine", "x"));
    of_tenant.tenant = haft_core::name::TenantId::new("acme").unwrap();
    read_only(harness.store.catalog().create_tool(of_tenant).await);
    read_only(harness.store.catalog().update_tool(echo.id, spec("echo", "mine").into()).await);
    read_only(harness.store.catalog().delete_tool(echo.id, Backup::Keep).await);
    read_only(
        harness.store.catalog().transition(echo.id, Transition::Deprecate(Deprecation::default())).await,
    );
    read_only(harness.store.catalog().create_tool(new_tool("builtin", spec("mine", "x"))).await);
    harness.store.catalog().enable_tool(echo.id, false).await.unwrap();
    set(vec![spec("echo", "two")]).await.unwrap();
    let now = harness.mirror().named("echo").cloned().unwrap();
    assert_eq!(
        (now.id, now.enabled, now.revision, now.published.map(|(n, _)| n)),
        (echo.id, false, 2, Some(2))
    );
    harness.restart().await;
    harness.store.catalog().set_built_ins(vec![spec("echo", "two")]).await.unwrap();
    assert_eq!(harness.mirror().named("echo").map(|tool| tool.revision), Some(2));
}

async fn built_in_tools_of_another_program_are_preserved(harness: Harness) {
    let fault = |mirror: &crate::harness::Mirror, name: &str| mirror.named(name).unwrap().fault.clone();
    harness.store.catalog().set_built_ins(vec![spec("ours", "x")]).await.unwrap();
    let id = harness.mirror().named("ours").unwrap().id;
    harness.store.catalog().enable_tool(id, false).await.unwrap();
    let ours = harness.mirror();
    // A program without any, and one with others.
    for specs in [vec![], vec![spec("theirs", "y")]] {
        let (other, sink) = harness.another().await;
        other.catalog().set_built_ins(specs).await.unwrap();
        let reason = fault(&sink.mirror(), "ours").unwrap();
        assert!(reason.starts_with("not part of this program"), "{reason}");
        other.close().await;
        assert_eq!(harness.mirror(), ours, "other processes are not affected");
    }
    let (again, sink) = harness.another().await;
    again.catalog().set_built_ins(vec![spec("ours", "x")]).await.unwrap();
    assert_eq!(sink.mirror().named("ours"), ours.named("ours"));
    assert!(fault(&sink.mirror(), "theirs").is_some());
    again.close().await;
}

async fn usage_is_counted(mut harness: Harness) {
    let tool = harness.create(spec("weather", "one")).await.unwrap();
    let early = "2026-08-01T11:00:00Z".parse().unwrap();
    let late = "2026-08-01T12:00:00Z".parse().unwrap();
    harness.store.catalog().add_usage(vec![(tool.id, 2, late)]).await.unwrap();
    harness.store.catalog().add_usage(vec![(tool.id, 3, early)]).await.unwrap();
    harness.restart().await;
    let usage = harness.mirror().named("weather").map(|tool| tool.usage);
    assert_eq!(usage.map(|usage| (usage.call_count, usage.last_called_at)), Some((5, Some(late))));
}

async fn tenants_do_not_share_names(harness: Harness) {
    let other = TenantId::new("acme").unwrap();
    let mine = harness.create(spec("weather", "mine")).await.unwrap();
    let new = NewTool { tenant: other.clone(), ..new_tool("web", spec("weather", "theirs")) };
    let theirs = harness.store.catalog().create_tool(new).await.unwrap();
    assert_ne!(mine.bundle_id, theirs.bundle_id);
    assert_eq!((theirs.tenant.clone(), theirs.bundle.clone()), (other, mine.bundle.clone()));
    if harness.is_embedded() {
        assert_eq!(mine.path.as_deref(), Some("skills/web/weather.skill"));
        assert_eq!(theirs.path.as_deref(), Some("skills/@acme/web/weather.skill"));
    }
    harness.assert_consistent().await;
}

async fn of_concurrent_creations_of_one_tool_one_succeeds(harness: Harness) {
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..24 {
        let store = Arc::clone(&harness.store);
        tasks.spawn(async move {
            store.catalog().create_tool(new_tool("web", spec("weather", &format!("number {number}")))).await
        });
    }
    let results = tasks.join_all().await;
    let won: Vec<&Tool> = results.iter().filter_map(|result| result.as_ref().ok()).collect();
    assert_eq!(won.len(), 1);
    for result in &results {
        assert!(matches!(result, Ok(_) | Err(StoreError::Conflict(_))), "{result:?}");
    }
    assert_eq!(harness.mirror().named("weather"), Some(won[0]));
    harness.assert_consistent().await;
}

async fn unknown_ids_are_not_found(harness: Harness) {
    let id = "018faf50-b7b6-7a01-9a05-a22a6e0af101".parse().unwrap();
    let error = harness.store.catalog().enable_tool(id, true).await.unwrap_err();
    assert_eq!(error.to_string(), "tool `018faf50-b7b6-7a01-9a05-a22a6e0af101` not found");
    assert!(matches!(
        harness.store.catalog().update_tool(id, spec("a", "b").into()).await,
        Err(StoreError::NotFound { .. })
    ));
    assert!(matches!(
        harness.store.catalog().delete_tool(id, Backup::Keep).await,
        Err(StoreError::NotFound { .. })
    ));
}
