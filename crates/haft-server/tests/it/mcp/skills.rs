//! Agent Skills over MCP: prompts, resources, the methods of the extension, and the tool with the instructions.

use haft_package::files::PackageFiles;
use haft_package::zip;
use reqwest::Method;
use serde_json::{Value, json};

use super::client::{Session, modern, names, read_until, send};
use crate::harness::Server;

const SKILL_MD: &str = "---\nname: pdf-forms\ndescription: Fills PDF forms with given values\nlicense: MIT\n---\n\n\
                        # PDF forms\n\nRead `references/forms.md` first.\n";

fn skill(name: &str) -> PackageFiles {
    let mut files = PackageFiles::new();
    files.put_text("SKILL.md", SKILL_MD.replace("pdf-forms", name)).unwrap();
    files.put_text("references/forms.md", "# Forms\n").unwrap();
    let path = haft_package::path::PackagePath::new("assets/form.bin").unwrap();
    files.add(path, vec![0_u8, 159, 146, 150], false).unwrap();
    files.put_text("scripts/fill.sh", "#!/bin/bash\necho filled\n").unwrap();
    files
}

async fn install(server: &Server, files: &PackageFiles) {
    let request = server.request(Method::POST, "/api/toolsets").header("content-type", "application/zip");
    let (status, answer) = crate::harness::send(request.body(zip::write(files).unwrap())).await;
    assert_eq!(status, 201, "{answer}");
}

async fn ask(server: &Server, token: &str, method: &str, params: Value) -> Value {
    send(modern(server, "/mcp", token, method, params)).await.last()
}

fn listed<'a>(answer: &'a Value, list: &str, field: &str) -> Vec<&'a str> {
    let items = answer["result"][list].as_array().unwrap_or_else(|| panic!("no `{list}` in {answer}"));
    items.iter().map(|item| item[field].as_str().unwrap()).collect()
}

const URIS: [&str; 4] = [
    "skill://pdf-forms/SKILL.md",
    "skill://pdf-forms/assets/form.bin",
    "skill://pdf-forms/references/forms.md",
    "skill://pdf-forms/scripts/fill.sh",
];

#[tokio::test]
async fn a_skill_is_served_in_both_eras() {
    let server = Server::start_whole(|_| {}).await;
    install(&server, &skill("pdf-forms")).await;
    let session = Session::open(&server, "/mcp", &server.token, "2025-11-25").await;
    let both = async |method: &str, params: Value| {
        let old = session.ask(method, params.clone()).await.last();
        let new = ask(&server, &server.token, method, params).await;
        [old, new]
    };
    for answer in both("prompts/list", json!({})).await {
        let prompt = &answer["result"]["prompts"][0];
        assert_eq!(prompt["name"], "pdf-forms", "{answer}");
        assert_eq!(prompt["description"], "Fills PDF forms with given values");
    }
    let params = json!({"name": "pdf-forms", "arguments": {"task": "Fill form 7"}});
    for answer in both("prompts/get", params).await {
        let messages = &answer["result"]["messages"];
        let text = messages[0]["content"]["text"].as_str().unwrap_or_else(|| panic!("{answer}"));
        assert!(text.starts_with("# PDF forms\n\nRead `references/forms.md` first."), "{text}");
        assert!(text.contains("- skill://pdf-forms/references/forms.md"), "{text}");
        assert_eq!(messages[1]["content"]["text"], "Fill form 7");
    }
    for answer in both("resources/list", json!({})).await {
        assert_eq!(listed(&answer, "resources", "uri"), URIS);
        let main = &answer["result"]["resources"][0];
        assert_eq!(main["mimeType"], "text/markdown");
        assert_eq!(main["size"], SKILL_MD.len());
    }
    for answer in both("resources/read", json!({"uri": URIS[0]})).await {
        assert_eq!(answer["result"]["contents"][0]["text"], SKILL_MD, "{answer}");
    }
    for answer in both("resources/read", json!({"uri": URIS[1]})).await {
        assert_eq!(answer["result"]["contents"][0]["blob"], "AJ+Slg==", "{answer}");
    }
    for answer in both("skills/list", json!({})).await {
        let skill = &answer["result"]["skills"][0];
        assert_eq!(skill["uri"], URIS[0], "{answer}");
        assert_eq!(skill["frontmatter"]["license"], "MIT");
        let resources = skill["resources"].as_array().unwrap();
        assert_eq!(resources.len(), 4, "{skill}");
        let digest = format!("sha256:{}", haft_core::hash::of_bytes(SKILL_MD.as_bytes()));
        assert_eq!(resources[0]["digest"], digest);
    }
    for answer in both("skills/get", json!({"uri": URIS[0]})).await {
        assert_eq!(answer["result"]["skill"]["frontmatter"]["name"], "pdf-forms", "{answer}");
        assert_eq!(answer["result"]["resultType"], "complete");
    }
}

#[tokio::test]
async fn models_find_and_read_a_skill_by_its_tool() {
    let server = Server::start_whole(|_| {}).await;
    install(&server, &skill("pdf-forms")).await;
    let arguments = json!({"query": "fill out a PDF form"});
    let found =
        ask(&server, &server.token, "tools/call", json!({"name": "search_tools", "arguments": arguments}))
            .await;
    let text = found["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("pdf-forms:pdf-forms-skill") && text.contains("Fills PDF forms"), "{text}");
    let call = async |arguments: Value| {
        let (_, answer) = server.invoke("pdf-forms:pdf-forms-skill", arguments).await;
        answer
    };
    let read = call(json!({})).await;
    let files = json!(["assets/form.bin", "references/forms.md", "scripts/fill.sh"]);
    let instructions = "# PDF forms\n\nRead `references/forms.md` first.";
    assert_eq!(
        read["value"],
        json!({"skill": "pdf-forms", "instructions": instructions, "files": files}),
        "{read}"
    );
    let file = call(json!({"file": "./references/forms.md"})).await;
    assert_eq!(file["value"]["content"], "# Forms\n", "{file}");
    for (file, says) in [
        ("../SKILL.md", "has no file"),
        ("toolset.yaml", "has no file"),
        ("/etc/passwd", "has no file"),
        ("assets/form.bin", "is not a text"),
    ] {
        let failed = call(json!({"file": file})).await;
        assert!(failed["error"]["message"].as_str().unwrap().contains(says), "{file}: {failed}");
    }
}

#[tokio::test]
async fn a_client_sees_the_skills_of_the_tools_that_it_may_call() {
    let server = Server::start_whole(|_| {}).await;
    install(&server, &skill("pdf-forms")).await;
    install(&server, &skill("other-forms")).await;
    let token = async |tools: Value| {
        let body = json!({"name": format!("t{}", tools.to_string().len()), "role": "caller", "tools": tools});
        let (status, answer) = server.post("/api/tokens", body).await;
        assert_eq!(status, 201, "{answer}");
        answer["data"]["token"].as_str().unwrap().to_owned()
    };
    let limited = token(json!(["other-forms:*"])).await;
    let list = ask(&server, &limited, "prompts/list", json!({})).await;
    assert_eq!(listed(&list, "prompts", "name"), ["other-forms"]);
    let unknown = ask(&server, &limited, "prompts/get", json!({"name": "pdf-forms"})).await;
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    for uri in
        [URIS[0], URIS[2], "skill://other-forms/toolset.yaml", "skill://other-forms/../pdf-forms/SKILL.md"]
    {
        let unknown = ask(&server, &limited, "resources/read", json!({"uri": uri})).await;
        assert_eq!(unknown["error"]["code"], -32602, "{uri}: {unknown}");
    }
    let session = Session::open(&server, "/mcp", &limited, "2025-11-25").await;
    let unknown = session.ask("resources/read", json!({"uri": URIS[0]})).await.last();
    assert_eq!(unknown["error"]["code"], -32002, "{unknown}");
    let unknown = ask(&server, &limited, "skills/get", json!({"uri": URIS[0]})).await;
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    // The view of a bundle has the skill of that bundle.
    let view = modern(&server, "/mcp/bundles/pdf-forms", &server.token, "prompts/list", json!({}));
    assert_eq!(listed(&send(view).await.last(), "prompts", "name"), ["pdf-forms"]);
    // What needs confirmation is only available through calls.
    let path = "/api/tools/pdf-forms:pdf-forms-skill";
    let (_, tool) = server.get(path).await;
    let mut confirmed = json!({"requires_confirmation": true});
    for field in ["name", "version", "description", "implementation", "input_schema"] {
        confirmed[field] = tool["data"][field].clone();
    }
    let (status, answer) = server.put(path, confirmed).await;
    assert_eq!(status, 200, "{answer}");
    let (status, answer) = server.post("/api/tools/pdf-forms:pdf-forms-skill/publish", json!({})).await;
    assert_eq!(status, 200, "{answer}");
    let list = ask(&server, &server.token, "prompts/list", json!({})).await;
    assert_eq!(listed(&list, "prompts", "name"), ["other-forms"]);
}

#[tokio::test]
async fn clients_are_notified_of_skills() {
    let server = Server::start_whole(|_| {}).await;
    let session = Session::open(&server, "/mcp", &server.token, "2025-11-25").await;
    let mut events = session.listen().send().await.unwrap();
    install(&server, &skill("pdf-forms")).await;
    read_until(&mut events, "notifications/resources/list_changed").await;
    let params = json!({"notifications": {"promptsListChanged": true}});
    let mut subscribed =
        modern(&server, "/mcp", &server.token, "subscriptions/listen", params).send().await.unwrap();
    read_until(&mut subscribed, "subscriptions/acknowledged").await;
    let (status, answer) = server.patch("/api/tools/bundles/pdf-forms", json!({"enabled": false})).await;
    assert_eq!(status, 200, "{answer}");
    let text = read_until(&mut subscribed, "notifications/prompts/list_changed").await;
    assert!(!text.contains("notifications/tools/list_changed"), "not subscribed: {text}");
    for (method, list) in
        [("prompts/list", "prompts"), ("resources/list", "resources"), ("skills/list", "skills")]
    {
        let answer = ask(&server, &server.token, method, json!({})).await;
        assert_eq!(answer["result"][list], json!([]), "{method}: disabled bundles are hidden");
    }
    let tools = ask(&server, &server.token, "tools/list", json!({})).await;
    assert!(!names(&tools).contains(&"pdf-forms-skill"), "{tools}");
}
