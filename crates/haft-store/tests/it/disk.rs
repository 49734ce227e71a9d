//! What the store writes to disk, and what it makes of what it finds there.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use haft_core::catalog::{Backup, FileForm, NewTool, StoreError, Transition};
use haft_core::name::Version;
use haft_core::spec::ToolSpec;

use crate::harness::{Harness, new_tool, spec, text};

fn listing(harness: &Harness, folder: &str) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(harness.path(folder))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[tokio::test]
async fn files_are_named_after_the_tool() {
    let harness = Harness::sqlite().await;
    let version =
        |version: &str| ToolSpec { version: Version::new(version).unwrap(), ..spec("weather", "x") };
    for (form, spec, expected) in [
        (FileForm::Skill, version("1.0.0"), "skills/web/weather.skill"),
        (FileForm::Skill, version("v2"), "skills/web/weather@v2.skill"),
        (FileForm::Json, version("v3"), "skills/web/weather@v3.json"),
        (FileForm::Yaml, version("v4"), "skills/web/weather.yaml"),
    ] {
        let tool = harness
            .store
            .catalog()
            .create_tool(NewTool { form, ..new_tool("web", spec.clone()) })
            .await
            .unwrap();
        assert_eq!(tool.path.as_deref(), Some(expected));
    }
    assert_eq!(
        listing(&harness, "skills/web"),
        ["bundle.yaml", "weather.skill", "weather.yaml", "weather@v2.skill", "weather@v3.json"]
    );
    harness.assert_consistent().await;
}

#[tokio::test]
async fn updates_and_deletes_create_backups() {
    let harness = Harness::sqlite().await;
    let tool = harness.create(spec("weather", "one")).await.unwrap();
    let path = harness.path("skills/web/weather.skill");
    let commented = format!("{}\n# by hand", fs::read_to_string(&path).unwrap());
    fs::write(&path, &commented).unwrap();
    harness.store.catalog().update_tool(tool.id, spec("weather", "two").into()).await.unwrap();
    let backups = listing(&harness, "tool-history");
    assert_eq!(backups.len(), 1);
    assert!(backups[0].starts_with("weather-20260801T") && backups[0].ends_with(".skill.bak"), "{backups:?}");
    assert_eq!(fs::read_to_string(harness.path("tool-history").join(&backups[0])).unwrap(), commented);
    let last = fs::read_to_string(&path).unwrap();
    let kept = harness.store.catalog().delete_tool(tool.id, Backup::Keep).await.unwrap().unwrap();
    assert_eq!(fs::read_to_string(harness.path(&kept)).unwrap(), last);
    assert!(!path.exists());
}

#[tokio::test]
async fn a_version_in_the_file_name_is_updated() {
    let harness = Harness::sqlite().await;
    let new = NewTool { form: FileForm::Json, ..new_tool("web", spec("weather", "one")) };
    let tool = harness.store.catalog().create_tool(new).await.unwrap();
    let step = Transition::Relabel(Version::new("2.0.0").unwrap());
    let tool = harness.store.catalog().transition(tool.id, step).await.unwrap();
    assert_eq!(tool.path.as_deref(), Some("skills/web/weather@2.0.0.json"));
    assert_eq!(listing(&harness, "skills/web"), ["bundle.yaml", "weather@2.0.0.json"]);
    harness.assert_consistent().await;
}

#[tokio::test]
async fn an_existing_file_is_not_overwritten() {
    let harness = Harness::sqlite().await;
    // Not a definition that can be read: it stays, and the new file gets another name.
    harness.write("skills/web/weather.skill", "mine");
    let tool = harness.create(spec("weather", "one")).await.unwrap();
    assert_eq!(tool.path.as_deref(), Some("skills/web/weather@1.0.0.skill"));
    assert_eq!(fs::read_to_string(harness.path("skills/web/weather.skill")).unwrap(), "mine");
    // The same pair, in a file that nobody has read yet: it was there first.
    harness.write("skills/web/climate@1.0.0.json", &text("climate", "mine"));
    let result = harness.create(spec("climate", "theirs")).await;
    assert!(matches!(result, Err(StoreError::Conflict(_))), "{result:?}");
    assert_eq!(harness.mirror().named("climate").unwrap().spec.description, "mine");
    harness.assert_consistent().await;
}

#[tokio::test]
async fn after_a_crash_temporary_files_are_removed_and_files_win() {
    let mut harness = Harness::sqlite().await;
    let tool = harness.create(spec("weather", "one")).await.unwrap();
    // As after a crash between the file and the index: the file is newer, and a temporary one is left.
    harness.write("skills/web/.0123.haft-tmp", "half");
    harness.write("tool-history/.0123.haft-tmp", "half");
    harness.write("skills/web/new.json", &text("new", "x"));
    let path = harness.path("skills/web/weather.skill");
    fs::write(&path, fs::read_to_string(&path).unwrap().replace("one", "two")).unwrap();
    harness.restart().await;
    assert_eq!(listing(&harness, "skills/web"), ["bundle.yaml", "new.json", "weather.skill"]);
    assert_eq!(listing(&harness, "tool-history"), Vec::<String>::new());
    let mirror = harness.mirror();
    let now = mirror.named("weather").unwrap();
    assert_eq!((now.id, now.revision, now.spec.description.as_str()), (tool.id, 2, "two"));
    assert!(mirror.named("new").is_some());
    harness.assert_consistent().await;
}

#[tokio::test]
async fn the_index_is_rebuilt_from_the_files() {
    let mut harness = Harness::sqlite().await;
    for name in ["one", "two", "three"] {
        harness.create(spec(name, "x")).await.unwrap();
    }
    harness.write("skills/web/bad.json", "{");
    let report = harness.store.catalog().reindex().await.unwrap();
    assert_eq!((report.bundles, report.tools, report.unreadable), (1, 3, 1));
    let before = harness.mirror();
    // Nothing changed: ids, revisions and states stay.
    assert_eq!(harness.store.catalog().reindex().await.unwrap().tools, 3);
    assert_eq!(harness.mirror().tools, before.tools);
    harness.store.close().await;
    for file in ["haft.db", "haft.db-wal", "haft.db-shm"] {
        let _ = fs::remove_file(harness.path(file));
    }
    harness.reopen().await;
    let after = harness.mirror();
    let content = |mirror: &crate::harness::Mirror| {
        let mut all: Vec<_> =
            mirror.tools.values().map(|t| (t.path.clone(), t.spec.clone(), t.bundle_id)).collect();
        all.sort_by_key(|(path, ..)| path.clone());
        all
    };
    assert_eq!(content(&after), content(&before));
    assert_eq!(after.bundles, before.bundles);
    assert_eq!(after.unreadable, before.unreadable);
}

#[tokio::test]
async fn a_change_that_cannot_be_written_leaves_everything_as_it_was() {
    let harness = Harness::sqlite().await;
    let tool = harness.create(spec("weather", "one")).await.unwrap();
    let path = harness.path("skills/web/weather.skill");
    let before = fs::read_to_string(&path).unwrap();
    // A folder where the history has to go: the backup fails, so the update does.
    fs::remove_dir_all(harness.path("tool-history")).unwrap();
    fs::write(harness.path("tool-history"), "in the way").unwrap();
    let result = harness.store.catalog().update_tool(tool.id, spec("weather", "two").into()).await;
    assert!(matches!(result, Err(StoreError::Unavailable { .. })), "{result:?}");
    assert_eq!(fs::read_to_string(&path).unwrap(), before);
    assert_eq!(harness.mirror().named("weather"), Some(&tool));
    let huge =
        harness.store.catalog().update_tool(tool.id, spec("weather", &"x".repeat(2 << 20)).into()).await;
    assert!(matches!(huge, Err(StoreError::Invalid(_))));
    fs::remove_file(harness.path("tool-history")).unwrap();
    harness.assert_consistent().await;
}

#[tokio::test]
async fn an_unreadable_file_is_backed_up_unchanged() {
    let harness = Harness::sqlite().await;
    let (put, deleted) =
        (harness.create(spec("put", "x")).await.unwrap(), harness.create(spec("del", "x")).await);
    let deleted = deleted.unwrap();
    fs::write(harness.path("skills/web/put.skill"), b"not \xff text").unwrap();
    fs::remove_file(harness.path("skills/web/del.skill")).unwrap();
    fs::create_dir(harness.path("skills/web/del.skill")).unwrap();
    harness.write("skills/web/del.skill/inside", "mine");
    harness.store.catalog().reindex().await.unwrap();
    assert!(harness.mirror().named("put").unwrap().fault.is_some());
    harness.store.catalog().update_tool(put.id, spec("put", "good again").into()).await.unwrap();
    let kept = harness.store.catalog().delete_tool(deleted.id, Backup::Keep).await.unwrap().unwrap();
    assert_eq!(fs::read_to_string(harness.path(&kept).join("inside")).unwrap(), "mine");
    assert!(!harness.path("skills/web/del.skill").exists());
    let backup = listing(&harness, "tool-history").into_iter().find(|name| name.starts_with("put-")).unwrap();
    assert_eq!(fs::read(harness.path("tool-history").join(backup)).unwrap(), b"not \xff text");
    assert_eq!(harness.mirror().named("put").unwrap().fault, None);
    harness.assert_consistent().await;
}

#[tokio::test]
async fn a_file_that_cannot_be_backed_up_is_not_changed() {
    let harness = Harness::sqlite().await;
    let tool = harness.create(spec("weather", "x")).await.unwrap();
    fs::write(harness.path("skills/web/weather.skill"), b"\xff").unwrap();
    harness.store.catalog().reindex().await.unwrap();
    fs::remove_dir_all(harness.path("tool-history")).unwrap();
    fs::write(harness.path("tool-history"), "in the way").unwrap();
    let put = harness.store.catalog().update_tool(tool.id, spec("weather", "y").into()).await;
    let deleted = harness.store.catalog().delete_tool(tool.id, Backup::Keep).await;
    assert!(matches!(put, Err(StoreError::Unavailable { .. })), "{put:?}");
    assert!(matches!(deleted, Err(StoreError::Unavailable { .. })), "{deleted:?}");
    assert_eq!(fs::read(harness.path("skills/web/weather.skill")).unwrap(), b"\xff");
    fs::remove_file(harness.path("tool-history")).unwrap();
}

#[tokio::test]
async fn files_keep_their_mode_and_backups_are_private() {
    let harness = Harness::sqlite().await;
    let mode = |path: &str| fs::metadata(harness.path(path)).unwrap().permissions().mode() & 0o777;
    let new = NewTool { form: FileForm::Json, ..new_tool("web", spec("weather", "one")) };
    let tool = harness.store.catalog().create_tool(new).await.unwrap();
    let before = tool.path.clone().unwrap();
    assert_eq!(mode(&before) & 0o133, 0, "nobody else writes it");
    for (path, wanted) in [(before.as_str(), 0o640), ("skills/web/bundle.yaml", 0o664)] {
        fs::set_permissions(harness.path(path), fs::Permissions::from_mode(wanted)).unwrap();
    }
    let tool = harness.store.catalog().update_tool(tool.id, spec("weather", "two").into()).await.unwrap();
    assert_eq!(mode(&before), 0o640);
    let step = Transition::Relabel(Version::new("2.0.0").unwrap());
    let tool = harness.store.catalog().transition(tool.id, step).await.unwrap();
    assert_ne!(tool.path.as_ref(), Some(&before));
    assert_eq!(mode(tool.path.as_deref().unwrap()), 0o640);
    harness.store.catalog().enable_bundle(tool.bundle_id, false).await.unwrap();
    assert_eq!(mode("skills/web/bundle.yaml"), 0o664);
    assert_eq!(mode("tool-history"), 0o700);
    for backup in listing(&harness, "tool-history") {
        assert_eq!(mode(&format!("tool-history/{backup}")), 0o600);
    }
}
