//! Folders that are planned, applied and exported, on both engines.

use haft_package::files::PackageFiles;
use haft_package::{folder, zip};
use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Server, code, function_tool, send};
use crate::tenants::{tenant, with};

/// A folder by its files.
pub(crate) fn packed(files: &[(&str, &str)]) -> Vec<u8> {
    let mut all = PackageFiles::new();
    for (path, text) in files {
        all.put_text(path, *text).unwrap();
    }
    zip::write(&all).unwrap()
}

pub(crate) async fn send_folder(server: &Server, token: &str, folder: &[u8], query: &str) -> (u16, Value) {
    let request = server.bare(Method::POST, &format!("/api/apply{query}")).bearer_auth(token);
    send(request.header("content-type", "application/zip").body(folder.to_vec())).await
}

pub(crate) async fn apply(server: &Server, folder: &[u8], query: &str) -> Value {
    let (status, answer) = send_folder(server, &server.token, folder, query).await;
    assert_eq!(status, 200, "{answer}");
    answer["data"].clone()
}

/// What changes, as `action kind name`.
pub(crate) fn shown(report: &Value) -> Vec<String> {
    let text = |change: &Value, key: &str| change[key].as_str().unwrap_or_default().to_owned();
    let changes = report["changes"].as_array().unwrap().iter();
    let changes = changes.filter(|change| change["action"] != "unchanged");
    changes
        .map(|change| format!("{} {} {}", text(change, "action"), text(change, "kind"), text(change, "name")))
        .collect()
}

fn tool(description: &str) -> String {
    format!(
        "description: {description}\nimplementation:\n  type: function\n  function: double\ninput_schema:\n  type: object\n"
    )
}

pub(crate) async fn on_postgres(url: &str) -> Server {
    crate::postgres::on(url).await
}

async fn description(server: &Server, tool: &str) -> Value {
    server.get(&format!("/api/tools/{tool}")).await.1["data"]["description"].clone()
}

#[tokio::test]
async fn a_folder_is_planned_and_applied() {
    let database = crate::postgres::database().await;
    for server in [Server::start().await, on_postgres(&database.url).await] {
        let (one, two) = (tool("First"), tool("Second"));
        let first = packed(&[
            ("bundles/web/bundle.yaml", "description: Web tools\n"),
            ("bundles/web/one.yaml", &one),
            ("bundles/web/two@2.0.0.yaml", &format!("status: draft\n{two}")),
        ]);
        let plan = apply(&server, &first, "?dry_run=true").await;
        assert_eq!(shown(&plan), ["create bundle web", "create tool one", "create tool two"]);
        assert_eq!((&plan["applied"], &plan["summary"]["create"]), (&json!(false), &json!(3)));
        assert_eq!(server.get("/api/tools/web:one").await.0, 404, "a plan changes nothing");
        let report = apply(&server, &first, &format!("?plan={}", plan["plan"].as_str().unwrap())).await;
        assert_eq!(report["applied"], true, "{report}");
        let (_, stored) = server.get("/api/tools/web:one").await;
        assert_eq!(stored["data"]["status"], "published", "{stored}");
        assert_eq!(server.get("/api/tools/web:two").await.1["data"]["status"], "draft");
        assert_eq!(server.invoke("web:one", json!({"n": 4})).await.1["value"], 8);
        let again = apply(&server, &first, "?dry_run=true").await;
        assert_eq!(shown(&again), Vec::<String>::new(), "{again}");

        let changed = tool("Changed");
        let second = packed(&[("bundles/web/one.yaml", &changed), ("bundles/web/two@2.0.0.yaml", &two)]);
        let report = apply(&server, &second, "").await;
        assert_eq!(shown(&report), ["update tool one", "publish tool two"], "{report}");
        let fields = &report["changes"][1]["fields"];
        assert_eq!(
            *fields,
            json!([{"field": "description", "before": "First", "after": "Changed"}]),
            "{report}"
        );
        assert_eq!(description(&server, "web:one").await, "Changed");
        let (_, bundle) = server.get("/api/tools/bundles/web").await;
        assert_eq!(bundle["data"]["description"], "Web tools", "what the folder does not say stays");
        let (_, audit) = server.get("/api/audit?page_size=100").await;
        let records = audit["data"]["records"].as_array().unwrap();
        let has = |action: &str, target: &str| {
            records.iter().any(|record| record["action"] == action && record["target"] == target)
        };
        assert!(has("tool.create", "web:one@1.0.0") && has("tool.update", "web:one@1.0.0"), "{audit}");
        assert!(has("apply", "0 created, 1 updated, 1 published, 0 deleted"), "{audit}");
    }
}

#[tokio::test]
async fn a_change_between_plan_and_apply_is_a_conflict() {
    let database = crate::postgres::database().await;
    for server in [Server::start().await, on_postgres(&database.url).await] {
        let old = tool("Old");
        apply(&server, &packed(&[("bundles/web/one.yaml", &old)]), "").await;
        let (new, more) = (tool("New"), tool("More"));
        let folder = packed(&[("bundles/web/one.yaml", &new), ("bundles/web/two.yaml", &more)]);
        let plan = apply(&server, &folder, "?dry_run=true").await["plan"].as_str().unwrap().to_owned();
        let mut by_hand = function_tool("one", "double");
        by_hand["description"] = json!("By hand");
        let (status, answer) = server.put("/api/tools/web:one", by_hand).await;
        assert_eq!(status, 200, "{answer}");
        let (status, answer) = send_folder(&server, &server.token, &folder, &format!("?plan={plan}")).await;
        assert_eq!((status, code(&answer)), (409, "conflict"), "{answer}");
        assert_eq!(description(&server, "web:one").await, "By hand");
        assert_eq!(server.get("/api/tools/web:two").await.0, 404);
        // Another folder is not what was planned either.
        let plan = apply(&server, &folder, "?dry_run=true").await["plan"].as_str().unwrap().to_owned();
        let other = packed(&[("bundles/web/one.yaml", &new)]);
        assert_eq!(send_folder(&server, &server.token, &other, &format!("?plan={plan}")).await.0, 409);
        assert_eq!(send_folder(&server, &server.token, &folder, &format!("?plan={plan}")).await.0, 200);
    }
}

#[tokio::test]
async fn an_edited_file_is_a_change_too() {
    let server = Server::start().await;
    let old = tool("Old");
    apply(&server, &packed(&[("bundles/web/one.yaml", &old)]), "").await;
    let new = tool("New");
    let folder = packed(&[("bundles/web/one.yaml", &new)]);
    let plan = apply(&server, &folder, "?dry_run=true").await["plan"].as_str().unwrap().to_owned();
    std::fs::write(server.home.path().join("skills/web/one.yaml"), tool("Edited")).unwrap();
    let (status, answer) = send_folder(&server, &server.token, &folder, &format!("?plan={plan}")).await;
    assert_eq!((status, code(&answer)), (409, "conflict"), "{answer}");
    assert_eq!(description(&server, "web:one").await, "Edited");
}

#[tokio::test]
async fn one_problem_applies_nothing_and_all_are_reported() {
    let database = crate::postgres::database().await;
    for server in [Server::start().await, on_postgres(&database.url).await] {
        let good = tool("Good");
        let folder = packed(&[
            ("bundles/a/good.yaml", &good),
            ("bundles/b/broken.yaml", "name: broken\nruntime: cobol\n"),
            ("bundles/c/schema.yaml", "description: x\nimplementation: {type: http, url: 'ftp://x/'}\n"),
            ("mcp-servers.yaml", "mcp_servers:\n  files:\n    comand: mcp-files\n"),
        ]);
        let (status, answer) = send_folder(&server, &server.token, &folder, "").await;
        assert_eq!((status, code(&answer)), (400, "invalid_definition"), "{answer}");
        assert!(answer.to_string().contains("bundles/b/broken.yaml"), "{answer}");
        // What cannot be parsed is reported first; then what does not fit.
        let folder = packed(&[
            ("bundles/a/good.yaml", &good),
            ("bundles/c/schema.yaml", "description: x\nimplementation: {type: http, url: 'ftp://x/'}\n"),
            ("mcp-servers.yaml", "mcp_servers:\n  files:\n    comand: mcp-files\n"),
            ("policy.yaml", "rules:\n- {name: a, effect: deny, when: 'args.x >'}\n"),
        ]);
        let (_, answer) = send_folder(&server, &server.token, &folder, "").await;
        let problems = answer["error"]["details"]["problems"].as_array().unwrap().clone();
        let files: Vec<&str> = problems.iter().map(|problem| problem["field"].as_str().unwrap()).collect();
        assert_eq!(files, ["bundles/c/schema.yaml", "mcp-servers.yaml", "policy.yaml"], "{answer}");
        assert!(problems.iter().all(|problem| problem["message"].as_str().unwrap().contains("line ")));
        assert_eq!(server.get("/api/tools?include_disabled=true").await.1["data"]["failed"], 0);
        for path in ["/api/tools/a:good", "/api/tools/bundles/a", "/api/mcp-servers/files"] {
            assert_eq!(server.get(path).await.0, 404, "{path}");
        }
        for (body, status) in [(&b"no zip"[..], 400), (&b"PK\x03\x04"[..], 400), (&packed(&[("x", "")]), 400)]
        {
            assert_eq!(send_folder(&server, &server.token, body, "").await.0, status);
        }
    }
}

#[tokio::test]
async fn a_quota_that_is_reached_in_the_middle_leaves_nothing() {
    let server = Server::start().await;
    let token = tenant(&server, "acme").await;
    server.patch("/api/tenants/acme", json!({"limits": {"max_tools": 2}})).await;
    let text = tool("One of three");
    let folder = packed(&[
        ("bundles/web/a.yaml", &text),
        ("bundles/web/b.yaml", &text),
        ("bundles/web/c.yaml", &text),
    ]);
    let (status, answer) = send_folder(&server, &token, &folder, "").await;
    assert!(status >= 400, "{answer}");
    let (_, list) = with(&server, &token, Method::GET, "/api/tools/bundles/web", Value::Null).await;
    assert_eq!(code(&list), "not_found", "{list}");
    assert!(!server.home.path().join("skills/@acme/web").exists());
    assert!(!server.home.path().join(".apply-journal").exists());
}

#[tokio::test]
async fn only_prune_deletes_and_only_in_bundles_of_the_folder() {
    let database = crate::postgres::database().await;
    for server in [Server::start().await, on_postgres(&database.url).await] {
        let acme = tenant(&server, "acme").await;
        let text = tool("Text");
        let both = packed(&[
            ("bundles/web/one.yaml", &text),
            ("bundles/web/two.yaml", &text),
            ("bundles/other/three.yaml", &text),
        ]);
        apply(&server, &both, "").await;
        assert_eq!(send_folder(&server, &acme, &both, "").await.0, 200);
        let one = packed(&[("bundles/web/one.yaml", &text)]);
        let plan = apply(&server, &one, "").await;
        assert_eq!(shown(&plan), ["unmanaged tool two"], "{plan}");
        assert_eq!(server.get("/api/tools/web:two").await.0, 200);
        let plan = apply(&server, &one, "?prune=true").await;
        assert_eq!(shown(&plan), ["delete tool two"], "{plan}");
        assert_eq!(server.get("/api/tools/web:two").await.0, 404);
        assert_eq!(server.get("/api/tools/other:three").await.0, 200);
        let (status, kept) = with(&server, &acme, Method::GET, "/api/tools/web:two", Value::Null).await;
        assert_eq!(status, 200, "another tenant is not touched: {kept}");
    }
}

#[tokio::test]
async fn roles_decide_what_may_be_applied() {
    let server = Server::start().await;
    let token = async |role: &str| {
        let (_, answer) = server.post("/api/tokens", json!({"name": role, "role": role})).await;
        answer["data"]["token"].as_str().unwrap().to_owned()
    };
    let (viewer, editor) = (token("viewer").await, token("editor").await);
    let text = tool("Text");
    let tools = packed(&[("bundles/web/one.yaml", &text)]);
    assert_eq!(code(&send_folder(&server, &viewer, &tools, "?dry_run=true").await.1), "forbidden");
    assert_eq!(send_folder(&server, &viewer, &tools, "").await.0, 403);
    assert_eq!(send_folder(&server, &editor, &tools, "").await.0, 200);
    let policy = packed(&[
        ("bundles/web/two.yaml", &text),
        ("policy.yaml", "rules:\n- {name: a, effect: deny, match: {tools: [x]}}\n"),
    ]);
    let servers =
        packed(&[("mcp-servers.yaml", "mcp_servers:\n  files: {command: mcp-files, enabled: false}\n")]);
    for folder in [&policy, &servers] {
        assert_eq!(send_folder(&server, &editor, folder, "?dry_run=true").await.0, 200);
        let (status, answer) = send_folder(&server, &editor, folder, "").await;
        assert_eq!((status, code(&answer)), (403, "forbidden"), "{answer}");
    }
    assert_eq!(server.get("/api/tools/web:two").await.0, 404, "nothing is half applied");
    apply(&server, &policy, "").await;
    // It is there now, so an editor may apply the rest.
    assert_eq!(send_folder(&server, &editor, &policy, "").await.0, 200);
    assert_eq!(send_folder(&server, &editor, &tools, "?allow_unsandboxed=true").await.0, 403);
}

/// A folder with everything: tools, a toolset, an Agent Skill, pipelines, an artifact, MCP servers and rules.
fn everything() -> Vec<u8> {
    let mut files = PackageFiles::new();
    let example =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/toolsets/app-builder");
    for (path, file) in folder::read(&example).unwrap().iter() {
        files
            .put_text(&format!("bundles/app-builder/{path}"), String::from_utf8(file.bytes.to_vec()).unwrap())
            .unwrap();
    }
    files.put_text("bundles/web/bundle.yaml", "display_name: Web\nenabled: true\n").unwrap();
    files.put_text("bundles/web/one.yaml", tool("One")).unwrap();
    files.put_text("bundles/web/off.yaml", format!("enabled: false\n{}", tool("Off"))).unwrap();
    let ask = "description: Asks\nimplementation: {type: rag_retrieval, pipeline_id: handbook}\n";
    files.put_text("bundles/web/ask.yaml", ask).unwrap();
    let count = "description: Counts\nimplementation: {type: artifact, artifact_id: count}\n";
    files.put_text("bundles/web/count.yaml", count).unwrap();
    files.put_text("pipelines/handbook.yaml", "chunking: {size: 200}\nlanguage: german\n").unwrap();
    files.put_text("pipelines/Handbook.yml", "slug: HANDBOOK\nstatus: draft\n").unwrap();
    files.put_text("artifacts/count.yaml", "runtime: bash\nsource_file: count.sh\n").unwrap();
    files.put_text("artifacts/count.sh", "echo \"$text\" |\n\twc -w").unwrap();
    files.put_text("bundles/web/draft@0.1.0.yaml", format!("status: draft\n{}", tool("Draft"))).unwrap();
    files
        .put_text(
            "bundles/notes/SKILL.md",
            "---\nname: notes\ndescription: How to take notes. Use it for meetings.\n---\n\nWrite short lines.\n",
        )
        .unwrap();
    files
        .put_text(
            "mcp-servers.yaml",
            "mcp_servers:\n  files:\n    command: mcp-files\n    env: {TOKEN: '${FILES_TOKEN}'}\n    enabled: false\n    \
             policy: elevated\n  docs:\n    url: https://mcp.example.com/mcp\n    enabled: false\n",
        )
        .unwrap();
    files
        .put_text(
            "policy.yaml",
            "rules:\n  - name: no-shell\n    match: {tools: ['*:run_command']}\n    effect: deny\n    examples:\n      \
             - {tool: 'app-builder:run_command', expect: match}\n",
        )
        .unwrap();
    zip::write(&files).unwrap()
}

pub(crate) async fn export(server: &Server, query: &str) -> Vec<u8> {
    let response = server.request(Method::GET, &format!("/api/export{query}")).send().await.unwrap();
    assert_eq!(response.status(), 200);
    response.bytes().await.unwrap().to_vec()
}

#[tokio::test]
async fn an_export_applied_elsewhere_is_the_same() {
    let database = crate::postgres::database().await;
    let (one, two) = (Server::start().await, on_postgres(&database.url).await);
    let report = apply(&one, &everything(), "").await;
    assert_eq!(report["summary"]["create"], 18, "{report}");
    assert_eq!(one.get("/api/tools/app-builder:write_file").await.1["data"]["status"], "published");
    assert_eq!(one.get("/api/tools/web:off").await.1["data"]["enabled"], false);
    assert_eq!(one.get("/api/mcp-servers/files").await.1["data"]["policy"], "elevated");
    assert_eq!(one.get("/api/policy").await.1["data"]["rules"][0]["name"], "no-shell");
    let again = apply(&one, &everything(), "?prune=true&dry_run=true").await;
    assert_eq!(shown(&again), Vec::<String>::new(), "{again}");

    let archive = export(&one, "").await;
    let source = apply(&one, &archive, "?prune=true&dry_run=true").await;
    assert_eq!(shown(&source), Vec::<String>::new(), "{source}");
    let plan = apply(&two, &archive, "").await;
    assert_eq!(plan["summary"]["create"], 18, "{plan}");
    let diff = apply(&two, &archive, "?prune=true&dry_run=true").await;
    assert_eq!(shown(&diff), Vec::<String>::new(), "{diff}");
    assert_eq!(export(&two, "").await, archive, "the second installation has the same folder");
    for tool in ["web:one", "web:draft", "web:ask", "web:count", "app-builder:read_file"] {
        let of = async |server: &Server| server.get(&format!("/api/tools/{tool}")).await.1["data"].clone();
        let (mine, theirs) = (of(&one).await, of(&two).await);
        for key in ["description", "implementation_type", "status", "enabled", "input_schema", "ready"] {
            assert_eq!(mine[key], theirs[key], "{tool} {key}");
        }
    }
    let web = zip::read(&export(&one, "?bundle=web").await).unwrap();
    let paths: Vec<&str> = web.iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(
        paths,
        ["ask", "bundle", "count", "draft", "off", "one"].map(|name| format!("bundles/web/{name}.yaml"))
    );
    let missing = one.request(Method::GET, "/api/export?bundle=none").send().await.unwrap();
    assert_eq!(missing.status(), 404);
}

#[tokio::test]
async fn secrets_never_travel() {
    let server = Server::start().await;
    let secret = "description: Calls\nimplementation:\n  type: http\n  url: https://api.example.com/\n  headers:\n    \
                  Authorization: Bearer sk-very-secret-value\n";
    let masked = secret.replace("Bearer sk-very-secret-value", "'***'").replace("Calls", "Changed");
    let mcp = "mcp_servers:\n  files: {command: mcp-files, enabled: false, env: {API_TOKEN: tk-very-secret-value}}\n";
    let report =
        apply(&server, &packed(&[("bundles/web/call.yaml", secret), ("mcp-servers.yaml", mcp)]), "").await;
    assert!(!report.to_string().contains("very-secret"), "{report}");
    // `***` means: unchanged.
    let mcp = mcp.replace("tk-very-secret-value", "'***'");
    let folder = packed(&[("bundles/web/call.yaml", &masked), ("mcp-servers.yaml", &mcp)]);
    let report = apply(&server, &folder, "").await;
    assert_eq!(shown(&report), ["update tool call"], "{report}");
    let text = std::fs::read_to_string(server.home.path().join("skills/web/call.yaml")).unwrap();
    assert!(text.contains("Bearer sk-very-secret-value") && text.contains("Changed"), "{text}");
    let exported = zip::read(&export(&server, "").await).unwrap();
    let all: String = exported.iter().map(|(_, file)| String::from_utf8_lossy(&file.bytes)).collect();
    assert!(!all.contains("very-secret") && all.contains("${API_TOKEN}"), "{all}");
    let unknown = packed(&[("bundles/web/new.yaml", &masked)]);
    let (status, answer) = send_folder(&server, &server.token, &unknown, "").await;
    assert_eq!(status, 400, "{answer}");
}

#[tokio::test]
async fn a_toolset_is_updated_and_its_drift_is_undone() {
    let server = Server::start().await;
    let mut files = zip::read(&everything()).unwrap();
    apply(&server, &everything(), "").await;
    let (_, before) = server.get("/api/toolsets/app-builder").await;
    let manifest = "bundles/app-builder/toolset.yaml";
    let text = files.text(manifest).unwrap().replace("1.0.0", "1.1.0");
    assert_ne!(files.text(manifest).unwrap(), text);
    files.put_text(manifest, text).unwrap();
    let changed = zip::write(&files).unwrap();
    let report = apply(&server, &changed, "").await;
    assert_eq!(shown(&report).first().map(String::as_str), Some("update toolset app-builder"), "{report}");
    let (_, after) = server.get("/api/toolsets/app-builder").await;
    assert_eq!(after["data"]["previous"], before["data"]["package"], "it can be rolled back");
    assert_eq!(after["data"]["version"], "1.1.0");
    // A bundle of tools cannot become a toolset by accident, nor the other way round.
    let text = tool("Text");
    let plain = packed(&[("bundles/app-builder/x.yaml", &text)]);
    let (status, answer) = send_folder(&server, &server.token, &plain, "").await;
    assert_eq!(status, 400, "{answer}");
    assert!(answer.to_string().contains("is an installed toolset"), "{answer}");
}

const GREETER: &str =
    "model: {name: scripted, script: 'turns: [{text: Hi}]'}\ninstructions: Greet.\ntools: [web:one]\n";

#[tokio::test]
async fn agents_are_applied_with_the_tools_that_they_name() {
    let database = crate::postgres::database().await;
    for server in [Server::start().await, on_postgres(&database.url).await] {
        let one = tool("First");
        let team = "agents:\n  writer: {model: scripted, system: Write.}\n  critic: {model: scripted, system: Judge.}\n";
        let first = packed(&[
            ("bundles/web/one.yaml", &one),
            ("agents/greeter.yaml", GREETER),
            ("agents/team.yaml", team),
            ("agents/draft.yaml", &format!("status: draft\nenabled: false\n{GREETER}")),
            ("agents/README.md", "about"),
            ("agents/deep/x.yaml", "model: scripted\n"),
        ]);
        let plan = apply(&server, &first, "?dry_run=true").await;
        assert_eq!(
            shown(&plan),
            [
                "create bundle web",
                "create tool one",
                "create agent draft",
                "create agent greeter",
                "create agent writer",
                "create agent critic",
            ],
            "{plan}"
        );
        assert!(plan["warnings"].to_string().contains("agents/deep/x.yaml"), "{plan}");
        assert_eq!(server.get("/api/agents/greeter").await.0, 404, "a plan changes nothing");
        apply(&server, &first, &format!("?plan={}", plan["plan"].as_str().unwrap())).await;
        let (_, greeter) = server.get("/api/agents/greeter").await;
        let greeter = &greeter["data"];
        assert_eq!((&greeter["status"], &greeter["published_revision"]), (&json!("published"), &json!(1)));
        assert_eq!(greeter["modified_by"], "local", "{greeter}");
        let (_, draft) = server.get("/api/agents/draft").await;
        assert_eq!((&draft["data"]["status"], &draft["data"]["enabled"]), (&json!("draft"), &json!(false)));
        let (_, run) = server.post("/api/agents/greeter/runs", json!({"input": "x"})).await;
        assert_eq!(run["data"]["output"], "Hi", "{run}");
        assert!(shown(&apply(&server, &first, "?dry_run=true").await).is_empty());

        let second = packed(&[("agents/greeter.yaml", &GREETER.replace("Greet.", "Greet politely."))]);
        let report = apply(&server, &second, "?prune=true").await;
        assert_eq!(
            shown(&report),
            ["delete agent critic", "delete agent draft", "delete agent writer", "update agent greeter"]
        );
        let change = report["changes"].as_array().unwrap().iter().find(|change| change["action"] == "update");
        assert_eq!(change.unwrap()["fields"][0]["field"], "instructions", "{report}");
        let (_, list) = server.get("/api/agents").await;
        assert_eq!(list["data"]["total"], 1, "{list}");
        let (_, audit) = server.get("/api/audit?action=agent.delete").await;
        assert_eq!(audit["data"]["total"], 3, "{audit}");
    }
}

#[tokio::test]
async fn wrong_agents_apply_nothing() {
    let server = Server::start().await;
    for (files, expected) in [
        (vec![("agents/a.yaml", "model: scripted\ntools: [no-such-tool]\n")], "no-such-tool"),
        (vec![("agents/a.yaml", "model: [\n")], "agents/a.yaml"),
        (vec![("agents/a.yaml", "model: scripted\nstatus: sleeping\n")], "`draft`, `published`"),
        (
            vec![("agents/a.yaml", "slug: b\nmodel: scripted\n"), ("agents/b.yaml", "model: scripted\n")],
            "also defined by",
        ),
    ] {
        let mut files = files;
        files.push(("agents/good.yaml", "model: scripted\n"));
        let (status, answer) = send_folder(&server, &server.token, &packed(&files), "").await;
        assert_eq!((status, code(&answer)), (400, "invalid_definition"), "{answer}");
        assert!(answer.to_string().contains(expected), "{answer}");
        assert_eq!(server.get("/api/agents").await.1["data"]["total"], 0);
    }
}

#[tokio::test]
async fn exported_agents_can_be_applied_elsewhere() {
    let server = Server::start().await;
    let definition = json!({
        "slug": "helper", "instructions": "Help.", "tools": [],
        "model": {"name": "local", "provider": "openai_compatible", "base_url": "https://models.example/v1"},
        "variables": {"api_token": "hunter3", "city": "Bern"},
    });
    let (status, answer) = server.post("/api/agents", definition).await;
    assert_eq!(status, 201, "{answer}");
    let archive = server.request(Method::GET, "/api/export").send().await.unwrap().bytes().await.unwrap();
    let files = zip::read(&archive).unwrap();
    let text = files.iter().find(|(path, _)| path.as_str() == "agents/helper.yaml").unwrap().1;
    let text = std::str::from_utf8(&text.bytes).unwrap().to_owned();
    assert!(
        !text.contains("hunter") && text.contains("${API_TOKEN}") && text.contains("status: draft"),
        "{text}"
    );
    let other = Server::start().await;
    let report = apply(&other, &archive, "").await;
    assert!(shown(&report).contains(&"create agent helper".to_owned()), "{report}");
    assert_eq!(other.get("/api/agents/helper").await.1["data"]["status"], "draft");
}
