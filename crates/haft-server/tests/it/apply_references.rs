//! Pipelines and code artifacts of folders, with the tools and agents that refer to them, on both engines.

use haft_package::zip;
use serde_json::{Value, json};

use crate::apply::{apply, export, on_postgres, packed, send_folder, shown};
use crate::harness::{Server, code};

const ASK: &str = "description: Searches the handbook of the company\nimplementation: {type: rag_retrieval, pipeline_id: handbook}\n";
const COUNT: &str = "description: Counts the words of a text\nimplementation: {type: artifact, artifact_id: count}\nparams:\n  - {name: text, type: string}\n";
const DELEGATE: &str = "description: Asks the agent for help with a task\nimplementation: {type: agent_call, target_agent_slug: helper}\n";
const HANDBOOK: &str = "name: Handbook\ndescription: Leave and sickness\n";
const COUNT_SOURCE: &str =
    "runtime: bash\nsource: |\n  echo \"$text\" | wc -w\ninputs:\n  - {name: text, type: string}\n";
const HELPER: &str = "model: {name: scripted, script: 'turns: [{text: Hi}]'}\ninstructions: Help.\ntools: [docs:ask, docs:count]\n";

fn files() -> Vec<(&'static str, &'static str)> {
    vec![
        ("agents/helper.yaml", HELPER),
        ("bundles/docs/ask.yaml", ASK),
        ("bundles/docs/count.yaml", COUNT),
        ("bundles/docs/delegate.yaml", DELEGATE),
        ("pipelines/handbook.yaml", HANDBOOK),
        ("artifacts/count.yaml", COUNT_SOURCE),
        ("artifacts/README.md", "about"),
    ]
}

/// The folder with other texts for some files.
fn with(changed: &[(&'static str, &'static str)]) -> Vec<u8> {
    let mut all = files();
    for (path, text) in changed {
        match all.iter_mut().find(|(known, _)| known == path) {
            Some(known) => known.1 = text,
            None => all.push((path, text)),
        }
    }
    packed(&all)
}

fn change<'a>(report: &'a Value, kind: &str) -> &'a Value {
    let changes = report["changes"].as_array().unwrap();
    changes.iter().find(|change| change["kind"] == kind && change["action"] != "unchanged").unwrap()
}

async fn add_document(server: &Server, pipeline: &str, name: &str) {
    let body = json!({"name": name, "text": "Thirty days of leave"});
    let (status, answer) = server.post(&format!("/api/pipelines/{pipeline}/documents"), body).await;
    assert_eq!(status, 202, "{answer}");
}

#[tokio::test]
async fn a_folder_brings_what_its_tools_refer_to() {
    let database = crate::postgres::database().await;
    for server in [Server::start().await, on_postgres(&database.url).await] {
        let plan = apply(&server, &with(&[]), "?dry_run=true").await;
        let expected = [
            "create pipeline handbook",
            "create code_artifact count",
            "create bundle docs",
            "create tool ask",
            "create tool count",
            "create tool delegate",
            "create agent helper",
        ];
        assert_eq!(shown(&plan), expected, "{plan}");
        assert_eq!(plan["warnings"], json!([]), "{plan}");
        assert_eq!(change(&plan, "pipeline")["summary"], "Leave and sickness");
        assert_eq!(server.get("/api/pipelines/handbook").await.0, 404, "a plan changes nothing");
        apply(&server, &with(&[]), &format!("?plan={}", plan["plan"].as_str().unwrap())).await;
        let (_, pipeline) = server.get("/api/pipelines/handbook").await;
        assert_eq!(pipeline["data"]["status"], "published", "{pipeline}");
        for tool in ["docs:ask", "docs:count", "docs:delegate"] {
            let (_, stored) = server.get(&format!("/api/tools/{tool}")).await;
            assert_eq!(
                (&stored["data"]["ready"], &stored["data"]["status"]),
                (&json!(true), &json!("published")),
                "{stored}"
            );
        }
        assert_eq!(server.invoke("docs:count", json!({"text": "one two"})).await.1["value"], 2);
        let (_, found) = server.invoke("docs:ask", json!({"query": "leave"})).await;
        assert_eq!(found["value"]["pipeline"], "handbook", "{found}");
        assert!(shown(&apply(&server, &with(&[]), "?prune=true&dry_run=true").await).is_empty());

        let changed = with(&[
            (
                "pipelines/handbook.yaml",
                "name: Handbook\ndescription: Leave and sickness\nchunking: {size: 500}\n",
            ),
            ("artifacts/count.yaml", "runtime: bash\nsource_file: count.sh\n"),
            ("artifacts/count.sh", "echo many"),
        ]);
        add_document(&server, "handbook", "leave.md").await;
        let report = apply(&server, &changed, "").await;
        assert_eq!(shown(&report), ["update pipeline handbook", "update code_artifact count"], "{report}");
        assert_eq!(
            change(&report, "pipeline")["fields"],
            json!([{"field": "chunking.size", "before": 300, "after": 500}])
        );
        let fields = change(&report, "code_artifact")["fields"].as_array().unwrap().clone();
        let names: Vec<&str> = fields.iter().map(|field| field["field"].as_str().unwrap()).collect();
        assert_eq!(names, ["source", "inputs", "version"], "{report}");
        assert!(report["warnings"].to_string().contains("1 document will be read again"), "{report}");
        assert_eq!(server.get("/api/code-artifacts/count").await.1["data"]["version"], 2);
        assert_eq!(server.get("/api/code-artifacts/count/versions/1").await.0, 200);
        assert_eq!(server.invoke("docs:count", json!({})).await.1["value"], "many");
        let (_, audit) = server.get("/api/audit?page_size=100").await;
        for action in ["pipeline.create", "pipeline.update", "code_artifact.create", "code_artifact.update"] {
            assert!(audit.to_string().contains(action), "{action}: {audit}");
        }
    }
}

#[tokio::test]
async fn prune_says_what_is_lost() {
    let database = crate::postgres::database().await;
    for server in [Server::start().await, on_postgres(&database.url).await] {
        apply(&server, &with(&[]), "").await;
        add_document(&server, "handbook", "leave.md").await;
        add_document(&server, "handbook", "sick.md").await;
        let other = packed(&[
            ("pipelines/other.yaml", "status: draft\n"),
            ("artifacts/other.yaml", "runtime: bash\nsource: echo\n"),
        ]);
        let plan = apply(&server, &other, "").await;
        let lines = shown(&plan);
        assert!(lines.contains(&"unmanaged pipeline handbook".to_owned()), "{plan}");
        assert_eq!(change(&plan, "pipeline")["summary"], "with 2 documents", "{plan}");
        let plan = apply(&server, &other, "?prune=true&dry_run=true").await;
        assert_eq!(shown(&plan), ["delete pipeline handbook", "delete code_artifact count"], "{plan}");
        assert_eq!(
            change(&plan, "pipeline")["fields"],
            json!([{"field": "documents", "before": 2, "after": 0}])
        );
        let warnings = plan["warnings"].to_string();
        for expected in ["docs:ask", "docs:count", "pipeline `handbook` is deleted by this plan"] {
            assert!(warnings.contains(expected), "{expected}: {warnings}");
        }
        // A document that nobody has seen in the plan is not deleted.
        add_document(&server, "handbook", "late.md").await;
        let query = format!("?prune=true&plan={}", plan["plan"].as_str().unwrap());
        let (status, answer) = send_folder(&server, &server.token, &other, &query).await;
        assert_eq!((status, code(&answer)), (409, "conflict"), "{answer}");
        assert_eq!(server.get("/api/pipelines/handbook").await.1["data"]["documents"], 3);
        // A tool of the folder cannot refer to what the same folder deletes.
        let ask = packed(&[("pipelines/other.yaml", "status: draft\n"), ("bundles/new/ask.yaml", ASK)]);
        let (status, answer) = send_folder(&server, &server.token, &ask, "?prune=true").await;
        assert_eq!((status, code(&answer)), (400, "invalid_definition"), "{answer}");
        apply(&server, &other, "?prune=true").await;
        assert_eq!(server.get("/api/pipelines/handbook").await.0, 404);
        assert_eq!(server.get("/api/code-artifacts/count").await.0, 404);
        assert_eq!(server.get("/api/tools/docs:ask").await.1["data"]["ready"], false);
        assert_eq!(server.get("/api/pipelines/other").await.1["data"]["status"], "draft");
        let published = apply(&server, &packed(&[("pipelines/other.yaml", "")]), "").await;
        assert_eq!(shown(&published), ["publish pipeline other"], "{published}");
        // Pruned pipelines can be restored with their documents.
        let (status, answer) = server.post("/api/pipelines/handbook/undelete", json!({})).await;
        assert_eq!((status, &answer["data"]["documents"]), (200, &json!(3)), "{answer}");
        assert_eq!(server.get("/api/tools/docs:ask").await.1["data"]["ready"], true);
    }
}

#[tokio::test]
async fn wrong_pipelines_and_artifacts_apply_nothing() {
    let server = Server::start().await;
    for (path, text, expected) in [
        ("pipelines/a.yaml", "chunking: {size: 1}\n", "line 1"),
        ("pipelines/a.yaml", "slug: handbook\n", "is also defined by `pipelines/"),
        ("artifacts/a.yaml", "runtime: bash\nsource: 'if then'\n", "artifacts/a.yaml"),
        ("artifacts/a.yaml", "runtime: bash\nsource_file: ../pipelines/handbook.yaml\n", "without a path"),
        ("artifacts/a.yaml", "runtime: bash\nsource_file: missing.sh\n", "no file `missing.sh`"),
        ("artifacts/a.yaml", "slug: count\nruntime: bash\nsource: echo\n", "is also defined by `artifacts/"),
        ("bundles/docs/other.yaml", &*ASK.replace("handbook", "nowhere"), "pipeline `nowhere` not found"),
    ] {
        let mut all = files();
        all.push((path, text));
        let (status, answer) = send_folder(&server, &server.token, &packed(&all), "").await;
        assert_eq!((status, code(&answer)), (400, "invalid_definition"), "{answer}");
        assert!(answer.to_string().contains(expected), "{expected}: {answer}");
    }
    assert_eq!(server.get("/api/pipelines").await.1["data"]["total"], 0);
    assert_eq!(server.get("/api/code-artifacts").await.1["data"]["total"], 0);
    let report = apply(&server, &with(&[("artifacts/notes.txt", "x"), ("pipelines/x/y.yaml", "")]), "").await;
    let ignored = report["warnings"].to_string();
    assert!(ignored.contains("artifacts/notes.txt") && ignored.contains("pipelines/x/y.yaml"), "{report}");
    // A draft says so, and a tool that is published with it is worth a warning; so is a version that does not exist.
    let pinned = COUNT.replace("count}", "count, artifact_version: 7}");
    let folder = packed(&[
        ("pipelines/handbook.yaml", "status: draft\n"),
        ("artifacts/count.yaml", COUNT_SOURCE),
        ("bundles/docs/ask.yaml", ASK),
        ("bundles/docs/count.yaml", &pinned),
    ]);
    let plan = apply(&server, &folder, "?dry_run=true").await;
    let warnings = plan["warnings"].to_string();
    assert!(warnings.contains("pipeline `handbook` is a draft"), "{warnings}");
    assert!(warnings.contains("version 7 of artifact `count` not found"), "{warnings}");
}

async fn exported(server: &Server, path: &str) -> String {
    let files = zip::read(&export(server, "").await).unwrap();
    files.text(path).unwrap().to_owned()
}

#[tokio::test]
async fn exports_have_slugs_and_no_secrets() {
    let (server, other) = (Server::start().await, Server::start().await);
    let definition = json!({"slug": "handbook", "embedding": {
        "model": "m", "base_url": "https://me:hunter2@models.example/v1?api_key=hunter3", "credential": "EMBED_KEY",
    }});
    let (_, pipeline) = server.post("/api/pipelines", definition).await;
    let (_, artifact) = server
        .post("/api/code-artifacts", json!({"slug": "count", "runtime": "bash", "source": "echo 1"}))
        .await;
    let (pipeline, artifact) = (&pipeline["data"]["id"], &artifact["data"]["id"]);
    let tool = |name: &str, implementation: Value| json!({"name": name, "description": "x", "implementation": implementation});
    server.create(tool("ask", json!({"type": "rag_retrieval", "pipeline_id": pipeline}))).await;
    server.create(tool("count", json!({"type": "artifact", "artifact_id": artifact}))).await;

    let text = exported(&server, "pipelines/handbook.yaml").await;
    assert!(!text.contains("hunter") && text.contains("${MODEL_SECRET}"), "{text}");
    assert!(text.contains("EMBED_KEY") && text.contains("status: draft"), "{text}");
    let ask = exported(&server, "bundles/user-created/ask.yaml").await;
    assert!(ask.contains("pipeline_id: handbook"), "{ask}");
    let count = exported(&server, "bundles/user-created/count.yaml").await;
    assert!(count.contains("artifact_id: count"), "{count}");

    let archive = export(&server, "").await;
    // The stored secret stays: only the tools change, which refer by slug now.
    let plan = apply(&server, &archive, "?dry_run=true").await;
    assert_eq!(shown(&plan), ["update tool ask", "update tool count"], "{plan}");
    let report = apply(&other, &archive, "").await;
    let warnings = report["warnings"].to_string();
    assert!(warnings.contains("credential `EMBED_KEY` is not stored"), "{warnings}");
    assert!(warnings.contains("reference instead of a secret"), "{warnings}");
    assert!(shown(&apply(&other, &archive, "?prune=true&dry_run=true").await).is_empty());
    assert_eq!(other.get("/api/tools/ask").await.1["data"]["ready"], true);
    // A new password is a change, which shows neither the old nor the new one.
    let text = text.replace("${MODEL_SECRET}", "hunter4");
    let plan = apply(&server, &packed(&[("pipelines/handbook.yaml", &text)]), "?dry_run=true").await;
    assert_eq!(shown(&plan), ["update pipeline handbook"], "{plan}");
    assert!(!plan.to_string().contains("hunter"), "{plan}");
}
