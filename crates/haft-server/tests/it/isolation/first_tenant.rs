//! The first tenant, `default`: one of everything, each with words that occur nowhere else.

use std::collections::BTreeSet;

use reqwest::Method;
use serde_json::{Value, json};

use crate::applications;
use crate::harness::{Server, function_tool, poll, send};

pub(super) const TOOL: &str = "quartz-tool";
pub(super) const HTTP_TOOL: &str = "garnet-http";
pub(super) const GATED_TOOL: &str = "flint-gate";
pub(super) const CONFIRMED_TOOL: &str = "jasper-confirm";
pub(super) const BROKEN_TOOL: &str = "chert-broken";
pub(super) const BUNDLE: &str = "agate-bundle";
pub(super) const TAG: &str = "amber-tag";
pub(super) const CREDENTIAL: &str = "OBSIDIAN_KEY";
pub(super) const PROVIDER: &str = "opal-provider";
pub(super) const MCP_SERVER: &str = "coral-server";
pub(super) const TOKEN: &str = "onyx-token";
pub(super) const PERSON: &str = "onyx-person";
pub(super) const EMAIL: &str = "onyx@person.example";
pub(super) const SERVICE_ACCOUNT: &str = "onyx-account";
pub(super) const GROUP: &str = "onyx-group";
pub(super) const CLIENT: &str = "onyx-client";
pub(super) const CHAT: &str = "lapis-chat";
pub(super) const EXAMPLE: &str = "marble-example";
pub(super) const WORKSPACE: &str = "slate-workspace";
pub(super) const FILE: &str = "granite-file";
pub(super) const TOOLSET: &str = "gabbro-toolset";
pub(super) const SKILL: &str = "diorite-skill";
pub(super) const AGENT: &str = "feldspar-agent";
pub(super) const PIPELINE: &str = "travertine-pipeline";
pub(super) const ARTIFACT: &str = "chalk-artifact";
/// A third tenant, whose id is a secret, too.
pub(super) const OTHER_TENANT: &str = "zircon-tenant";
/// The key of a call of the global tool `hello`.
pub(super) const KEY: &str = "same-key-in-both-tenants";
/// The arguments of all calls.
pub(super) const ARGUMENT: &str = "ruby-argument";

/// Names by which the things of the tenant are requested.
pub(super) const NAMES: [&str; 25] = [
    TOOL,
    HTTP_TOOL,
    GATED_TOOL,
    CONFIRMED_TOOL,
    BROKEN_TOOL,
    BUNDLE,
    TAG,
    CREDENTIAL,
    MCP_SERVER,
    TOKEN,
    PERSON,
    EMAIL,
    SERVICE_ACCOUNT,
    GROUP,
    CLIENT,
    CHAT,
    EXAMPLE,
    WORKSPACE,
    FILE,
    TOOLSET,
    SKILL,
    AGENT,
    PIPELINE,
    ARTIFACT,
    OTHER_TENANT,
];

/// Words inside the things of the tenant.
const CONTENTS: [&str; 27] = [
    "sapphire-title",
    "opal-first-description",
    "opal-second-description",
    "topaz-default",
    "beryl-path",
    "peridot-bundle-description",
    "chert-secret-line",
    "jade-credential-value",
    "pearl-rule",
    "pearl-reason",
    "coral-path",
    "cobalt-tenant-name",
    "malachite-note",
    "basalt-hook",
    "shale-content",
    "schist-title",
    "gneiss-message",
    "diorite-description",
    "diorite-instructions",
    "gypsum-answer",
    "mica-instructions",
    "calcite-question",
    "dolomite-model",
    "limestone-document",
    "siltstone-text",
    "pumice-source",
    ARGUMENT,
];

/// What the first tenant owns.
pub(super) struct FirstTenant {
    pub(super) tool: String,
    pub(super) bundle: String,
    pub(super) token: String,
    pub(super) person: String,
    pub(super) service_account: String,
    pub(super) group: String,
    /// An application that an admin created, and its connection.
    pub(super) client: String,
    pub(super) application: String,
    pub(super) approval: String,
    /// An approval that is remembered.
    pub(super) grant: String,
    pub(super) webhook: String,
    /// A delivery to the webhook.
    pub(super) delivery: String,
    /// A chat, one of its messages, and a state of the workspace.
    pub(super) chat: String,
    pub(super) message: String,
    pub(super) manifest: String,
    /// An agent and one of its runs.
    pub(super) agent: String,
    pub(super) run: String,
    /// A pipeline with a document, and a code artifact.
    pub(super) pipeline: String,
    pub(super) document: String,
    pub(super) artifact: String,
    /// A call that runs until the test opens the gate.
    pub(super) running: String,
    /// Calls that succeeded, failed, run, and wait for approval.
    pub(super) calls: Vec<String>,
    /// The cookie of a browser session.
    pub(super) cookie: String,
    /// The code of a login link that was not used.
    pub(super) code: String,
    /// All names, ids, words and secrets that no other tenant may learn.
    pub(super) secrets: BTreeSet<String>,
}

impl FirstTenant {
    /// Creates everything.
    pub(super) async fn create(server: &Server) -> Self {
        let (tool, bundle) = create_tools(server).await;
        let (token, value) = create_settings(server).await;
        let (person, service_account, group) = create_people(server).await;
        let (webhook, delivery) = create_webhook(server).await;
        let (chat, message, manifest) = create_chat(server).await;
        let (agent, run) = create_agent(server).await;
        let (pipeline, document) = create_pipeline(server).await;
        let artifact = create_artifact(server).await;
        let grant = remember_approval(server, &value).await;
        let (calls, approval) = make_calls(server, &value).await;
        let form = server.bare(Method::POST, "/login").header("sec-fetch-site", "same-origin");
        let form = form.header("content-type", "application/x-www-form-urlencoded");
        let (cookie, code) = log_in(server, form.body(format!("token={value}"))).await;
        let (client, application) = applications::connect(server, &cookie, CLIENT).await;
        let mut first = Self {
            tool,
            bundle,
            token,
            person,
            service_account,
            group,
            client,
            application,
            approval,
            grant,
            webhook,
            delivery,
            chat,
            message,
            manifest,
            agent,
            run,
            pipeline,
            document,
            artifact,
            running: calls[2].clone(),
            calls,
            cookie,
            code,
            secrets: NAMES.into_iter().chain(CONTENTS).map(str::to_owned).collect(),
        };
        let cookie = first.cookie.split_once('=').unwrap().1.to_owned();
        let home = server.home.path().to_str().unwrap().to_owned();
        first.secrets.extend([value, cookie, first.code.clone(), server.token.clone(), home]);
        let mut ids = BTreeSet::new();
        collect_ids(&first.snapshot(server).await, &mut ids);
        let mut global = BTreeSet::new();
        collect_ids(&server.get("/api/tools/builtins/templates").await.1, &mut global);
        first.secrets.extend(ids.difference(&global).cloned());
        assert!(first.secrets.contains(&first.tool) && first.secrets.contains(&first.approval));
        first
    }

    /// Returns everything that the tenant has, to compare before and after.
    pub(super) async fn snapshot(&self, server: &Server) -> Value {
        let tool = &self.tool;
        let mut paths = vec![
            "/api/tools?filter=skills&include_disabled=true&page_size=100".to_owned(),
            "/api/tools/bundles?include_disabled=true&bundle_ids=agate-bundle,user-created".to_owned(),
            format!("/api/tools/{tool}/revisions"),
            format!("/api/tools/{tool}/source"),
            format!("/api/tools/{tool}/examples"),
            "/api/calls?page_size=100".to_owned(),
            "/api/approvals".to_owned(),
            "/api/approval-grants".to_owned(),
            "/api/chats".to_owned(),
            format!("/api/chats/{}/messages", self.chat),
            format!("/api/chats/{}/workspace/files", self.chat),
            "/api/agents".to_owned(),
            format!("/api/agents/{AGENT}"),
            format!("/api/agents/{AGENT}/revisions"),
            "/api/runs".to_owned(),
            "/api/pipelines".to_owned(),
            format!("/api/pipelines/{PIPELINE}/documents"),
            "/api/code-artifacts".to_owned(),
            format!("/api/code-artifacts/{ARTIFACT}/versions"),
            format!("/api/runs/{}/steps", self.run),
            "/api/toolsets".to_owned(),
            format!("/api/toolsets/{TOOLSET}"),
            "/api/workspaces".to_owned(),
            format!("/api/workspaces/{WORKSPACE}/files"),
            format!("/api/workspaces/{WORKSPACE}/manifests"),
            "/api/credentials".to_owned(),
            "/api/account-providers".to_owned(),
            "/api/tokens".to_owned(),
            "/api/people".to_owned(),
            "/api/service-accounts".to_owned(),
            "/api/groups".to_owned(),
            "/api/applications".to_owned(),
            "/api/application-clients".to_owned(),
            "/api/policy".to_owned(),
            "/api/policy?scope=platform".to_owned(),
            "/api/mcp-servers".to_owned(),
            "/api/webhooks".to_owned(),
            "/api/tenants".to_owned(),
            "/api/audit?page_size=100".to_owned(),
        ];
        paths.extend(self.calls.iter().map(|call| format!("/api/calls/{call}")));
        let mut snapshot = json!({});
        for path in paths {
            let (status, answer) = server.get(&path).await;
            assert_eq!(status, 200, "{path}: {answer}");
            snapshot[path] = answer["data"].clone();
        }
        // The requests of this tenant count as activity of its owner.
        for person in snapshot["/api/people"]["people"].as_array_mut().unwrap() {
            person["last_seen_at"].take();
        }
        snapshot
    }
}

async fn create_tools(server: &Server) -> (String, String) {
    let body = json!({"display_name": "sapphire-title", "description": "peridot-bundle-description"});
    let (status, bundle) = server.put(&format!("/api/tools/bundles/{BUNDLE}"), body).await;
    assert_eq!(status, 201, "{bundle}");
    let create = async |definition: Value| {
        let (status, answer) = server.post(&format!("/api/tools?bundle={BUNDLE}"), definition).await;
        assert_eq!(status, 201, "{answer}");
        answer["data"]["id"].as_str().unwrap().to_owned()
    };
    let mut definition = function_tool(TOOL, "echo");
    definition["display_name"] = json!("sapphire-title");
    definition["description"] = json!("opal-first-description");
    definition["tags"] = json!([TAG]);
    definition["input_schema"] = json!({
        "type": "object",
        "properties": {"topic": {"type": "string", "default": "topaz-default"}},
    });
    let tool = create(definition.clone()).await;
    assert_eq!(server.post(&format!("/api/tools/{tool}/publish"), json!({})).await.0, 200);
    definition["description"] = json!("opal-second-description");
    let (status, answer) = server.put(&format!("/api/tools/{tool}"), definition).await;
    assert_eq!(status, 200, "{answer}");

    let example = json!({"args": {"topic": ARGUMENT}});
    let (status, answer) = server.put(&format!("/api/tools/{tool}/examples/{EXAMPLE}"), example).await;
    assert_eq!(status, 200, "{answer}");

    let mut http = function_tool(HTTP_TOOL, "echo");
    http["implementation"] = json!({"type": "http", "method": "GET", "url": "http://127.0.0.1:9/beryl-path"});
    create(http).await;
    create(function_tool(GATED_TOOL, "gate")).await;
    let mut confirmed = function_tool(CONFIRMED_TOOL, "echo");
    confirmed["requires_confirmation"] = json!(true);
    create(confirmed).await;
    let folder = server.home.path().join("skills").join(BUNDLE);
    std::fs::write(folder.join(format!("{BROKEN_TOOL}.yaml")), "name: [chert-secret-line\n").unwrap();
    poll(async || {
        let (_, list) = server.get("/api/tools?filter=skills").await;
        list.to_string().contains(BROKEN_TOOL).then_some(())
    })
    .await;
    (tool, bundle["data"]["id"].as_str().unwrap().to_owned())
}

/// Creates a credential, rules, an MCP server, tenants and a token; returns the id and the value of the token.
async fn create_settings(server: &Server) -> (String, String) {
    let rules = json!({"rules": [{
        "name": "pearl-rule", "match": {"tools": ["some-other-tool"]}, "effect": "deny", "reason": "pearl-reason",
    }]});
    let mcp_server = json!({"id": MCP_SERVER, "url": "http://127.0.0.1:9/coral-path", "enabled": false});
    for (method, path, body, expected) in [
        (
            Method::PUT,
            &*format!("/api/credentials/{CREDENTIAL}"),
            json!({"value": "jade-credential-value"}),
            200,
        ),
        (
            Method::PUT,
            &*format!("/api/account-providers/{PROVIDER}"),
            json!({"help": "opal-provider-help"}),
            200,
        ),
        (Method::PUT, "/api/policy", rules, 200),
        (Method::POST, "/api/mcp-servers", mcp_server, 201),
        (Method::PATCH, "/api/tenants/default", json!({"name": "cobalt-tenant-name"}), 200),
        (Method::POST, "/api/tenants", json!({"id": OTHER_TENANT}), 201),
    ] {
        let (status, answer) = send(server.request(method, path).body(body.to_string())).await;
        assert_eq!(status, expected, "{path}: {answer}");
    }
    let (_, token) = server.post("/api/tokens", json!({"name": TOKEN, "role": "caller"})).await;
    let text = |field: &str| token["data"][field].as_str().unwrap().to_owned();
    (text("id"), text("token"))
}

/// Creates a person, a service account and a group; returns their ids.
async fn create_people(server: &Server) -> (String, String, String) {
    let create = async |path: &str, body: Value| {
        let (status, answer) = server.post(path, body).await;
        assert_eq!(status, 201, "{path}: {answer}");
        answer["data"]["id"].as_str().unwrap().to_owned()
    };
    let person = create("/api/people", json!({"name": PERSON, "email": EMAIL})).await;
    let account = json!({"name": SERVICE_ACCOUNT, "responsible": EMAIL, "description": "schist-title"});
    let account = create("/api/service-accounts", account).await;
    let group = create("/api/groups", json!({"name": GROUP, "members": [PERSON]})).await;
    (person, account, group)
}

/// Approves a call and has that remembered; returns the id of what is remembered.
async fn remember_approval(server: &Server, token: &str) -> String {
    let path = format!("/api/tools/{CONFIRMED_TOOL}/invoke");
    let body = json!({"args": {"topic": "remembered"}}).to_string();
    let (_, answer) = send(server.bare(Method::POST, &path).bearer_auth(token).body(body)).await;
    let path = format!("/api/approvals/{}/approve", answer["approval_id"].as_str().unwrap());
    let (status, answer) = server.post(&path, json!({"remember": {"scope": "token"}})).await;
    assert_eq!(status, 200, "{answer}");
    let (_, grants) = server.get("/api/approval-grants").await;
    grants["data"]["grants"][0]["id"].as_str().unwrap().to_owned()
}

/// Makes calls that succeed, fail, run, and wait; returns their ids and that of the approval.
async fn make_calls(server: &Server, token: &str) -> (Vec<String>, String) {
    let body = json!({"args": {"topic": ARGUMENT}, "chat_id": CHAT}).to_string();
    let call = async |path: &str| {
        let request = server.bare(Method::POST, path).bearer_auth(token).header("idempotency-key", KEY);
        send(request.body(body.clone())).await.1
    };
    let mut calls = Vec::new();
    for path in [
        format!("/api/tools/{TOOL}/invoke"),
        format!("/api/tools/{HTTP_TOOL}/invoke"),
        format!("/api/tools/{GATED_TOOL}/invoke?async=true"),
        format!("/api/tools/{CONFIRMED_TOOL}/invoke"),
    ] {
        // A key belongs to one call, so that of the global tool comes last.
        let request = server.bare(Method::POST, &path).bearer_auth(token).body(body.clone());
        let (_, answer) = send(request).await;
        calls.push(answer["call_id"].as_str().unwrap_or_else(|| panic!("{path}: {answer}")).to_owned());
    }
    server.gate.entered(1).await;
    calls.push(call("/api/tools/hello/invoke").await["call_id"].as_str().unwrap().to_owned());
    let note = json!({"path": "note.txt", "content": "malachite-note"});
    let (_, written) = server.invoke("write_file", note).await;
    assert_eq!(written["ok"], true, "{written}");
    let (_, approvals) = server.get("/api/approvals").await;
    let approval = approvals["data"]["approvals"][0]["id"].as_str().unwrap().to_owned();
    (calls, approval)
}

/// Creates a chat with a message and a file, and a workspace with a file. Returns the chat, the message, and the state
/// of the workspace.
async fn create_chat(server: &Server) -> (String, String, String) {
    let chat = server.post("/api/chats", json!({"title": "schist-title"})).await.1;
    let chat = chat["data"]["id"].as_str().unwrap().to_owned();
    let path = format!("/api/chats/{chat}/messages");
    let message = server.post(&path, json!({"content": "gneiss-message"})).await.1;
    let message = message["data"]["message"]["id"].as_str().unwrap().to_owned();
    let mut skill = haft_package::files::PackageFiles::new();
    let text = format!("---\nname: {SKILL}\ndescription: diorite-description\n---\ndiorite-instructions\n");
    skill.put_text("SKILL.md", text).unwrap();
    skill.put_text("references/diorite.md", "diorite-instructions").unwrap();
    for files in [haft_package::skeleton::skeleton(TOOLSET).unwrap(), skill] {
        let archive = haft_package::zip::write(&files).unwrap();
        let request = server.request(Method::POST, "/api/toolsets").header("content-type", "application/zip");
        let (status, answer) = send(request.body(archive)).await;
        assert_eq!(status, 201, "{answer}");
    }
    let mut manifest = String::new();
    for base in [format!("/api/chats/{chat}/workspace"), format!("/api/workspaces/{WORKSPACE}")] {
        let path = format!("{base}/files/{FILE}");
        let (status, written) = send(server.request(Method::PUT, &path).body("shale-content")).await;
        assert_eq!(status, 200, "{written}");
        written["data"]["post_manifest"].as_str().unwrap().clone_into(&mut manifest);
    }
    (chat, message, manifest)
}

/// Creates an agent with a scripted model, and lets it answer; returns the agent and the run.
async fn create_agent(server: &Server) -> (String, String) {
    let definition = json!({
        "slug": AGENT, "instructions": "mica-instructions", "tools": [TOOL],
        "model": {"name": "scripted/dolomite-model", "script": "turns: [{text: gypsum-answer}]"},
    });
    let (status, agent) = server.post("/api/agents", definition).await;
    assert_eq!(status, 201, "{agent}");
    let path = format!("/api/agents/{AGENT}/runs");
    let (status, run) = server.post(&path, json!({"input": "calcite-question"})).await;
    assert_eq!((status, &run["data"]["output"]), (200, &json!("gypsum-answer")), "{run}");
    let id = |answer: &Value| answer["data"]["id"].as_str().unwrap().to_owned();
    (id(&agent), id(&run))
}

/// Creates a pipeline with a document; returns their ids.
async fn create_pipeline(server: &Server) -> (String, String) {
    let (status, pipeline) = server.post("/api/pipelines", json!({"slug": PIPELINE})).await;
    assert_eq!(status, 201, "{pipeline}");
    let path = format!("/api/pipelines/{PIPELINE}/documents");
    let body = json!({"name": "limestone-document.md", "text": "The siltstone-text of the document."});
    let (status, answer) = server.post(&path, body).await;
    assert!((200..300).contains(&status), "{answer}");
    // Its state no longer changes.
    let document = poll(async || {
        let (_, list) = server.get(&path).await;
        let document = list["data"]["documents"][0].clone();
        let path = format!("/api/pipelines/{PIPELINE}/query");
        let (_, hits) = server.post(&path, json!({"query": "siltstone-text"})).await;
        let is_indexed = !hits["data"]["hits"].as_array()?.is_empty();
        is_indexed.then(|| document["id"].as_str().unwrap().to_owned())
    });
    let document = document.await;
    (pipeline["data"]["id"].as_str().unwrap().to_owned(), document)
}

async fn create_artifact(server: &Server) -> String {
    let body = json!({"slug": ARTIFACT, "runtime": "bash", "source": "echo pumice-source"});
    let (status, artifact) = server.post("/api/code-artifacts", body).await;
    assert_eq!(status, 201, "{artifact}");
    artifact["data"]["id"].as_str().unwrap().to_owned()
}

/// Creates a webhook and a delivery to it; returns their ids.
async fn create_webhook(server: &Server) -> (String, String) {
    // Only approvals that expire, so that nothing but the test is delivered.
    let body = json!({"url": "http://127.0.0.1:9/basalt-hook", "events": ["approval.expired"]});
    let (status, webhook) = server.post("/api/webhooks", body).await;
    assert_eq!(status, 201, "{webhook}");
    let id = webhook["data"]["id"].as_str().unwrap().to_owned();
    let (status, delivery) = server.post(&format!("/api/webhooks/{id}/test"), json!({})).await;
    assert_eq!(status, 200, "{delivery}");
    (id, delivery["data"]["id"].as_str().unwrap().to_owned())
}

/// Opens a session and creates a login link; returns the cookie and the code.
async fn log_in(server: &Server, form: reqwest::RequestBuilder) -> (String, String) {
    let client = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none());
    let response = client.build().unwrap().execute(form.build().unwrap()).await.unwrap();
    let cookie = response.headers()["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
    let (_, link) = server.post("/api/login-links", json!({})).await;
    let code = link["data"]["url"].as_str().unwrap().split_once("code=").unwrap().1.to_owned();
    (cookie, code)
}

/// Collects all UUIDs in a value.
pub(super) fn collect_ids(value: &Value, ids: &mut BTreeSet<String>) {
    match value {
        Value::String(text) if text.parse::<uuid::Uuid>().is_ok() => drop(ids.insert(text.clone())),
        Value::Array(items) => items.iter().for_each(|item| collect_ids(item, ids)),
        Value::Object(fields) => fields.values().for_each(|field| collect_ids(field, ids)),
        _ => {}
    }
}
