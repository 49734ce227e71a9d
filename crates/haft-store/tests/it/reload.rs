//! The watcher loads changes on disk, and invalid files do no harm.

use std::fs;

use haft_core::bundle::Bundle;
use haft_core::catalog::{Backup, PutBundle, StoreError, Transition};
use haft_core::tool::{Status, Tool};
use haft_store::WatchTasks;

use crate::harness::{Harness, Mirror, eventually, spec, text};

async fn watched() -> (Harness, WatchTasks) {
    let harness = Harness::sqlite().await;
    let watching = harness.store.watch();
    (harness, watching)
}

async fn until(harness: &Harness, what: &str, check: impl Fn(&Mirror) -> bool) -> Mirror {
    eventually(what, || check(&harness.mirror())).await;
    harness.mirror()
}

async fn tool(harness: &Harness, name: &str, check: impl Fn(&Tool) -> bool) -> Tool {
    let what = format!("the tool {name}");
    let mirror = until(harness, &what, |mirror| mirror.named(name).is_some_and(&check)).await;
    mirror.named(name).unwrap().clone()
}

async fn unreadable(harness: &Harness, path: &str) -> String {
    let mirror = until(harness, path, |mirror| mirror.unreadable.contains_key(path)).await;
    mirror.unreadable[path].error.clone()
}

#[tokio::test]
async fn files_are_created_edited_renamed_and_deleted() {
    let (harness, _watching) = watched().await;
    harness.write("skills/web/a.json", &text("weather", "one"));
    let one = tool(&harness, "weather", |_| true).await;
    assert_eq!(
        (one.status, one.revision, one.path.as_deref()),
        (Status::Draft, 1, Some("skills/web/a.json"))
    );
    harness.write("skills/web/a.json", &text("weather", "two"));
    let two = tool(&harness, "weather", |tool| tool.revision == 2).await;
    assert_eq!((two.id, two.spec.description.as_str()), (one.id, "two"));
    fs::rename(harness.path("skills/web/a.json"), harness.path("skills/web/b.json")).unwrap();
    let moved = tool(&harness, "weather", |tool| tool.path.as_deref() == Some("skills/web/b.json")).await;
    assert_eq!((moved.id, moved.revision), (one.id, 2));
    fs::remove_file(harness.path("skills/web/b.json")).unwrap();
    until(&harness, "the tool is gone", |mirror| mirror.tools.is_empty()).await;
    let backups: Vec<String> = fs::read_dir(harness.path("tool-history"))
        .unwrap()
        .map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap())
        .collect();
    assert_eq!(backups.len(), 1);
    assert!(backups[0].contains("two"));
    harness.assert_consistent().await;
}

#[tokio::test]
async fn a_published_revision_stays_when_the_file_changes() {
    let (harness, _watching) = watched().await;
    harness.write("skills/web/a.json", &text("weather", "one"));
    let one = tool(&harness, "weather", |_| true).await;
    harness.store.catalog().transition(one.id, Transition::Publish).await.unwrap();
    harness.write("skills/web/a.json", &text("weather", "two"));
    let two = tool(&harness, "weather", |tool| tool.revision == 2).await;
    let (number, published) = two.published.unwrap();
    assert_eq!((number, published.description.as_str(), two.status), (1, "one", Status::Published));
}

#[tokio::test]
async fn a_file_that_no_longer_parses_keeps_its_last_good_revision() {
    let (harness, _watching) = watched().await;
    harness.write("skills/web/a.json", &text("weather", "one"));
    let one = tool(&harness, "weather", |_| true).await;
    harness.write("skills/web/a.json", "{\n  \"name\": \"weather\",\n  oops");
    let broken = tool(&harness, "weather", |tool| tool.fault.is_some()).await;
    let fault = broken.fault.clone().unwrap();
    assert!(fault.starts_with("skills/web/a.json: line 3"), "{fault}");
    assert_eq!(broken, Tool { fault: Some(fault), ..one.clone() });
    let refused = harness.store.catalog().transition(one.id, Transition::Publish).await;
    assert!(matches!(refused, Err(StoreError::Conflict(_))));
    harness.assert_consistent().await;
    harness.write("skills/web/a.json", &text("weather", "one"));
    assert_eq!(tool(&harness, "weather", |tool| tool.fault.is_none()).await, one);
    // The API may repair it too.
    harness.write("skills/web/a.json", "{");
    tool(&harness, "weather", |tool| tool.fault.is_some()).await;
    let repaired = harness.store.catalog().update_tool(one.id, spec("weather", "one").into()).await.unwrap();
    assert_eq!(repaired, one);
    harness.assert_consistent().await;
}

#[tokio::test]
async fn a_partial_file_is_reported_and_loaded_when_it_is_complete() {
    let (harness, _watching) = watched().await;
    let whole = text("weather", "one");
    harness.write("skills/web/a.json", &whole[..whole.len() / 2]);
    let error = unreadable(&harness, "skills/web/a.json").await;
    assert!(error.contains("line "), "{error}");
    assert_eq!(harness.mirror().unreadable["skills/web/a.json"].name, "a");
    harness.write("skills/web/a.json", &whole);
    tool(&harness, "weather", |_| true).await;
    assert!(harness.mirror().unreadable.is_empty());
    harness.assert_consistent().await;
}

#[tokio::test]
async fn files_that_are_not_regular_are_reported() {
    let (harness, _watching) = watched().await;
    harness.write("skills/web/good.json", &text("good", "one"));
    fs::create_dir(harness.path("skills/web/folder.skill")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", harness.path("skills/web/link.yaml")).unwrap();
    std::os::unix::fs::symlink("/nonexistent", harness.path("skills/web/dangling.yaml")).unwrap();
    fs::write(harness.path("skills/web/bytes.json"), [0xff, 0xfe]).unwrap();
    fs::File::create(harness.path("skills/web/large.json")).unwrap().set_len(2 << 20).unwrap();
    fs::create_dir(harness.path("skills/a b")).unwrap();
    for junk in [".good.json.swp", "4913", "good.json~", "#good.json#", "good.tmp", "README.md", ".git"] {
        fs::write(harness.path("skills/web").join(junk), "junk").unwrap();
    }
    for (path, expected) in [
        ("skills/web/folder.skill", "a folder"),
        ("skills/web/link.yaml", "symbolic links are not followed"),
        ("skills/web/dangling.yaml", "symbolic links are not followed"),
        ("skills/web/bytes.json", "not valid UTF-8"),
        ("skills/web/large.json", "exceeds the limit"),
        ("skills/a b", "rename the folder"),
    ] {
        let error = unreadable(&harness, path).await;
        assert!(error.starts_with(path) && error.contains(expected), "{error}");
    }
    tool(&harness, "good", |_| true).await;
    assert_eq!((harness.mirror().tools.len(), harness.mirror().unreadable.len()), (1, 6));
    harness.assert_consistent().await;
    for (path, folder) in
        [("skills/web/folder.skill", true), ("skills/web/link.yaml", false), ("skills/a b", true)]
    {
        let path = harness.path(path);
        if folder { fs::remove_dir(path).unwrap() } else { fs::remove_file(path).unwrap() }
    }
    until(&harness, "they are gone", |mirror| mirror.unreadable.len() == 3).await;
    harness.assert_consistent().await;
}

#[tokio::test]
async fn a_file_without_read_permission_is_reported() {
    use std::os::unix::fs::PermissionsExt as _;
    let (harness, _watching) = watched().await;
    harness.write("skills/web/a.json", &text("weather", "one"));
    tool(&harness, "weather", |_| true).await;
    fs::set_permissions(harness.path("skills/web/a.json"), fs::Permissions::from_mode(0o000)).unwrap();
    if fs::File::open(harness.path("skills/web/a.json")).is_ok() {
        // Root may read everything.
        assert_eq!(tool(&harness, "weather", |_| true).await.fault, None);
        return;
    }
    let broken = tool(&harness, "weather", |tool| tool.fault.is_some()).await;
    assert!(broken.fault.unwrap().contains("cannot read the file"));
    fs::set_permissions(harness.path("skills/web/a.json"), fs::Permissions::from_mode(0o600)).unwrap();
    tool(&harness, "weather", |tool| tool.fault.is_none()).await;
}

#[tokio::test]
async fn of_two_files_of_one_tool_the_first_wins() {
    let (harness, _watching) = watched().await;
    harness.write("skills/web/a.json", &text("weather", "first"));
    let first = tool(&harness, "weather", |_| true).await;
    harness.write("skills/web/b.json", &text("weather", "second"));
    let error = unreadable(&harness, "skills/web/b.json").await;
    assert!(error.contains("`web:weather@1.0.0` is already defined by `skills/web/a.json`"), "{error}");
    fs::remove_file(harness.path("skills/web/a.json")).unwrap();
    let second = tool(&harness, "weather", |tool| tool.path.as_deref() == Some("skills/web/b.json")).await;
    assert_eq!((second.id, second.spec.description.as_str()), (first.id, "second"));
    assert!(harness.mirror().unreadable.is_empty());
    harness.assert_consistent().await;
}

#[tokio::test]
async fn two_files_can_swap_names() {
    let (harness, _watching) = watched().await;
    harness.write("skills/web/a.json", &text("alpha", "x"));
    harness.write("skills/web/b.json", &text("beta", "x"));
    let alpha = tool(&harness, "alpha", |_| true).await;
    let beta = tool(&harness, "beta", |_| true).await;
    let path = |file: &str| harness.path("skills/web").join(file);
    fs::rename(path("a.json"), path("c.txt")).unwrap();
    fs::rename(path("b.json"), path("a.json")).unwrap();
    fs::rename(path("c.txt"), path("b.json")).unwrap();
    let moved = tool(&harness, "alpha", |tool| tool.path.as_deref() == Some("skills/web/b.json")).await;
    let other = tool(&harness, "beta", |tool| tool.path.as_deref() == Some("skills/web/a.json")).await;
    assert_eq!((moved.revision, other.revision), (1, 1));
    assert_eq!((moved.id, other.id), (alpha.id, beta.id));
    harness.assert_consistent().await;
}

#[tokio::test]
async fn a_changed_version_keeps_the_tool_and_a_changed_name_does_not() {
    let (harness, _watching) = watched().await;
    harness.write("skills/web/a.json", &text("weather", "one"));
    let one = tool(&harness, "weather", |_| true).await;
    harness.write("skills/web/a.json", &text("weather", "one").replace("1.0.0", "1.1.0"));
    let two = tool(&harness, "weather", |tool| tool.spec.version.as_str() == "1.1.0").await;
    assert_eq!((two.id, two.revision), (one.id, 2));
    harness.write("skills/web/a.json", &text("climate", "one"));
    let other = tool(&harness, "climate", |_| true).await;
    assert_ne!(other.id, one.id);
    until(&harness, "the old one is gone", |mirror| mirror.named("weather").is_none()).await;
    harness.assert_consistent().await;
}

#[tokio::test]
async fn enabled_in_the_file_applies_when_it_changes_and_comments_stay() {
    let (harness, _watching) = watched().await;
    let with = |enabled: &str, description: &str| {
        format!(
            "# mine\nname: weather\ndescription: {description}\n{enabled}implementation:\n  type: http\n  \
             method: GET\n  url: https://example.com/\n"
        )
    };
    harness.write("skills/web/a.yaml", &with("enabled: false\n", "one"));
    let off = tool(&harness, "weather", |_| true).await;
    assert!(!off.enabled);
    harness.store.catalog().enable_tool(off.id, true).await.unwrap();
    harness.store.catalog().transition(off.id, Transition::Publish).await.unwrap();
    let kept = fs::read_to_string(harness.path("skills/web/a.yaml")).unwrap();
    assert_eq!(kept, with("enabled: false\n", "one"));
    // The same value again changes nothing.
    harness.write("skills/web/a.yaml", &with("enabled: false\n", "two"));
    assert!(tool(&harness, "weather", |tool| tool.revision == 2).await.enabled);
    harness.write("skills/web/a.yaml", &with("enabled: true\n", "three"));
    assert!(tool(&harness, "weather", |tool| tool.revision == 3).await.enabled);
    harness.write("skills/web/a.yaml", &with("enabled: false\n", "four"));
    assert!(!tool(&harness, "weather", |tool| tool.revision == 4).await.enabled);
    harness.assert_consistent().await;
}

#[tokio::test]
async fn own_writes_create_no_second_revision() {
    let (harness, _watching) = watched().await;
    let made = harness.create(spec("weather", "one")).await.unwrap();
    harness.store.catalog().update_tool(made.id, spec("weather", "two").into()).await.unwrap();
    // A later file shows that the watcher has scanned the folder since.
    harness.write("skills/web/later.json", &text("later", "x"));
    tool(&harness, "later", |_| true).await;
    let revisions = harness.store.catalog().revisions(made.id).await.unwrap();
    assert_eq!(revisions.len(), 2);
    assert_eq!(harness.mirror().named("weather").unwrap().revision, 2);
}

#[tokio::test]
async fn bundles_follow_their_folders() {
    let (harness, _watching) = watched().await;
    harness.write("skills/web/bundle.yaml", "display_name: The web # ours\nenabled: false\nextra: 1\n");
    let is_web = |bundle: &&Bundle| bundle.slug.as_str() == "web" && bundle.soft_deleted_at.is_none();
    let bundle = |mirror: &Mirror| mirror.bundles.values().find(is_web).cloned();
    let mirror = until(&harness, "the bundle", |m| bundle(m).is_some_and(|b| !b.enabled)).await;
    let made = bundle(&mirror).unwrap();
    assert_eq!(made.display_name, "The web");
    harness.store.catalog().enable_bundle(made.id, true).await.unwrap();
    let kept = fs::read_to_string(harness.path("skills/web/bundle.yaml")).unwrap();
    assert!(kept.contains("extra: 1") && kept.contains("enabled: true"), "{kept}");
    harness.write("skills/web/bundle.yaml", "display_name: [");
    harness.write("skills/web/a.json", &text("weather", "one"));
    tool(&harness, "weather", |_| true).await;
    assert_eq!(bundle(&harness.mirror()).unwrap().id, made.id);
    harness.write("skills/top.json", &text("top", "one"));
    assert_eq!(tool(&harness, "top", |_| true).await.bundle.as_str(), "user-created");
    fs::remove_dir_all(harness.path("skills/web")).unwrap();
    until(&harness, "the bundle is gone", |m| bundle(m).is_none() && m.named("weather").is_none()).await;
    harness.assert_consistent().await;
}

#[tokio::test]
async fn changes_of_another_process_are_detected() {
    let (harness, _watching) = watched().await;
    let (other, _) = harness.another().await;
    let made =
        other.catalog().create_tool(crate::harness::new_tool("web", spec("weather", "one"))).await.unwrap();
    assert_eq!(tool(&harness, "weather", |_| true).await, made);
    // Changes that are only in the database are detected too.
    let off = other.catalog().enable_tool(made.id, false).await.unwrap();
    assert_eq!(tool(&harness, "weather", |tool| !tool.enabled).await, off);
    other.close().await;
}

#[tokio::test]
async fn a_replaced_definition_folder_is_watched() {
    let (harness, _watching) = watched().await;
    harness.write("skills/web/a.json", &text("first", "one"));
    tool(&harness, "first", |_| true).await;
    fs::remove_dir_all(harness.path("skills")).unwrap();
    until(&harness, "everything is gone", |mirror| mirror.tools.is_empty()).await;
    harness.write("skills/web/b.json", &text("second", "one"));
    tool(&harness, "second", |_| true).await;
    // The folder is replaced by a rename.
    harness.write("other/web/c.json", &text("third", "one"));
    fs::rename(harness.path("skills"), harness.path("away")).unwrap();
    fs::rename(harness.path("other"), harness.path("skills")).unwrap();
    tool(&harness, "third", |_| true).await;
    harness.write("skills/web/c.json", &text("third", "two"));
    tool(&harness, "third", |tool| tool.spec.description == "two").await;
    harness.assert_consistent().await;
}

#[tokio::test]
async fn a_bundle_stays_deleted_when_its_file_becomes_invalid() {
    let mut harness = Harness::sqlite().await;
    let tool = harness.create(spec("weather", "one")).await.unwrap();
    harness.store.catalog().delete_tool(tool.id, Backup::Discard).await.unwrap();
    harness.store.catalog().delete_bundle(tool.bundle_id).await.unwrap();
    let before = harness.mirror();
    harness.write("skills/web/bundle.yaml", "owner: [\n");
    harness.restart().await;
    assert_eq!(harness.mirror().bundles, before.bundles);
    // Creating it again fails until the file is fixed.
    let put = PutBundle {
        tenant: tool.tenant.clone(),
        slug: tool.bundle.clone(),
        id: None,
        display_name: "Web".into(),
        description: "alive".into(),
        enabled: true,
    };
    assert!(matches!(harness.store.catalog().put_bundle(put.clone()).await, Err(StoreError::Conflict(_))));
    assert_eq!(fs::read_to_string(harness.path("skills/web/bundle.yaml")).unwrap(), "owner: [\n");
    harness.write("skills/web/bundle.yaml", "owner: []\n");
    harness.store.catalog().put_bundle(put).await.unwrap();
    harness.restart().await;
    let bundle = harness.mirror().bundles[&tool.bundle_id].clone();
    assert_eq!((bundle.description.as_str(), bundle.soft_deleted_at), ("alive", None));
}

#[tokio::test]
async fn a_restored_file_restores_the_tool() {
    let (harness, _watching) = watched().await;
    harness.write("skills/web/a.json", &text("weather", "one"));
    let one = tool(&harness, "weather", |_| true).await;
    harness.store.catalog().transition(one.id, Transition::Publish).await.unwrap();
    harness.store.catalog().enable_tool(one.id, false).await.unwrap();
    // The file alone, and then its folder, as when another branch is checked out.
    for (path, away) in [("skills/web/a.json", "a.json"), ("skills/web", "web")] {
        let away = harness.path(away);
        fs::rename(harness.path(path), &away).unwrap();
        until(&harness, "the tool is gone", |mirror| mirror.tools.is_empty()).await;
        harness.assert_consistent().await;
        fs::rename(&away, harness.path(path)).unwrap();
        let back = tool(&harness, "weather", |_| true).await;
        assert_eq!((back.id, back.enabled, back.status), (one.id, false, Status::Published), "{path}");
        assert!(harness.mirror().bundles.values().any(|bundle| bundle.slug.as_str() == "web"));
        harness.assert_consistent().await;
    }
    // Changed text is a new revision of the same tool.
    fs::remove_file(harness.path("skills/web/a.json")).unwrap();
    until(&harness, "the tool is gone", |mirror| mirror.tools.is_empty()).await;
    harness.write("skills/web/b.json", &text("weather", "two"));
    let two = tool(&harness, "weather", |_| true).await;
    assert_eq!((two.id, two.revision, two.enabled), (one.id, 2, false));
    harness.assert_consistent().await;
}

#[tokio::test]
async fn a_removed_tool_does_not_block_its_name() {
    let (harness, _watching) = watched().await;
    harness.write("skills/user-created/weather.json", &text("weather", "one"));
    let one = tool(&harness, "weather", |_| true).await;
    fs::remove_file(harness.path("skills/user-created/weather.json")).unwrap();
    until(&harness, "the tool is gone", |mirror| mirror.tools.is_empty()).await;
    let new = harness.create(spec("weather", "new")).await.unwrap();
    assert_ne!(new.id, one.id);
    harness.store.catalog().delete_tool(new.id, Backup::Keep).await.unwrap();
    // After two days the tool is not restored.
    harness.write("skills/web/a.json", &text("other", "one"));
    let other = tool(&harness, "other", |_| true).await;
    fs::remove_dir_all(harness.path("skills/web")).unwrap();
    until(&harness, "the tool is gone", |mirror| mirror.tools.is_empty()).await;
    harness.clock.advance(49);
    harness.store.reap().await.unwrap();
    harness.write("skills/web/a.json", &text("other", "one"));
    assert_ne!(tool(&harness, "other", |_| true).await.id, other.id);
    harness.assert_consistent().await;
}

#[tokio::test]
async fn a_definition_in_the_folder_of_a_deleted_bundle_revives_it() {
    let (harness, _watching) = watched().await;
    harness.write("skills/web/a.json", &text("weather", "one"));
    let one = tool(&harness, "weather", |_| true).await;
    harness.store.catalog().delete_tool(one.id, Backup::Keep).await.unwrap();
    harness.store.catalog().delete_bundle(one.bundle_id).await.unwrap();
    harness.write("skills/web/b.json", &text("rain", "one"));
    let rain = tool(&harness, "rain", |_| true).await;
    let bundle = harness.mirror().bundles[&rain.bundle_id].clone();
    assert_eq!((bundle.id, bundle.soft_deleted_at), (one.bundle_id, None));
    let file = fs::read_to_string(harness.path("skills/web/bundle.yaml")).unwrap();
    assert!(!file.contains("soft_deleted_at"), "{file}");
    harness.assert_consistent().await;
}
