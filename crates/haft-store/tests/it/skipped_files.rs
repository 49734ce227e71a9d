//! Files in `skills/` that are not loaded are reported, and nothing is written through a link.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

use haft_core::catalog::{Backup, PutBundle, StoreError};
use haft_core::name::{BundleSlug, TenantId};

use crate::harness::{Harness, new_tool, spec, text};

/// Rebuilds the index and returns all errors.
async fn errors(harness: &Harness) -> String {
    harness.store.catalog().reindex().await.unwrap();
    let errors: Vec<_> = harness.mirror().unreadable.into_values().map(|file| file.error).collect();
    errors.join("\n")
}

#[tokio::test]
async fn file_extensions_are_case_insensitive() {
    let harness = Harness::sqlite().await;
    let skill = "---\nname: three\nruntime: bash\n---\necho 3\n";
    for (path, text) in [
        ("skills/web/one.JSON", text("one", "x")),
        ("skills/web/two.Yaml", text("two", "x")),
        ("skills/web/three.SKILL", skill.to_owned()),
    ] {
        harness.write(path, &text);
    }
    assert_eq!(errors(&harness).await, "");
    for (name, path) in
        [("one", "skills/web/one.JSON"), ("two", "skills/web/two.Yaml"), ("three", "skills/web/three.SKILL")]
    {
        let tool = harness.mirror().named(name).unwrap().clone();
        assert_eq!((tool.path.as_deref(), tool.fault), (Some(path), None));
    }
    // An update keeps the file name.
    let one = harness.mirror().named("one").unwrap().clone();
    harness.store.catalog().update_tool(one.id, spec("one", "y").into()).await.unwrap();
    assert!(fs::read_to_string(harness.path("skills/web/one.JSON")).unwrap().contains("\"y\""));
    harness.assert_consistent().await;
}

#[tokio::test]
async fn links_to_folders_and_definitions_in_subfolders_are_reported() {
    let harness = Harness::sqlite().await;
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("far.json"), text("far", "x")).unwrap();
    harness.write("skills/web/good.json", &text("good", "x"));
    symlink(outside.path(), harness.path("skills/linked")).unwrap();
    symlink("/nonexistent", harness.path("skills/dangling")).unwrap();
    symlink("/etc/passwd", harness.path("skills/README")).unwrap();
    harness.write("skills/web/inner/lost.json", &text("lost", "x"));
    harness.write("skills/web/inner/deeper/also.yaml", &text("also", "x"));
    // Files of a bundle that are not definitions.
    for (path, content) in [
        ("skills/web/data/package.json", "{\"name\": \"x\", \"version\": \"1.0.0\"}"),
        ("skills/web/data/broken.yaml", "a: ["),
        ("skills/web/lib/tool.py", "x = 1"),
        ("skills/web/node_modules/a/tool.json", &text("module", "x")),
        ("skills/web/.git/tool.json", &text("hidden", "x")),
    ] {
        harness.write(path, content);
    }
    let link = "symbolic links are not followed; replace the link by the folder";
    let inner = "definitions in subfolders of a bundle are not loaded; move the file to `skills/web`, or its folder to `skills`";
    let expected = [
        format!("skills/dangling: {link}"),
        format!("skills/linked: {link}"),
        format!("skills/web/inner/deeper/also.yaml: {inner}"),
        format!("skills/web/inner/lost.json: {inner}"),
    ];
    assert_eq!(errors(&harness).await, expected.join("\n"));
    // A replacement in the subfolder would not be loaded either.
    let lost = "skills/web/inner/lost.json";
    match harness.store.catalog().mend_file(lost.to_owned(), spec("lost", "y").into()).await {
        Err(StoreError::Conflict(why)) => assert!(why.contains("move the file to `skills/web`"), "{why}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(fs::read_to_string(harness.path(lost)).unwrap(), text("lost", "x"));
    let mirror = harness.mirror();
    assert_eq!(mirror.tools.values().map(|tool| tool.spec.name.as_str()).collect::<Vec<_>>(), ["good"]);
    harness.assert_consistent().await;
    fs::remove_file(harness.path("skills/linked")).unwrap();
    fs::remove_file(harness.path("skills/dangling")).unwrap();
    fs::remove_dir_all(harness.path("skills/web/inner")).unwrap();
    assert_eq!(errors(&harness).await, "");
}

#[tokio::test]
async fn nothing_is_written_through_a_link() {
    let harness = Harness::sqlite().await;
    let outside = tempfile::tempdir().unwrap();
    let tool = harness.create(spec("weather", "one")).await.unwrap();
    // The folder of the bundle is replaced by a link to it.
    fs::rename(harness.path("skills/web"), outside.path().join("web")).unwrap();
    symlink(outside.path().join("web"), harness.path("skills/web")).unwrap();
    let before = fs::read_to_string(outside.path().join("web/weather.skill")).unwrap();
    let put = PutBundle {
        tenant: TenantId::default_tenant(),
        slug: BundleSlug::new("web").unwrap(),
        id: None,
        display_name: "Web".into(),
        description: String::new(),
        enabled: true,
    };
    let rejected = |result: Result<(), StoreError>| match result {
        Err(StoreError::ReadOnly(why)) => assert!(why.contains("`skills/web` is a symbolic link"), "{why}"),
        other => panic!("{other:?}"),
    };
    rejected(harness.store.catalog().update_tool(tool.id, spec("weather", "two").into()).await.map(drop));
    rejected(harness.store.catalog().delete_tool(tool.id, Backup::Keep).await.map(drop));
    rejected(harness.store.catalog().create_tool(new_tool("web", spec("other", "x"))).await.map(drop));
    rejected(harness.store.catalog().put_bundle(put).await.map(drop));
    rejected(harness.store.catalog().enable_bundle(tool.bundle_id, false).await.map(drop));
    let mut names: Vec<_> =
        fs::read_dir(outside.path().join("web")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["bundle.yaml", "weather.skill"]);
    assert_eq!(fs::read_to_string(outside.path().join("web/weather.skill")).unwrap(), before);
}

#[tokio::test]
async fn an_invalid_bundle_file_is_reported() {
    let mut harness = Harness::sqlite().await;
    let tool = harness.create(spec("weather", "one")).await.unwrap();
    let path = "skills/web/bundle.yaml";
    let good = fs::read_to_string(harness.path(path)).unwrap();
    harness.write(path, "enabled: true\ndisplay_name: [\n");
    let error = errors(&harness).await;
    assert!(error.starts_with("skills/web/bundle.yaml: ") && error.contains("line "), "{error}");
    assert!(error.ends_with("; the bundle keeps its last settings"), "{error}");
    assert_eq!(harness.mirror().unreadable[path].name, "bundle");
    // It is reported after a restart too, and the tools of the bundle still work.
    harness.restart().await;
    assert!(harness.mirror().unreadable.contains_key(path));
    assert_eq!(harness.mirror().named("weather").unwrap().fault, None);
    harness.assert_consistent().await;

    harness.write(path, &good);
    assert_eq!(errors(&harness).await, "");
    // The error disappears with the file, and does not block the deletion of the bundle.
    harness.write(path, "- a list\n");
    assert_ne!(errors(&harness).await, "");
    fs::remove_file(harness.path(path)).unwrap();
    assert_eq!(errors(&harness).await, "");
    harness.write(path, "- a list\n");
    harness.store.catalog().delete_tool(tool.id, Backup::Discard).await.unwrap();
    assert_ne!(errors(&harness).await, "");
    harness.store.catalog().delete_bundle(tool.bundle_id).await.unwrap();
    assert_eq!(errors(&harness).await, "");
    harness.assert_consistent().await;
}

#[tokio::test]
async fn an_invalid_bundle_file_is_not_overwritten() {
    let harness = Harness::sqlite().await;
    let tool = harness.create(spec("weather", "one")).await.unwrap();
    let path = "skills/web/bundle.yaml";
    let rejected = |result: Result<(), StoreError>, reason: &str| match result {
        Err(StoreError::Conflict(why)) => {
            assert!(why.starts_with("`skills/web/bundle.yaml` is invalid"), "{why}");
            assert!(why.contains(reason), "{why}");
        }
        other => panic!("{other:?}"),
    };
    let put = || PutBundle {
        tenant: TenantId::default_tenant(),
        slug: BundleSlug::new("web").unwrap(),
        id: None,
        display_name: "Web".into(),
        description: String::new(),
        enabled: false,
    };
    for text in ["display_name: Ours\nenabled: [\n", "- a list\n", "owner: [\n"] {
        harness.write(path, text);
        rejected(
            harness.store.catalog().enable_bundle(tool.bundle_id, false).await.map(drop),
            "fix or remove the file",
        );
        rejected(harness.store.catalog().put_bundle(put()).await.map(drop), "fix or remove the file");
        assert_eq!(fs::read_to_string(harness.path(path)).unwrap(), text);
    }
    harness.write(path, "enabled: true\ndescription: [\n");
    rejected(
        harness.store.catalog().enable_bundle(tool.bundle_id, false).await.map(drop),
        "line 2 column 14",
    );
    fs::remove_file(harness.path(path)).unwrap();
    symlink("/etc/hostname", harness.path(path)).unwrap();
    rejected(
        harness.store.catalog().enable_bundle(tool.bundle_id, false).await.map(drop),
        "symbolic links are not followed",
    );
    fs::remove_file(harness.path(path)).unwrap();
    fs::create_dir(harness.path(path)).unwrap();
    rejected(harness.store.catalog().enable_bundle(tool.bundle_id, false).await.map(drop), "found a folder");
    fs::remove_dir(harness.path(path)).unwrap();
    // Nothing was applied, and changes work again.
    assert!(harness.mirror().bundles[&tool.bundle_id].enabled);
    harness.store.catalog().enable_bundle(tool.bundle_id, false).await.unwrap();
    assert!(fs::read_to_string(harness.path(path)).unwrap().contains("enabled: false"));
}

#[tokio::test]
async fn the_database_is_private() {
    let mut harness = Harness::sqlite().await;
    let mode = |harness: &Harness, file: &str| {
        fs::metadata(harness.path(file)).unwrap().permissions().mode() & 0o777
    };
    assert_eq!(mode(&harness, "haft.db"), 0o600);
    harness.store.close().await;
    fs::set_permissions(harness.path("haft.db"), fs::Permissions::from_mode(0o644)).unwrap();
    harness.reopen().await;
    harness.create(spec("weather", "one")).await.unwrap();
    for file in ["haft.db", "haft.db-wal"] {
        assert_eq!(mode(&harness, file), 0o600, "{file}");
    }
    for entry in fs::read_dir(harness.path("journal")).unwrap() {
        let metadata = entry.unwrap().metadata().unwrap();
        assert_eq!(metadata.mode() & 0o077, 0);
    }
}
