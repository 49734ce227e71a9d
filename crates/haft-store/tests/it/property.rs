//! After any sequence of steps, the files, the index and the announcements agree.

use std::collections::BTreeMap;
use std::fs;

use haft_core::catalog::{Backup, StoreError, Transition};
use haft_core::id::ToolId;
use haft_core::name::Version;
use haft_core::tool::Status;
use haft_testkit::soak::rounds;
use proptest::prelude::*;

use crate::harness::{Harness, Mirror, new_tool, spec, text};

const BUNDLES: [&str; 2] = ["web", "net"];
const NAMES: [&str; 3] = ["alpha", "beta", "gamma"];

#[derive(Debug, Clone)]
enum Step {
    Create(usize, usize, u8),
    Update(usize, u8),
    Enable(usize, bool),
    Publish(usize),
    Draft(usize),
    Relabel(usize, u8),
    Delete(usize),
    WriteFile(usize, usize, u8),
    BreakFile(usize, usize),
    RemoveFile(usize, usize),
    RenameFile(usize, usize),
    Reindex,
    Restart,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let (bundle, name, tool) = (0..BUNDLES.len(), 0..NAMES.len(), 0..6_usize);
    let step = prop_oneof![
        3 => (bundle.clone(), name.clone(), 0..4_u8).prop_map(|(b, n, d)| Step::Create(b, n, d)),
        3 => (tool.clone(), 0..4_u8).prop_map(|(t, d)| Step::Update(t, d)),
        1 => (tool.clone(), any::<bool>()).prop_map(|(t, e)| Step::Enable(t, e)),
        1 => tool.clone().prop_map(Step::Publish),
        1 => tool.clone().prop_map(Step::Draft),
        1 => (tool.clone(), 0..3_u8).prop_map(|(t, v)| Step::Relabel(t, v)),
        2 => tool.prop_map(Step::Delete),
        3 => (bundle.clone(), name.clone(), 0..4_u8).prop_map(|(b, n, d)| Step::WriteFile(b, n, d)),
        1 => (bundle.clone(), name.clone()).prop_map(|(b, n)| Step::BreakFile(b, n)),
        2 => (bundle.clone(), name.clone()).prop_map(|(b, n)| Step::RemoveFile(b, n)),
        1 => (bundle, name).prop_map(|(b, n)| Step::RenameFile(b, n)),
        2 => Just(Step::Reindex),
        1 => Just(Step::Restart),
    ];
    proptest::collection::vec(step, 1..25)
}

fn pick(mirror: &Mirror, at: usize) -> Option<ToolId> {
    mirror.tools.keys().nth(at % mirror.tools.len().max(1)).copied()
}

/// Runs a step; only conflicts and missing tools are valid errors.
async fn run_step(harness: &mut Harness, step: Step) {
    let mirror = harness.mirror();
    let file = |b: usize, n: usize| format!("skills/{}/{}.json", BUNDLES[b], NAMES[n]);
    let description = |d: u8| format!("number {d}");
    let result: Result<(), StoreError> = match step {
        Step::Create(b, n, d) => {
            let new = new_tool(BUNDLES[b], spec(NAMES[n], &description(d)));
            harness.store.catalog().create_tool(new).await.map(drop)
        }
        Step::Update(t, d) => match pick(&mirror, t) {
            Some(id) => {
                let old = &mirror.tools[&id].spec;
                let new = haft_core::spec::ToolSpec { description: description(d), ..(**old).clone() };
                harness.store.catalog().update_tool(id, new.into()).await.map(drop)
            }
            None => Ok(()),
        },
        Step::Enable(t, enabled) => match pick(&mirror, t) {
            Some(id) => harness.store.catalog().enable_tool(id, enabled).await.map(drop),
            None => Ok(()),
        },
        Step::Publish(t) => transition(harness, pick(&mirror, t), Transition::Publish).await,
        Step::Draft(t) => transition(harness, pick(&mirror, t), Transition::Set(Status::Draft)).await,
        Step::Relabel(t, v) => {
            let version = Version::new(&format!("{v}.0.0")).unwrap();
            transition(harness, pick(&mirror, t), Transition::Relabel(version)).await
        }
        Step::Delete(t) => match pick(&mirror, t) {
            Some(id) => harness.store.catalog().delete_tool(id, Backup::Keep).await.map(drop),
            None => Ok(()),
        },
        Step::WriteFile(b, n, d) => {
            harness.write(&file(b, n), &text(NAMES[n], &description(d)));
            Ok(())
        }
        Step::BreakFile(b, n) => {
            harness.write(&file(b, n), "{ \"name\": ");
            Ok(())
        }
        Step::RemoveFile(b, n) => {
            let _ = fs::remove_file(harness.path(&file(b, n)));
            Ok(())
        }
        Step::RenameFile(b, n) => {
            let _ = fs::rename(
                harness.path(&file(b, n)),
                harness.path(&format!("skills/{}/moved.json", BUNDLES[b])),
            );
            Ok(())
        }
        Step::Reindex => harness.store.catalog().reindex().await.map(drop),
        Step::Restart => {
            harness.restart().await;
            Ok(())
        }
    };
    match result {
        Ok(()) | Err(StoreError::Conflict(_) | StoreError::NotFound { .. }) => {}
        Err(error) => panic!("{error:?}"),
    }
}

async fn transition(harness: &Harness, id: Option<ToolId>, step: Transition) -> Result<(), StoreError> {
    match id {
        Some(id) => harness.store.catalog().transition(id, step).await.map(drop),
        None => Ok(()),
    }
}

/// Returns the text of all definition files by path.
fn files(harness: &Harness) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for bundle in BUNDLES {
        let Ok(entries) = fs::read_dir(harness.path(&format!("skills/{bundle}"))) else { continue };
        for entry in entries {
            let name = entry.unwrap().file_name().into_string().unwrap();
            assert!(!name.starts_with('.'), "{name} is left");
            let path = format!("skills/{bundle}/{name}");
            let text = fs::read_to_string(harness.path(&path)).unwrap();
            if name != "bundle.yaml" {
                found.insert(path, text);
            }
        }
    }
    found
}

async fn check(steps: Vec<Step>) {
    let mut harness = Harness::sqlite().await;
    for step in steps {
        run_step(&mut harness, step).await;
    }
    harness.store.catalog().reindex().await.unwrap();
    let mirror = harness.mirror();
    let files = files(&harness);
    let mut known: Vec<String> = mirror.tools.values().filter_map(|tool| tool.path.clone()).collect();
    known.extend(mirror.unreadable.keys().cloned());
    known.sort();
    assert_eq!(known, files.keys().cloned().collect::<Vec<_>>(), "every file has one entry");
    for tool in mirror.tools.values() {
        let text = &files[tool.path.as_ref().unwrap()];
        assert_eq!(tool.fault.is_none(), text.contains(&tool.spec.description), "{tool:?} {text}");
        let revisions = harness.store.catalog().revisions(tool.id).await.unwrap();
        assert_eq!((revisions[0].number, &revisions[0].spec), (tool.revision, &tool.spec));
        for pair in revisions.windows(2) {
            assert_eq!(pair[0].number, pair[1].number + 1);
            assert_ne!(pair[0].hash, pair[1].hash, "a revision that changes nothing");
        }
    }
    harness.assert_consistent().await;
    harness.store.close().await;
}

proptest! {
    #![proptest_config(ProptestConfig { cases: u32::try_from(rounds(240)).unwrap(), max_shrink_iters: 60, ..ProptestConfig::default() })]

    #[test]
    fn files_index_and_announcements_agree(steps in steps()) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        runtime.block_on(check(steps));
    }
}
