//! Any sequence of edits, snapshots, branches and restores gives the folder that a simple model gives.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use haft_workspace::{Limits, LocalPacks, Manifest, Workspace};
use proptest::prelude::*;

#[derive(Debug, Clone)]
enum Step {
    Write(u8, u8),
    Remove(u8),
    Move(u8, u8),
    Snapshot,
    /// Back to an earlier snapshot, with or without saying that the folder had changed.
    Restore(usize),
    /// The process ends and another one opens the workspace.
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..12_u8, 0..4_u8).prop_map(|(path, text)| Step::Write(path, text)),
        2 => (0..12_u8).prop_map(Step::Remove),
        1 => (0..12_u8, 0..12_u8).prop_map(|(from, to)| Step::Move(from, to)),
        3 => Just(Step::Snapshot),
        2 => any::<usize>().prop_map(Step::Restore),
        1 => Just(Step::Restart),
    ]
}

/// Twelve paths in four folders.
fn path(number: u8) -> String {
    let folder = ["", "a/", "a/b/", "c/"][usize::from(number % 4)];
    format!("{folder}file-{}", number / 4)
}

fn text(number: u8) -> Vec<u8> {
    vec![number; [0, 1, 5000, 300_000][usize::from(number % 4)]]
}

fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap().flatten() {
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
            } else {
                let name = entry.path().strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
                found.insert(name, fs::read(entry.path()).unwrap());
            }
        }
    }
    found
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn a_workspace_behaves_like_a_map(steps in prop::collection::vec(step(), 1..40)) {
        let root = tempfile::tempdir().unwrap();
        let packs = Arc::new(LocalPacks::open(root.path().join("packs")).unwrap());
        let open = || Workspace::open(&root.path().join("w"), packs.clone(), Limits::default()).unwrap();
        let mut workspace = open();
        let mut model: BTreeMap<String, Vec<u8>> = BTreeMap::new();
        let mut states: Vec<(Manifest, BTreeMap<String, Vec<u8>>)> = Vec::new();
        for step in steps {
            match step {
                Step::Write(number, content) => {
                    workspace.begin_change().unwrap();
                    let path = workspace.folder().join(path(number));
                    fs::create_dir_all(path.parent().unwrap()).unwrap();
                    fs::write(path, text(content)).unwrap();
                    model.insert(self::path(number), text(content));
                }
                Step::Remove(number) => {
                    workspace.begin_change().unwrap();
                    let removed = fs::remove_file(workspace.folder().join(path(number))).is_ok();
                    prop_assert_eq!(removed, model.remove(&path(number)).is_some());
                }
                Step::Move(from, to) => {
                    workspace.begin_change().unwrap();
                    let target = workspace.folder().join(path(to));
                    fs::create_dir_all(target.parent().unwrap()).unwrap();
                    let _ = fs::rename(workspace.folder().join(path(from)), target);
                    if let Some(content) = model.remove(&path(from)) {
                        model.insert(path(to), content);
                    }
                }
                Step::Snapshot => {
                    let manifest = workspace.snapshot().unwrap().manifest;
                    prop_assert_eq!(manifest.files, model.len() as u64);
                    states.push((manifest, model.clone()));
                }
                Step::Restore(number) if !states.is_empty() => {
                    let (manifest, state) = states[number % states.len()].clone();
                    workspace.checkout(&manifest).unwrap();
                    model = state;
                }
                Step::Restore(_) => {}
                Step::Restart => workspace = open(),
            }
            prop_assert_eq!(&files(workspace.folder()), &model);
        }
        for (manifest, state) in states {
            workspace.checkout(&manifest).unwrap();
            prop_assert_eq!(&files(workspace.folder()), &state);
        }
    }
}
