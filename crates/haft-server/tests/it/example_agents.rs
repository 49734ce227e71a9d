//! The agents in `examples/agents`: each is created and run, without any key.

use std::path::PathBuf;

use haft_definition::agent::read;
use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Server, send};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples/agents")
}

fn text(file: &str) -> String {
    std::fs::read_to_string(folder().join(file)).unwrap()
}

/// Creates the agent of a file and returns its slug.
async fn create(server: &Server, file: &str) -> String {
    let agents = read(&text(file), "agent").unwrap();
    let [agent] = agents.as_slice() else { panic!("{file} has {} agents", agents.len()) };
    assert_eq!(agent.warnings, [], "{file}");
    let definition = serde_json::to_value(&agent.definition).unwrap();
    let (status, answer) = server.post("/api/agents", definition).await;
    assert_eq!(status, 201, "{file}: {answer}");
    assert_eq!(answer["data"].get("warnings"), None, "{file}: {answer}");
    agent.definition.slug.to_string()
}

async fn ask(server: &Server, agent: &str, question: &str) -> Value {
    let path = format!("/api/agents/{agent}/runs");
    let (status, answer) = server.post(&path, json!({"input": question})).await;
    assert_eq!(status, 200, "{answer}");
    answer["data"].clone()
}

#[tokio::test]
async fn the_assistant_looks_at_the_clock() {
    let server = Server::start_whole(|_| {}).await;
    let agent = create(&server, "assistant.yaml").await;
    let run = ask(&server, &agent, "What time is it?").await;
    assert_eq!(run["status"], "success", "{run}");
    let output = run["output"].as_str().unwrap();
    assert!(output.starts_with("The clock says: ") && output.contains("20"), "{output}");
    assert_eq!(run["usage"]["tool_calls"].as_u64().or(run["usage"]["calls"].as_u64()), Some(1), "{run}");
    let run = ask(&server, &agent, "Good morning").await;
    assert_eq!(run["output"], "Hello! Ask me for the time to see a tool call.");
}

#[tokio::test]
async fn the_researcher_answers_from_its_documents() {
    let server = Server::start_whole(|_| {}).await;
    let agent = create(&server, "researcher.yaml").await;
    let (status, answer) =
        server.post("/api/pipelines", json!({"slug": "handbook", "name": "Handbook"})).await;
    assert_eq!(status, 201, "{answer}");
    let document = json!({"name": "leave.md", "text": "Employees have 28 days of leave per year."});
    let (status, answer) = server.post("/api/pipelines/handbook/documents", document).await;
    assert!(status < 300, "{answer}");
    let (status, answer) = server.post("/api/pipelines/handbook/publish", json!({})).await;
    assert!(status < 300, "{answer}");
    let mut output = String::new();
    for _ in 0..100 {
        let run = ask(&server, &agent, "How many days of leave are there?").await;
        output = run["output"].as_str().unwrap_or_default().to_owned();
        if output.contains("28 days") {
            break;
        }
        // The document is still being indexed.
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    assert_eq!(output, "Employees have 28 days of leave per year. (source: leave.md)");
}

#[tokio::test]
async fn the_reviewer_waits_for_a_person() {
    let server = Server::start_whole(|_| {}).await;
    let tool = text("tools/publish-review.yaml");
    let request =
        server.request(Method::POST, "/api/tools").header("content-type", "application/yaml").body(tool);
    let (status, answer) = send(request).await;
    assert_eq!(status, 201, "{answer}");
    let agent = create(&server, "reviewer.yaml").await;
    for (decision, expected) in [
        ("approve", "Done. The review of \"haft\" is published: short and clear"),
        ("deny", "I did not publish the review, because the call was not approved."),
    ] {
        let run = ask(&server, &agent, "haft").await;
        assert_eq!(run["status"], "awaiting_approval", "{run}");
        let approval = run["waiting"][0]["approval_id"].as_str().unwrap();
        assert_eq!(run["waiting"][0]["args"], json!({"title": "haft", "verdict": "short and clear"}));
        let (status, answer) = server.post(&format!("/api/approvals/{approval}/{decision}"), json!({})).await;
        assert_eq!(status, 200, "{answer}");
        let path = format!("/api/runs/{}", run["id"].as_str().unwrap());
        let mut run = run;
        for _ in 0..100 {
            run = server.get(&path).await.1["data"].clone();
            if run["status"] != "awaiting_approval" && run["status"] != "running" {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
        assert_eq!(run["output"], expected, "{run}");
    }
}

#[test]
fn every_example_is_tested() {
    let mut files: Vec<String> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"))
        .map(|path| path.file_name().unwrap().to_str().unwrap().to_owned())
        .collect();
    files.sort();
    assert_eq!(files, ["assistant.yaml", "researcher.yaml", "reviewer.yaml"]);
}
