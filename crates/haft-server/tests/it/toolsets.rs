//! Toolsets: packages that are installed, called, updated, rolled back, exported and removed.

use std::path::{Path, PathBuf};
use std::time::Duration;

use haft_package::files::PackageFiles;
use haft_package::signature::{SigningKey, TrustedKey};
use haft_package::{folder, zip};
use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Server, code, poll, send};
use crate::tenants::{tenant, with};

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/toolsets").join(name)
}

fn files(name: &str) -> PackageFiles {
    folder::read(&example(name)).unwrap()
}

async fn upload(server: &Server, files: &PackageFiles, query: &str) -> (u16, Value) {
    upload_bytes(server, zip::write(files).unwrap(), query).await
}

async fn upload_bytes(server: &Server, archive: Vec<u8>, query: &str) -> (u16, Value) {
    let request = server.request(Method::POST, &format!("/api/toolsets{query}"));
    send(request.header("content-type", "application/zip").body(archive)).await
}

async fn call(server: &Server, tool: &str, args: Value) -> Value {
    server.post(&format!("/api/tools/{tool}/invoke"), json!({"args": args, "workspace": "w"})).await.1
}

async fn export(server: &Server, path: &str) -> Vec<u8> {
    let response = server.request(Method::GET, path).send().await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "application/zip");
    response.bytes().await.unwrap().to_vec()
}

/// Returns a package with one text replaced.
fn changed(files: &PackageFiles, path: &str, from: &str, to: &str) -> PackageFiles {
    let mut files = files.clone();
    let text = files.text(path).unwrap().replace(from, to);
    files.remove(path);
    files.put_text(path, text).unwrap();
    files
}

#[tokio::test]
async fn the_toolsets_of_the_specification_are_installed_and_called() {
    let server = Server::start().await;
    let (status, preview) = upload(&server, &files("app-builder"), "?dry_run=true").await;
    assert_eq!(status, 200, "{preview}");
    assert_eq!(preview["data"]["package"]["tools"].as_array().unwrap().len(), 3, "{preview}");
    assert_eq!(server.get("/api/toolsets/app-builder").await.0, 404, "nothing is installed yet");

    let (status, installed) = upload(&server, &files("app-builder"), "").await;
    assert_eq!(status, 201, "{installed}");
    assert_eq!(installed["data"]["added"], json!(["write_file", "read_file", "run_command"]));
    let (_, tool) = server.get("/api/tools/app-builder:write_file").await;
    assert_eq!(tool["data"]["status"], "published", "{tool}");
    assert_eq!(tool["data"]["sandbox"], true, "{tool}");
    let written =
        call(&server, "app-builder:write_file", json!({"path": "src/a.py", "content": "print(1)"})).await;
    assert_eq!(written["value"], json!({"written": "src/a.py", "size": 8}), "{written}");
    let plan =
        json!({"renderer": "code", "config": {"file": "src/a.py", "language": "auto", "editable": true}});
    assert_eq!(written["render_plan"], plan, "{written}");
    assert_eq!(written["workspace_use"]["changes"], json!([{"path": "src/a.py", "change": "added"}]));
    let read = call(&server, "app-builder:read_file", json!({"path": "src/a.py"})).await;
    assert_eq!(read["value"]["content"], "print(1)", "{read}");
    // The interpreter is warm: it sees the new workspace of the same name.
    assert_eq!(server.delete("/api/workspaces/w").await.0, 200);
    let again = call(&server, "app-builder:write_file", json!({"path": "b", "content": "2"})).await;
    assert_eq!(again["workspace_use"]["changes"], json!([{"path": "b", "change": "added"}]), "{again}");
    let failed = call(&server, "app-builder:read_file", json!({"path": "none"})).await;
    assert!(failed["render_plan"]["error"].as_str().unwrap().contains("FileNotFoundError"), "{failed}");
    // The token of the tests is elevated: others have to ask.
    let (_, token) = server.post("/api/tokens", json!({"name": "agent", "role": "caller"})).await;
    let token = token["data"]["token"].as_str().unwrap();
    let path = "/api/tools/app-builder:run_command/invoke";
    let (_, waiting) = with(&server, token, Method::POST, path, json!({"args": {"command": "ls"}})).await;
    assert_eq!(code(&waiting), "approval_required", "{waiting}");
}

#[tokio::test]
async fn results_are_shown_by_a_page_with_their_data() {
    let server = Server::start_whole(|_| {}).await;
    let mut package = files("my-toolset");
    package.put_text("assets/extra.js", "console.log(1)").unwrap();
    let (status, installed) = upload(&server, &package, "").await;
    assert_eq!(status, 201, "{installed}");
    let csv = "a,b\n1,2\n3,</script><script>alert(1)</script>\n";
    call(&server, "write_file", json!({"path": "data.csv", "content": csv})).await;
    let called = call(&server, "my-toolset:analyze_data", json!({"filename": "data.csv"})).await;
    assert_eq!(called["ok"], true, "{called}");
    assert_eq!(called["render_plan"]["renderer"], "html", "{called}");
    assert_eq!(called["render_plan"]["config"]["data"], called["value"]);
    let id = called["call_id"].as_str().unwrap();
    let (status, address) = server.get(&format!("/api/calls/{id}/render")).await;
    assert_eq!(status, 200, "{address}");
    let url = address["data"]["url"].as_str().unwrap();
    let page = server.bare(Method::GET, url).send().await.unwrap();
    assert_eq!(page.status(), 200);
    let policy = page.headers()["content-security-policy"].to_str().unwrap().to_owned();
    assert!(policy.starts_with("sandbox allow-scripts; default-src 'none'"), "{policy}");
    assert!(policy.ends_with("base-uri 'none'; form-action 'none'; frame-ancestors 'self'"), "{policy}");
    assert!(!policy.contains("connect-src") && !policy.contains("frame-src"), "the default holds: {policy}");
    let text = page.text().await.unwrap();
    assert!(text.contains("window.__TOOL_DATA__ = {"), "{text}");
    assert!(!text.contains("<script>alert(1)"), "data stays data");
    let asset = server.bare(Method::GET, &format!("{url}/assets/extra.js")).send().await.unwrap();
    assert_eq!(asset.text().await.unwrap(), "console.log(1)");
    for bad in [format!("{url}x"), "/render/none".to_owned(), format!("{url}/assets/../tools/analyze.py")] {
        let status = server.bare(Method::GET, &bad).send().await.unwrap().status().as_u16();
        assert_eq!(status, 404, "{bad}");
    }
    let transformed =
        call(&server, "my-toolset:transform_file", json!({"input": "data.csv", "output": "out.json"})).await;
    assert_eq!(transformed["render_plan"]["config"]["file"], "out.json", "{transformed}");
}

#[tokio::test]
async fn an_update_keeps_settings_and_can_be_rolled_back() {
    let server = Server::start().await;
    let first = files("app-builder");
    upload(&server, &first, "").await;
    // Settings of this installation.
    let (_, tool) = server.get("/api/tools/app-builder:run_command").await;
    let mut definition = tool["data"].clone();
    definition["requires_confirmation"] = json!(false);
    definition["renderers"] =
        json!([{"renderer": "terminal", "priority": 5, "config": {"content": "$return.output"}}]);
    let fields =
        ["description", "implementation", "input_schema", "requires_confirmation", "renderers", "sandbox"];
    let body: serde_json::Map<String, Value> =
        fields.iter().map(|field| ((*field).to_owned(), definition[*field].clone())).collect();
    let (status, answer) = server.put("/api/tools/app-builder:run_command", Value::Object(body)).await;
    assert_eq!(status, 200, "{answer}");
    server.post("/api/tools/app-builder:run_command/publish", json!({})).await;
    server.patch("/api/tools/app-builder:read_file", json!({"enabled": false})).await;

    let second = changed(&first, "toolset.yaml", "version: \"1.0.0\"", "version: \"1.1.0\"");
    let second = changed(&second, "tools/files.py", "\"written\": path", "\"written\": path.upper()");
    let (status, updated) = upload(&server, &second, "").await;
    assert_eq!(status, 201, "{updated}");
    assert_eq!(updated["data"]["toolset"]["version"], "1.1.0", "{updated}");
    let written = call(&server, "app-builder:write_file", json!({"path": "a", "content": ""})).await;
    assert_eq!(written["value"]["written"], "A", "{written}");
    let ran = call(&server, "app-builder:run_command", json!({"command": "echo hi"})).await;
    assert_eq!(ran["render_plan"]["renderer"], "terminal", "the setting is kept: {ran}");
    let (_, read) = server.get("/api/tools/app-builder:read_file").await;
    assert_eq!(read["data"]["enabled"], false, "{read}");

    let (status, back) = server.post("/api/toolsets/app-builder/rollback", json!({})).await;
    assert_eq!((status, &back["data"]["toolset"]["version"]), (200, &json!("1.0.0")), "{back}");
    let written = call(&server, "app-builder:write_file", json!({"path": "a", "content": ""})).await;
    assert_eq!(written["value"]["written"], "a", "{written}");
    // The files of a package are on every node that opens the store.
    std::fs::remove_dir_all(server.home.path().join("toolsets")).unwrap();
    let server = server.restart().await;
    let written = call(&server, "app-builder:write_file", json!({"path": "b", "content": ""})).await;
    assert_eq!(written["ok"], true, "{written}");
    let (status, answer) = server.post("/api/toolsets/app-builder/update", json!({})).await;
    assert_eq!((status, code(&answer)), (409, "conflict"), "it was uploaded: {answer}");
}

#[tokio::test]
async fn an_export_is_the_same_every_time_and_installs_elsewhere() {
    let server = Server::start().await;
    upload(&server, &files("my-toolset"), "").await;
    let one = export(&server, "/api/toolsets/my-toolset/export").await;
    let two = export(&server, "/api/tools/bundles/my-toolset/export").await;
    assert_eq!(one, two, "byte for byte");
    let other = Server::start().await;
    let (status, installed) = upload_bytes(&other, one.clone(), "").await;
    assert_eq!(status, 201, "{installed}");
    assert_eq!(export(&other, "/api/toolsets/my-toolset/export").await, one);
    for path in ["/api/tools/my-toolset:analyze_data", "/api/tools/my-toolset:transform_file"] {
        let fields = ["description", "input_schema", "renderers", "category", "display_name"];
        let (a, b) = (server.get(path).await.1, other.get(path).await.1);
        for field in fields {
            assert_eq!(a["data"][field], b["data"][field], "{path} {field}");
        }
        let entrypoint = |tool: &Value| tool["data"]["implementation"]["entrypoint"].clone();
        assert_eq!(entrypoint(&a), entrypoint(&b), "{path}");
    }
    // Any bundle.
    server
        .create(json!({"name": "greet", "description": "Greets", "implementation":
            {"type": "script", "runtime": "bash", "body": "echo hello $name"},
            "input_schema": {"type": "object", "properties": {"name": {"type": "string"}}}}))
        .await;
    let bundle = export(&server, "/api/tools/bundles/user-created/export").await;
    let third = Server::start().await;
    // The bundle exists there for tools of its users.
    let package = zip::read(&bundle).unwrap();
    let renamed = changed(&package, "toolset.yaml", "id: user-created", "id: from-elsewhere");
    let (status, installed) = upload(&third, &renamed, "").await;
    assert_eq!(status, 201, "{installed}");
    let greeted = call(&third, "from-elsewhere:greet", json!({"name": "Ada"})).await;
    assert_eq!(greeted["value"], "hello Ada", "{greeted}");
}

#[tokio::test]
async fn a_toolset_is_switched_and_uninstalled_with_its_servers() {
    let server = Server::start().await;
    let mut package = files("app-builder");
    let manifest = package.text("toolset.yaml").unwrap().to_owned();
    package.remove("toolset.yaml");
    let servers = "mcp_servers:\n  - id: helper\n    command: does-not-exist\n    args: [\"-y\"]\n    env:\n      API_KEY: \"${MY_API_KEY}\"\n";
    package.put_text("toolset.yaml", format!("{manifest}\n{servers}")).unwrap();
    let (_, token) = server.post("/api/tokens", json!({"name": "editor", "role": "editor"})).await;
    let token = token["data"]["token"].as_str().unwrap().to_owned();
    let request = server.bare(Method::POST, "/api/toolsets").bearer_auth(&token);
    let request = request.header("content-type", "application/zip").body(zip::write(&package).unwrap());
    assert_eq!(send(request).await.0, 403, "programs are for admins");
    let (status, installed) = upload(&server, &package, "").await;
    assert_eq!(status, 201, "{installed}");
    let (_, helper) = server.get("/api/mcp-servers/helper").await;
    assert_eq!(helper["data"]["policy"], "elevated", "until somebody reviews it: {helper}");
    let enable = server.request(Method::POST, "/api/toolsets/app-builder/enable");
    let (status, enabled) = send(enable).await;
    assert_eq!((status, &enabled["data"]["enabled"]), (200, &json!(true)), "{enabled}");
    let (status, disabled) = server.post("/api/toolsets/app-builder/enable", json!({"enabled": false})).await;
    assert_eq!((status, &disabled["data"]["enabled"]), (200, &json!(false)), "{disabled}");
    let refused = call(&server, "app-builder:read_file", json!({"path": "x"})).await;
    assert_eq!(refused["ok"], false, "{refused}");
    let (status, _) = server.delete("/api/toolsets/app-builder").await;
    assert_eq!(status, 200);
    assert_eq!(server.get("/api/tools/app-builder:read_file").await.0, 404);
    assert_eq!(server.get("/api/mcp-servers/helper").await.0, 404);
    assert_eq!(server.get("/api/toolsets").await.1["data"]["total"], 0);
    // Nothing is left that would be a bundle of the user.
    assert!(!server.home.path().join("skills/app-builder").exists());
    tokio::time::sleep(Duration::from_millis(1500)).await;
    let (status, again) = upload(&server, &files("app-builder"), "").await;
    assert_eq!(status, 201, "{again}");
}

#[tokio::test]
async fn toolsets_are_listed_page_by_page() {
    let server = Server::start().await;
    let package = files("app-builder");
    for id in ["app-builder", "another"] {
        let package = changed(&package, "toolset.yaml", "id: app-builder", &format!("id: {id}"));
        let (status, installed) = upload(&server, &package, "").await;
        assert_eq!(status, 201, "{installed}");
    }
    let mut path = "/api/toolsets?page_size=1".to_owned();
    let mut listed = Vec::new();
    loop {
        let page = server.get(&path).await.1["data"].take();
        assert_eq!((page["toolsets"].as_array().unwrap().len(), &page["total"]), (1, &json!(2)), "{page}");
        listed.push(page["toolsets"][0]["id"].as_str().unwrap().to_owned());
        let Some(token) = page["next_page_token"].as_str() else { break };
        path = format!("/api/toolsets?page_size=1&page_token={token}");
    }
    assert_eq!(listed, ["another", "app-builder"]);
}

#[tokio::test]
async fn bad_packages_leave_nothing_behind() {
    let server = Server::start().await;
    let good = files("app-builder");
    let bad = changed(&good, "toolset.yaml", "tools.files:write_file", "tools.gone:write_file");
    let bad = changed(&bad, "toolset.yaml", "type: code", "type: sparkles");
    let (status, answer) = upload(&server, &bad, "").await;
    assert_eq!(status, 400, "{answer}");
    let text = answer.to_string();
    assert!(text.contains("gone") && text.contains("sparkles"), "all errors at once: {text}");
    let mut archive = zip::write(&good).unwrap();
    archive.truncate(archive.len() / 2);
    assert_eq!(upload_bytes(&server, archive, "").await.0, 400);
    assert_eq!(upload_bytes(&server, b"no zip".to_vec(), "").await.0, 400);
    assert_eq!(server.get("/api/toolsets").await.1["data"]["total"], 0);
    let unpacked = std::fs::read_dir(server.home.path().join("toolsets")).map_or(0, Iterator::count);
    assert_eq!(unpacked, 0);
    // A bundle of the user is never replaced.
    server.put("/api/tools/bundles/app-builder", json!({"slug": "app-builder"})).await;
    let (status, answer) = upload(&server, &good, "").await;
    assert_eq!((status, code(&answer)), (409, "conflict"), "{answer}");
}

#[tokio::test]
async fn only_signed_packages_where_that_is_required() {
    let key = SigningKey::generate().unwrap();
    let trusted = TrustedKey { name: "acme".to_owned(), key: key.public_key() };
    let server = Server::start_with(|settings| {
        settings.toolsets.require_signed = true;
        settings.toolsets.trusted_keys = vec![trusted];
    })
    .await;
    let mut package = files("app-builder");
    let (status, answer) = upload(&server, &package, "").await;
    assert_eq!((status, code(&answer)), (403, "forbidden"), "{answer}");
    let mut other = package.clone();
    SigningKey::generate().unwrap().sign(&mut other).unwrap();
    assert_eq!(upload(&server, &other, "").await.0, 403);
    key.sign(&mut package).unwrap();
    let tampered = changed(&package, "tools/files.py", "written", "wrote");
    assert_eq!(upload(&server, &tampered, "").await.0, 400);
    let (status, installed) = upload(&server, &package, "").await;
    assert_eq!((status, &installed["data"]["toolset"]["signed_by"]), (201, &json!("acme")), "{installed}");
}

#[tokio::test]
async fn examples_travel_with_the_package() {
    let server = Server::start_whole(|_| {}).await;
    let (status, installed) = upload(&server, &files("app-builder"), "").await;
    assert_eq!(status, 201, "{installed}");
    let example = json!({"description": "A file", "args": {"path": "a.py", "content": "1"}, "expect": {"written": "a.py", "size": 1}});
    for name in ["second", "first"] {
        let path = format!("/api/tools/app-builder:write_file/examples/{name}");
        let (status, answer) = server.put(&path, example.clone()).await;
        assert_eq!(status, 200, "{answer}");
    }
    let exported = export(&server, "/api/toolsets/app-builder/export").await;
    assert_eq!(server.delete("/api/toolsets/app-builder").await.0, 200);
    let (status, installed) = upload_bytes(&server, exported.clone(), "").await;
    assert_eq!(status, 201, "{installed}");
    let (_, listed) = server.get("/api/tools/app-builder:write_file/examples").await;
    let examples = listed["data"]["examples"].as_array().unwrap();
    let names: Vec<_> = examples.iter().map(|example| example["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["first", "second"], "{listed}");
    assert_eq!(examples[0]["args"], example["args"]);
    assert_eq!(examples[0]["expect"], example["expect"]);
    assert_eq!(export(&server, "/api/toolsets/app-builder/export").await, exported, "reproducible");
}

#[tokio::test]
async fn code_of_every_kind_is_sandboxed_unless_that_is_granted() {
    let server = Server::start().await;
    let manifest = "manifest_version: \"1\"\nid: kinds\nversion: 1.0.0\ntools:\n";
    let implementations = [
        "{type: artifact, runtime: bash, source: 'echo 1'}",
        "{type: artifact, artifact_id: stored}",
        "{type: script, runtime: bash, body: 'echo 1'}",
        "{type: exec, argv: [echo, hi]}",
    ];
    let tools = implementations.iter().enumerate().map(|(number, implementation)| {
        format!(
            "  - {{id: t{number}, description: Runs code, permissions: {{sandbox: false}}, implementation: {implementation}}}\n"
        )
    });
    let mut package = PackageFiles::new();
    package.put_text("toolset.yaml", format!("{manifest}{}", tools.collect::<String>())).unwrap();
    for (query, sandbox) in [("", true), ("?allow_unsandboxed=true", false)] {
        let (status, installed) = upload(&server, &package, query).await;
        assert_eq!(status, 201, "{installed}");
        for number in 0..implementations.len() {
            let (_, tool) = server.get(&format!("/api/tools/kinds:t{number}")).await;
            assert_eq!(tool["data"]["sandbox"], sandbox, "{query} {tool}");
        }
        assert_eq!(server.delete("/api/toolsets/kinds").await.0, 200);
    }
}

#[tokio::test]
async fn a_package_is_a_file_of_a_form_too() {
    let server = Server::start().await;
    let archive = zip::write(&files("app-builder")).unwrap();
    let form = |names: &[&str]| {
        let mut body = Vec::new();
        for name in names {
            let head =
                format!("--b\r\ncontent-disposition: form-data; name=\"{name}\"; filename=\"x.zip\"\r\n\r\n");
            body.extend([head.as_bytes(), archive.as_slice(), b"\r\n".as_slice()].concat());
        }
        body.extend(b"--b--\r\n");
        let request = server.request(Method::POST, "/api/toolsets");
        request.header("content-type", "multipart/form-data; boundary=b").body(body)
    };
    assert_eq!(send(form(&["package", "another"])).await.0, 400);
    assert_eq!(send(form(&[])).await.0, 400);
    let (status, installed) = send(form(&["package"])).await;
    assert_eq!(status, 201, "{installed}");
}

#[tokio::test]
async fn a_dropped_package_says_how_it_is_installed() {
    let server = Server::start().await;
    let target = server.home.path().join("skills/app-builder");
    folder::unpack(&files("app-builder"), &target).unwrap();
    let shown = poll(async || {
        let listed = server.get("/api/tools").await.1.to_string();
        listed.contains("haft toolset install DIR").then_some(listed)
    })
    .await;
    assert!(shown.contains("`skills/app-builder` is the package of a toolset"), "{shown}");
    // The copied package is not a bundle, so it does not block the installation.
    let (status, installed) = upload(&server, &files("app-builder"), "").await;
    assert_eq!(status, 201, "{installed}");
}

#[tokio::test]
async fn code_is_exported_to_those_who_may_read_it() {
    let server = Server::start().await;
    assert_eq!(upload(&server, &files("app-builder"), "").await.0, 201);
    let (_, bundles) = server.get("/api/tools/bundles").await;
    let bundle =
        bundles["data"]["bundles"].as_array().unwrap().iter().find(|one| one["slug"] == "app-builder");
    let id = bundle.unwrap()["id"].as_str().unwrap().to_owned();
    let acme = tenant(&server, "acme").await;
    let get = async |token: &str, path: &str| with(&server, token, Method::GET, path, json!({})).await;
    let unknown = uuid::Uuid::now_v7().to_string();
    // The bundle of another tenant is not found.
    for (theirs, none) in [("app-builder", "nothing"), (id.as_str(), unknown.as_str())] {
        let [theirs, none] = [theirs, none].map(|key| (key, format!("/api/tools/bundles/{key}/export")));
        let (found, missing) = (get(&acme, &theirs.1).await, get(&acme, &none.1).await);
        assert_eq!((found.0, missing.0), (404, 404));
        let message =
            |answer: &Value, key: &str| answer["error"]["message"].as_str().unwrap().replace(key, "KEY");
        assert_eq!(message(&found.1, theirs.0), message(&missing.1, none.0));
    }
    let body = json!({"name": "limited", "role": "caller", "tools": ["app-builder:read_file"]});
    let limited = server.post("/api/tokens", body).await.1["data"]["token"].as_str().unwrap().to_owned();
    for path in [
        "/api/tools/bundles/app-builder/export",
        "/api/toolsets/app-builder/export",
        "/api/toolsets/app-builder/files/tools/files.py",
    ] {
        assert_eq!(get(&limited, path).await.0, 404, "{path}");
        let request = server.request(Method::GET, path).send().await.unwrap();
        assert_eq!(request.status(), 200, "{path}");
    }
    assert_eq!(get(&limited, "/api/toolsets").await.1["data"]["total"], 0);
    let body = json!({"name": "limited-editor", "role": "editor", "tools": ["app-builder:read_file"]});
    let limited = server.post("/api/tokens", body).await.1["data"]["token"].as_str().unwrap().to_owned();
    assert_eq!(get(&limited, "/api/export").await.0, 403);
    assert_eq!(with(&server, &limited, Method::DELETE, "/api/toolsets/app-builder", json!({})).await.0, 404);
}
