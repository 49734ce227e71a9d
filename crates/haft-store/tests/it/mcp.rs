//! MCP servers, and what becomes of their lists.

use haft_core::catalog::{Backup, StoreError};
use haft_core::mcp::{ListedTool, McpServer, Stdio, Transport};
use haft_core::name::{BundleSlug, TenantId};
use haft_core::spec::Policy;
use haft_core::tool::Source;
use haft_definition::mcp_import::{McpImport, import};
use serde_json::json;

use crate::harness::{Harness, eventually, new_tool, on_both, spec, text};

on_both![
    a_server_and_its_tools_outlive_a_restart,
    what_changes_is_set_aside_until_someone_agrees,
    what_is_accepted_beforehand_is_taken_over,
    what_a_server_brings_is_not_the_users_to_change,
    a_server_that_always_changes_is_not_followed_for_ever,
    who_may_call_is_ours_to_say,
];

fn server(id: &str) -> McpServer {
    let transport = Transport::Stdio(Stdio { command: "x".into(), ..Stdio::default() });
    McpServer::new(BundleSlug::new(id).unwrap(), TenantId::default_tenant(), transport)
}

fn listed(name: &str, description: &str) -> ListedTool {
    ListedTool {
        name: name.into(),
        description: description.into(),
        input_schema: json!({"type": "object"}),
        ..ListedTool::default()
    }
}

async fn lists(harness: &Harness, server: &McpServer, tools: &[ListedTool]) {
    let McpImport { tools, refused } = import(server, tools);
    assert_eq!(refused, []);
    harness.store.set_mcp_tools(server.clone(), tools).await.unwrap();
}

async fn a_server_and_its_tools_outlive_a_restart(mut harness: Harness) {
    let files = server("files");
    harness.store.put_mcp_server(files.clone()).await.unwrap();
    lists(&harness, &files, &[listed("read", "Reads"), listed("write", "Writes")]).await;
    let files = McpServer { enabled: false, ..files };
    harness.store.put_mcp_server(files.clone()).await.unwrap();
    harness.restart().await;
    assert_eq!(harness.store.mcp_servers().await.unwrap(), std::slice::from_ref(&files));
    let mirror = harness.mirror();
    let tool = mirror.named("read").unwrap();
    assert_eq!((tool.source, tool.qualified()), (Source::Mcp, "files:read@1.0.0".to_owned()));
    assert_eq!((tool.fault.as_deref(), tool.published.is_some()), (None, true));
    harness.store.delete_mcp_server(files.tenant.clone(), files.id.clone()).await.unwrap();
    assert_eq!(harness.store.mcp_servers().await.unwrap(), []);
    assert_eq!(harness.mirror().named("read"), None);
    let again = harness.store.delete_mcp_server(files.tenant, files.id).await;
    assert!(matches!(again, Err(StoreError::NotFound { .. })), "{again:?}");
}

async fn what_changes_is_set_aside_until_someone_agrees(harness: Harness) {
    let files = server("files");
    harness.store.put_mcp_server(files.clone()).await.unwrap();
    lists(&harness, &files, &[listed("read", "Reads"), listed("write", "Writes")]).await;
    lists(&harness, &files, &[listed("read", "Sends everything home")]).await;
    let mirror = harness.mirror();
    let (read, write) = (mirror.named("read").unwrap(), mirror.named("write").unwrap());
    assert!(read.fault.as_deref().unwrap().contains("changed"), "{read:?}");
    assert!(write.fault.as_deref().unwrap().contains("does not list"), "{write:?}");
    assert_eq!(read.spec.description, "Reads");
    let changed = harness.store.changed_mcp_tools(&files.tenant, &files.id).await.unwrap();
    assert_eq!(changed.len(), 1);
    assert_eq!(changed[0].offered.description, "Sends everything home");
    // Taken back by the server, it is what was agreed to.
    lists(&harness, &files, &[listed("read", "Reads"), listed("write", "Writes")]).await;
    assert_eq!(harness.mirror().named("read").unwrap().fault, None);
    assert_eq!(harness.mirror().named("write").unwrap().fault, None);
    assert_eq!(harness.store.changed_mcp_tools(&files.tenant, &files.id).await.unwrap(), []);
    let nothing = harness.store.accept_mcp_tool(read.id).await;
    assert!(matches!(nothing, Err(StoreError::Conflict(_))), "{nothing:?}");
    // Agreed to, it is the newest revision.
    lists(&harness, &files, &[listed("read", "Reads faster"), listed("write", "Writes")]).await;
    let accepted = harness.store.accept_mcp_tool(read.id).await.unwrap();
    assert_eq!((accepted.revision, accepted.fault), (2, None));
    assert_eq!(accepted.spec.description, "Reads faster");
    assert_eq!(accepted.published.unwrap().0, 2);
    lists(&harness, &files, &[listed("read", "Reads faster"), listed("write", "Writes")]).await;
    assert_eq!(harness.mirror().named("read").unwrap().revision, 2);
}

async fn what_is_accepted_beforehand_is_taken_over(harness: Harness) {
    let files = McpServer { accept_changes: true, ..server("files") };
    harness.store.put_mcp_server(files.clone()).await.unwrap();
    lists(&harness, &files, &[listed("read", "Reads")]).await;
    lists(&harness, &files, &[listed("read", "Reads more")]).await;
    let tool = harness.mirror().named("read").cloned().unwrap();
    assert_eq!((tool.fault, tool.spec.description.as_str()), (None, "Reads more"));
}

async fn a_server_that_always_changes_is_not_followed_for_ever(harness: Harness) {
    let files = McpServer { accept_changes: true, ..server("files") };
    harness.store.put_mcp_server(files.clone()).await.unwrap();
    for number in 0..50 {
        lists(&harness, &files, &[listed("read", &format!("Reads {number}"))]).await;
    }
    let tool = harness.mirror().named("read").cloned().unwrap();
    assert_eq!((tool.revision, tool.spec.description.as_str()), (11, "Reads 10"));
    assert!(tool.fault.as_deref().unwrap().contains("too often"), "{tool:?}");
    let accepted = harness.store.accept_mcp_tool(tool.id).await.unwrap();
    assert_eq!((accepted.fault.as_deref(), accepted.spec.description.as_str()), (None, "Reads 49"));
    // An hour later it is followed again.
    harness.clock.advance(2);
    lists(&harness, &files, &[listed("read", "Reads calmly")]).await;
    let tool = harness.mirror().named("read").cloned().unwrap();
    assert_eq!((tool.fault, tool.spec.description.as_str()), (None, "Reads calmly"));
}

async fn who_may_call_is_ours_to_say(harness: Harness) {
    let files = server("files");
    harness.store.put_mcp_server(files.clone()).await.unwrap();
    lists(&harness, &files, &[listed("read", "Reads")]).await;
    let before = files.clone();
    let files = McpServer { policy: Policy::Elevated, ..files };
    harness.store.put_mcp_server(files.clone()).await.unwrap();
    let check = |harness: &Harness| {
        let tool = harness.mirror().named("read").cloned().unwrap();
        assert_eq!((tool.spec.policy, tool.fault.as_deref(), tool.revision), (Policy::Elevated, None, 2));
    };
    check(&harness);
    // Nor does a list that was asked for before bring the earlier one back.
    for server in [&files, &before] {
        lists(&harness, server, &[listed("read", "Reads")]).await;
        check(&harness);
    }
    // What was agreed to is still that.
    lists(&harness, &files, &[listed("read", "Sends everything home")]).await;
    assert!(harness.mirror().named("read").unwrap().fault.is_some());
}

#[tokio::test]
async fn a_folder_cannot_put_anything_into_the_bundle_of_a_server() {
    let harness = Harness::sqlite().await;
    let _watching = harness.store.watch();
    let files = server("files");
    harness.store.put_mcp_server(files.clone()).await.unwrap();
    harness.write("skills/files/read.json", &text("read", "not the server's"));
    let path = "skills/files/read.json";
    eventually(path, || harness.mirror().unreadable.contains_key(path)).await;
    let error = harness.mirror().unreadable[path].error.clone();
    assert!(error.contains("is an MCP server"), "{error}");
    // Neither does its end take the bundle along.
    std::fs::remove_dir_all(harness.path("skills/files")).unwrap();
    eventually("the file is gone", || harness.mirror().unreadable.is_empty()).await;
    lists(&harness, &files, &[listed("read", "Reads")]).await;
    assert_eq!(harness.mirror().named("read").unwrap().source, Source::Mcp);
}

async fn what_a_server_brings_is_not_the_users_to_change(harness: Harness) {
    let files = server("files");
    harness.store.put_mcp_server(files.clone()).await.unwrap();
    lists(&harness, &files, &[listed("read", "Reads")]).await;
    let id = harness.mirror().named("read").unwrap().id;
    let deleted = harness.store.delete_tool(id, Backup::Keep).await;
    assert!(matches!(deleted, Err(StoreError::ReadOnly(_))), "{deleted:?}");
    assert!(!harness.store.enable_tool(id, false).await.unwrap().enabled);
    lists(&harness, &files, &[listed("read", "Reads")]).await;
    assert!(!harness.mirror().named("read").unwrap().enabled, "a switch outlives a list");
    harness.store.create_tool(new_tool("web", spec("look-up", "Looks up"))).await.unwrap();
    let taken = harness.store.put_mcp_server(server("web")).await;
    assert!(matches!(taken, Err(StoreError::Conflict(_))), "{taken:?}");
}
