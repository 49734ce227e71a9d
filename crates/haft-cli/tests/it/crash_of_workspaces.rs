//! Servers that are killed while they store, restore and install: every acknowledged state of a workspace can be read and
//! is right, and a toolset is there whole, in the old version or in the new one.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests may fail loudly")]

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use haft_testkit::soak;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::client::Client;
use crate::crash::eventually;
use crate::harness::Haft;

const KILLS: usize = 100;
/// The files that every call writes.
const FILES: usize = 40;
/// How many of the newest states are compared after each kill.
const COMPARED: usize = 5;

/// What the server has acknowledged.
#[derive(Default)]
struct Acknowledged {
    /// The states, each with the number in all of its files.
    states: Vec<(String, usize)>,
    /// The version of the toolset: the patch number.
    toolset: Option<usize>,
    /// The version that was being installed when the server died.
    installing: Option<usize>,
    /// The next number to write.
    next: usize,
    /// How many states were restored.
    restored: usize,
}

impl Acknowledged {
    /// Tells whether the state after a kill shows anything.
    fn is_enough(&self) -> bool {
        self.states.len() > 5 && self.restored > 1 && self.toolset > Some(0)
    }
}

#[test]
fn kills_leave_every_state_and_a_whole_toolset() {
    let haft = Haft::new();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let known = Arc::new(Mutex::new(Acknowledged::default()));
    let packages = haft.path("packages");
    let rounds = u64::try_from(soak::kills(KILLS)).unwrap();
    for round in 0..rounds {
        let server = haft.serve_with(&[]);
        let client = Client::new(&haft, &server);
        runtime.block_on(async {
            verify(&client, &known).await;
            if round == 0 {
                client.send("POST", "/api/tools", fill_tool()).await.unwrap();
            }
            let mut load = JoinSet::new();
            load.spawn(change(client.clone(), Arc::clone(&known)));
            load.spawn(install(client.clone(), Arc::clone(&known), packages.clone()));
            // The moments are spread over the first seconds.
            tokio::time::sleep(Duration::from_millis((round + 1) * 1500 / rounds)).await;
            if round + 1 == rounds {
                eventually(|| known.lock().unwrap().is_enough()).await;
            }
            server.signal("KILL");
            server.wait();
            while let Some(done) = load.join_next().await {
                done.unwrap();
            }
        });
    }
    let server = haft.serve_with(&[]);
    let client = Client::new(&haft, &server);
    runtime.block_on(verify(&client, &known));
    let known = known.lock().unwrap();
    let shown = (known.states.len(), known.restored, known.toolset);
    assert!(known.is_enough(), "too little was acknowledged: {shown:?}");
}

/// A tool that writes its number to many files.
fn fill_tool() -> Value {
    let body = format!("mkdir -p files; for i in $(seq {FILES}); do echo \"$number\" > files/$i.txt; done");
    json!({
        "name": "fill", "description": "Writes a number to many files",
        "implementation": {"type": "script", "runtime": "bash", "body": body},
        "input_schema": {"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]},
    })
}

/// Writes and restores states until the server is gone.
async fn change(client: Client, known: Arc<Mutex<Acknowledged>>) {
    for step in 0.. {
        let earlier = {
            let known = known.lock().unwrap();
            known.states.get(known.states.len() / 2).filter(|_| step % 3 == 2).cloned()
        };
        if let Some((manifest, number)) = earlier {
            let body = json!({"manifest_id": manifest});
            let Some(answer) = client.send("POST", "/api/workspaces/w/restore", body).await else { return };
            let mut known = known.lock().unwrap();
            known.states.push((answer["data"]["post_manifest"].as_str().unwrap().to_owned(), number));
            known.restored += 1;
            continue;
        }
        let number = {
            let mut known = known.lock().unwrap();
            known.next += 1;
            known.next
        };
        let body = json!({"args": {"number": number}, "workspace": "w"});
        let Some(answer) = client.send("POST", "/api/tools/fill/invoke", body).await else { return };
        assert_eq!(answer["ok"], true, "{answer}");
        let manifest = answer["workspace_use"]["post_manifest"].as_str().unwrap().to_owned();
        known.lock().unwrap().states.push((manifest, number));
    }
}

/// Installs newer and newer versions of a toolset until the server is gone.
async fn install(client: Client, known: Arc<Mutex<Acknowledged>>, packages: PathBuf) {
    loop {
        let number = {
            let mut known = known.lock().unwrap();
            let number = known.toolset.max(known.installing).map_or(0, |number| number + 1);
            known.installing = Some(number);
            number
        };
        let folder = packages.join(number.to_string());
        write_package(&folder, number);
        let body = json!({"path": folder.display().to_string()});
        let Some(answer) = client.send("POST", "/api/toolsets", body).await else { return };
        assert_eq!(answer["status"], "success", "{answer}");
        let mut known = known.lock().unwrap();
        (known.toolset, known.installing) = (Some(number), None);
        drop(known);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}

fn write_package(folder: &Path, number: usize) {
    std::fs::create_dir_all(folder.join("tools")).unwrap();
    let manifest = format!(
        "manifest_version: \"1\"\nid: numbers\nname: Numbers\nversion: 1.0.{number}\ndescription: A toolset that is updated\n\
         tools:\n  - id: number\n    description: Returns the number of this version of the toolset\n    \
         entrypoint: tools.number:number\n    input_schema: {{type: object}}\n"
    );
    let tool = format!("def number(workspace):\n    return {{'number': {number}}}\n");
    for (name, content) in
        [("toolset.yaml", manifest), ("tools/number.py", tool), ("number.txt", number.to_string())]
    {
        std::fs::write(folder.join(name), content).unwrap();
    }
}

/// The newest acknowledged states are readable and right; the toolset is whole.
async fn verify(client: &Client, known: &Mutex<Acknowledged>) {
    let (states, toolset, installing) = {
        let known = known.lock().unwrap();
        let newest = known.states.len().saturating_sub(COMPARED);
        (known.states[newest..].to_vec(), known.toolset, known.installing)
    };
    for (manifest, number) in &states {
        let path = format!("/api/workspaces/w/files?manifest={manifest}&path=files");
        let answer = client.send("GET", &path, Value::Null).await.unwrap();
        assert_eq!(answer["data"]["files"].as_array().unwrap().len(), FILES, "{answer}");
        for file in [1, FILES] {
            let path = format!("/api/workspaces/w/files/files/{file}.txt?manifest={manifest}");
            let answer = client.send("GET", &path, Value::Null).await.unwrap();
            assert_eq!(answer, json!(number), "state {manifest}");
        }
    }
    let (status, answer) = client.request("GET", "/api/toolsets/numbers", &Value::Null).await.unwrap();
    if status == 404 {
        assert_eq!(toolset, None, "an installed toolset is gone");
        return;
    }
    let version = answer["data"]["version"].as_str().unwrap();
    let number: usize = version.rsplit('.').next().unwrap().parse().unwrap();
    assert!([toolset, installing].contains(&Some(number)), "{version}: {toolset:?} {installing:?}");
    let read = client.send("GET", "/api/toolsets/numbers/files/number.txt", Value::Null).await.unwrap();
    assert_eq!(read, json!(number), "the files of another version");
    let called = client.send("POST", "/api/tools/numbers:number/invoke", json!({})).await.unwrap();
    assert_eq!(called["value"], json!({"number": number}), "{called}");
    // An update that was cut off is made again by who asked for it.
    known.lock().unwrap().toolset = Some(number);
}
