//! `haft apply`, `haft diff` and `haft export`, and servers that are killed in the middle of an apply.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests may fail loudly")]

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use haft_package::files::PackageFiles;
use haft_package::zip;
use haft_testkit::soak;
use serde_json::{Value, json};

use crate::client::Client;
use crate::harness::{Haft, Server};

const KILLS: usize = 100;
/// Enough files that a kill falls between two of them.
const TOOLS: usize = 40;

const FORECAST: &str = "description: Weather of the next days\nimplementation:\n  type: http\n  url: https://api.example.com/forecast\n";

fn folder(haft: &Haft) -> String {
    haft.write("repo/bundles/weather/bundle.yaml", "description: About the weather\n");
    haft.write("repo/bundles/weather/forecast.yaml", FORECAST);
    haft.write("repo/README.md", "# Our tools\n");
    haft.path("repo").display().to_string()
}

#[test]
fn a_folder_is_compared_and_applied() {
    let haft = Haft::new();
    let dir = folder(&haft);
    insta::assert_snapshot!(haft.run(&["diff", &dir]).shown(), @r"
    exit code: 11
    ----- stdout
    + bundle weather  About the weather
    + tool weather:forecast@1.0.0  Weather of the next days
    Plan: 2 to create, 0 to update, 0 to publish, 0 to delete; 0 unchanged.
    ----- stderr
    ");
    insta::assert_snapshot!(haft.run(&["apply", &dir, "--yes"]).shown(), @r"
    exit code: 0
    ----- stdout
    + bundle weather  About the weather
    + tool weather:forecast@1.0.0  Weather of the next days
    Plan: 2 to create, 0 to update, 0 to publish, 0 to delete; 0 unchanged.
    ----- stderr
    applied 2 changes
    ");
    insta::assert_snapshot!(haft.run(&["diff", &dir]).shown(), @r"
    exit code: 0
    ----- stdout
    No changes: the installation is as the folder says.
    ----- stderr
    ");
    haft.write("repo/bundles/weather/forecast.yaml", &FORECAST.replace("next days", "next week"));
    haft.write("repo/bundles/weather/alerts.yaml", &FORECAST.replace("forecast", "alerts"));
    insta::assert_snapshot!(haft.run(&["apply", &dir]).shown(), @r#"
    exit code: 0
    ----- stdout
    + tool weather:alerts@1.0.0  Weather of the next days
    ~ tool weather:forecast@1.0.0
        description: "Weather of the next days" -> "Weather of the next week"
    Plan: 1 to create, 1 to update, 0 to publish, 0 to delete; 1 unchanged.
    ----- stderr
    applied 2 changes
    "#);
    std::fs::remove_file(haft.path("repo/bundles/weather/alerts.yaml")).unwrap();
    insta::assert_snapshot!(haft.run(&["diff", &dir]).shown(), @r"
    exit code: 0
    ----- stdout
    No changes: the installation is as the folder says.
    ----- stderr
    not in the folder, so `--prune` would delete: tool weather:alerts@1.0.0
    ");
    insta::assert_snapshot!(haft.run(&["diff", &dir, "--prune"]).shown(), @r"
    exit code: 11
    ----- stdout
    - tool weather:alerts@1.0.0
    Plan: 0 to create, 0 to update, 0 to publish, 1 to delete; 2 unchanged.
    ----- stderr
    ");
    let report = haft.json(&["apply", &dir, "--prune", "--yes"]);
    assert_eq!((&report["applied"], &report["summary"]["delete"]), (&json!(true), &json!(1)), "{report}");
    assert!(!haft.home().join("skills/weather/alerts.yaml").exists());
}

#[test]
fn problems_name_the_file_and_the_line() {
    let haft = Haft::new();
    let dir = folder(&haft);
    haft.write("repo/bundles/weather/broken.yaml", "description: x\nimplementation:\n  type: htp\n");
    haft.write("repo/bundles/other/odd.yaml", "a: [\n");
    insta::assert_snapshot!(haft.run(&["apply", &dir, "--yes"]).shown(), @r"
    exit code: 8
    ----- stdout
    ----- stderr
    error: 2 problems:
      `bundles/other/odd.yaml`: line 1, column 4: invalid YAML: unclosed bracket '['
      `bundles/weather/broken.yaml`: line 3, column 3: `implementation.type`: unknown implementation type `htp`; did you mean `http`?
    ");
    assert!(!haft.home().join("skills/weather").exists(), "nothing was applied");
    insta::assert_snapshot!(haft.run(&["diff", &haft.home().display().to_string()]).shown(), @r"
    exit code: 2
    ----- stdout
    ----- stderr
    error: nothing to apply in `DIR/home`

    hint: put definition files in `bundles/<id>/`, `agents/`, `pipelines/` or `artifacts/`, or write the installation to the folder: `haft export DIR`
    ");
    assert_eq!(haft.run(&["apply", "/nowhere"]).code, 2);
}

#[test]
fn an_installation_is_promoted_to_another() {
    let (staging, production) = (Haft::new(), Haft::new());
    let dir = folder(&staging);
    assert_eq!(staging.run(&["apply", &dir, "--yes"]).code, 0);
    let exported = staging.path("exported").display().to_string();
    let written = staging.json(&["export", &exported]);
    assert_eq!(
        written["files"],
        json!(["bundles/weather/bundle.yaml", "bundles/weather/forecast.yaml"]),
        "{written}"
    );
    let again = staging.run(&["export", &exported]);
    assert_eq!(again.code, 2, "{}", again.shown());
    assert_eq!(staging.run(&["export", &exported, "--bundle", "weather", "--force"]).code, 0);
    assert_eq!(staging.run(&["diff", &exported, "--prune"]).code, 0);
    assert_eq!(production.run(&["diff", &exported]).code, 11);
    assert_eq!(production.run(&["apply", &exported, "--yes"]).code, 0);
    assert_eq!(production.run(&["diff", &exported, "--prune"]).code, 0);
    let tool = production.json(&["tool", "show", "weather:forecast"]);
    assert_eq!(tool["status"], "published", "{tool}");
    // The home folder has the same layout.
    assert_eq!(staging.run(&["diff", &production.home().display().to_string(), "--prune"]).code, 0);
}

#[test]
fn pipelines_and_artifacts_are_promoted_with_the_tools_that_use_them() {
    let (staging, production) = (Haft::new(), Haft::new());
    staging.write("repo/pipelines/handbook.yaml", "description: The handbook\n");
    staging.write(
        "repo/artifacts/count.yaml",
        "runtime: bash\nsource_file: count.sh\ninputs: [{name: text, type: string, required: true}]\n",
    );
    staging.write("repo/artifacts/count.sh", "echo \"$text\" | wc -w\n");
    staging.write(
        "repo/bundles/docs/ask.yaml",
        "description: Searches the handbook of the company\nimplementation: {type: rag_retrieval, pipeline_id: handbook}\n",
    );
    let dir = staging.path("repo").display().to_string();
    insta::assert_snapshot!(staging.run(&["apply", &dir, "--yes"]).shown(), @r"
    exit code: 0
    ----- stdout
    + pipeline handbook  The handbook
    + code artifact count
    + bundle docs
    + tool docs:ask@1.0.0  Searches the handbook of the company
    Plan: 4 to create, 0 to update, 0 to publish, 0 to delete; 0 unchanged.
    ----- stderr
    applied 4 changes
    ");
    let exported = staging.path("exported").display().to_string();
    let written = staging.json(&["export", &exported]);
    assert_eq!(
        written["files"],
        json!([
            "artifacts/count.yaml",
            "bundles/docs/ask.yaml",
            "bundles/docs/bundle.yaml",
            "pipelines/handbook.yaml"
        ]),
        "{written}"
    );
    assert_eq!(production.run(&["apply", &exported, "--yes"]).code, 0);
    assert_eq!(production.run(&["diff", &exported, "--prune"]).code, 0);
    assert_eq!(staging.run(&["diff", &exported, "--prune"]).code, 0);

    staging.write("notes.md", "# Notes\n");
    let notes = staging.path("notes.md").display().to_string();
    assert_eq!(staging.run(&["pipeline", "create", "notes"]).code, 0);
    assert_eq!(staging.run(&["pipeline", "add", "notes", &notes]).code, 0);
    insta::assert_snapshot!(staging.run(&["diff", &dir]).shown(), @r"
    exit code: 0
    ----- stdout
    No changes: the installation is as the folder says.
    ----- stderr
    not in the folder, so `--prune` would delete: pipeline notes  with 1 document
    ");
    insta::assert_snapshot!(staging.run(&["diff", &dir, "--prune"]).shown(), @r"
    exit code: 11
    ----- stdout
    - pipeline notes  with 1 document
        documents: 1 -> 0
    Plan: 0 to create, 0 to update, 0 to publish, 1 to delete; 4 unchanged.
    ----- stderr
    ");
}

/// A folder whose tools all have the same description.
fn generation(number: usize) -> Vec<u8> {
    let mut files = PackageFiles::new();
    for index in 0..TOOLS {
        // Every generation has a tool that the one before does not have.
        let name = if index == 0 { format!("only-{number}") } else { format!("tool-{index}") };
        let text = format!(
            "description: Generation {number}\nimplementation:\n  type: http\n  url: https://api.example.com/\n"
        );
        files.put_text(&format!("bundles/all/{name}.yaml"), text).unwrap();
    }
    let rules = format!("rules:\n- {{name: generation-{number}, effect: deny, match: {{tools: [x]}}}}\n");
    files.put_text("policy.yaml", rules).unwrap();
    zip::write(&files).unwrap()
}

/// Returns the generation that the installation is in; it must be one.
async fn current(client: &Client) -> Option<usize> {
    let answer =
        client.send("GET", "/api/tools?include_disabled=true&page_size=500", Value::Null).await.unwrap();
    assert_eq!(answer["data"]["failed"], 0, "{answer}");
    let tools: Vec<&Value> =
        answer["data"]["tools"].as_array().unwrap().iter().filter(|tool| tool["bundle"] == "all").collect();
    let descriptions: BTreeSet<&str> =
        tools.iter().map(|tool| tool["description"].as_str().unwrap()).collect();
    let policy = client.send("GET", "/api/policy", Value::Null).await.unwrap();
    let rule = policy["data"]["rules"][0]["name"].as_str();
    if tools.is_empty() {
        assert_eq!(rule, None, "rules without tools");
        return None;
    }
    assert_eq!(descriptions.len(), 1, "half applied: {descriptions:?}");
    let number: usize = descriptions.first()?.strip_prefix("Generation ")?.parse().ok()?;
    assert_eq!(tools.len(), TOOLS, "half applied");
    assert!(tools.iter().any(|tool| tool["name"] == format!("only-{number}")), "half applied");
    assert!(tools.iter().all(|tool| tool["status"] == "published"), "half applied");
    assert_eq!(rule, Some(format!("generation-{number}").as_str()), "half applied");
    Some(number)
}

/// Sends a generation to a server that may die meanwhile.
async fn send(server: &Server, client: &Client, number: usize) -> reqwest::Result<reqwest::Response> {
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let url = format!("{}/api/apply?prune=true", server.url.trim_end_matches('/'));
    let request = http.post(url).bearer_auth(&client.token).body(generation(number));
    request.header("content-type", "application/zip").send().await
}

#[test]
fn a_kill_in_the_middle_leaves_the_old_or_the_new_state() {
    let haft = Haft::new();
    let journal = haft.home().join(".apply-journal");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let (mut interrupted, mut expected, mut duration) = (0, None, Duration::ZERO);
    for round in 0..=soak::kills(KILLS) {
        let server = haft.serve_with(&[]);
        let client = Client::new(&haft, &server);
        runtime.block_on(async {
            assert!(!journal.exists(), "the start completes or undoes what was interrupted");
            let now = current(&client).await;
            let is_right = now == expected || now == round.checked_sub(1);
            assert!(is_right, "{now:?} in round {round}, expected {expected:?}");
            expected = now;
            let mut applying = std::pin::pin!(send(&server, &client, round));
            let first_write = async {
                while !journal.exists() {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            };
            let early = tokio::select! {
                response = &mut applying => Some(response),
                () = first_write => None,
            };
            let start = Instant::now();
            if round == 0 {
                // Kills come between the first write and a little after the end.
                let response = match early {
                    Some(response) => response,
                    None => applying.await,
                };
                assert_eq!(response.unwrap().status(), 200);
                (duration, expected) = (start.elapsed(), Some(0));
            } else {
                let part = u32::try_from(round * 37 % 120).unwrap();
                let ended = match early {
                    Some(response) => Some(response),
                    None => tokio::time::timeout(duration * part / 100, &mut applying).await.ok(),
                };
                server.signal("KILL");
                interrupted += usize::from(ended.is_none());
                if ended.is_some_and(|response| response.is_ok_and(|response| response.status() == 200)) {
                    // What was acknowledged is there.
                    expected = Some(round);
                }
            }
        });
    }
    let server = haft.serve_with(&[]);
    let last = runtime.block_on(current(&Client::new(&haft, &server)));
    assert!(last == expected || last == Some(soak::kills(KILLS)), "{last:?}, expected {expected:?}");
    assert!(interrupted > 0, "no kill fell into an apply, so nothing was shown");
    let files = std::fs::read_dir(haft.home().join("skills/all")).unwrap().count();
    assert_eq!(files, TOOLS + 1, "the tools and `bundle.yaml`, and nothing else");
}

#[test]
fn a_kill_during_the_first_apply_leaves_no_bundle() {
    let haft = Haft::new();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let server = haft.serve_with(&[]);
    let client = Client::new(&haft, &server);
    let was_interrupted = runtime.block_on(async {
        let first_file = async {
            while !haft.home().join("skills/all/tool-1.yaml").exists() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::select! {
            _ = send(&server, &client, 1) => false,
            () = first_file => true,
        }
    });
    server.signal("KILL");
    server.wait();
    let server = haft.serve_with(&[]);
    let now = runtime.block_on(current(&Client::new(&haft, &server)));
    if was_interrupted && now.is_none() {
        assert!(!haft.home().join("skills/all").exists(), "no empty bundle is left");
    } else {
        assert_eq!(now, Some(1));
    }
}
