//! Logins of haft at servers of other projects: the OAuth provider of `FastMCP`, and the example servers of the Python SDK.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use haft_testkit::prerequisite::{Prerequisite, skip};
use reqwest::Method;
use reqwest::header::LOCATION;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

use crate::accounts::{invite, invoke, mcp_call, visit};
use crate::agents::{create, scripted};
use crate::harness::{Server, code, poll};
use crate::login::browser;
use crate::people::Person;
use crate::postgres::{database, on};
use crate::runs::ended;
use crate::tenants::with;
use crate::waiting::finished;

/// Returns a file of the peers, if they are installed.
fn peer(path: &str) -> Option<PathBuf> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/peers").join(path);
    if !file.exists() {
        skip(Prerequisite::McpPeers, &format!("`{}` is not installed", file.display()));
        return None;
    }
    Some(file)
}

/// Returns where a page leads.
async fn follow(page: &str) -> String {
    let response = browser().get(page).send().await.unwrap();
    let status = response.status();
    let location = response.headers().get(LOCATION).map(|to| to.to_str().unwrap().to_owned());
    location.unwrap_or_else(|| panic!("{status} {page}"))
}

/// Returns path and query of a URL.
fn path(url: &str) -> String {
    let url = url::Url::parse(url).unwrap();
    format!("{}?{}", url.path(), url.query().unwrap())
}

/// An MCP server with the OAuth provider of `FastMCP`, which knows who logged in.
struct Mail {
    _child: Child,
    url: String,
}

impl Mail {
    #[expect(clippy::disallowed_methods, reason = "the server of another project is under test")]
    async fn start(python: &Path) -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers/mail_server.py");
        let mut command = Command::new(python);
        command.arg(script).stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let port = lines.next_line().await.unwrap().unwrap();
        Self { _child: child, url: format!("http://127.0.0.1:{port}/mcp") }
    }
}

/// Logs a person in at the server `mail`; the login begins on one node and ends on another.
async fn connect(person: &Person, name: &str, begins: &Server, ends: &Server) {
    let begin = "/api/accounts/mcp:mail/connect";
    let (status, answer) = person.send(begins, Method::POST, begin, Value::Null).await;
    assert_eq!(status, 200, "{answer}");
    let login = follow(answer["data"]["authorization_url"].as_str().unwrap()).await;
    let callback = path(&follow(&format!("{login}&as={name}")).await);
    let (status, page) = visit(person, ends, &callback).await;
    assert_eq!(status, 303, "{page}");
}

/// Waits until a node knows the tool; returns the answer of a call.
async fn inbox(person: &Person, server: &Server) -> (u16, Value) {
    poll(async || Some(invoke(person, server, "mail:inbox").await).filter(|(status, _)| *status != 404)).await
}

/// Calls the tool over MCP; returns whether it failed, and the text.
async fn over_mcp(server: &Server, token: &str) -> (bool, String) {
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "inbox", "arguments": {}, "_meta": crate::accounts::meta()}});
    let answer = mcp_call(server, token, call).await;
    let result = &answer["result"];
    (result["isError"] == true, result["content"][0]["text"].as_str().unwrap_or_default().to_owned())
}

/// Asks the agent `reader` in a new chat; returns the run.
async fn ask(person: &Person, server: &Server) -> Value {
    let created = poll(async || {
        let (status, chat) =
            person.send(server, Method::POST, "/api/chats", json!({"agent": "reader"})).await;
        (status == 201).then_some(chat)
    })
    .await;
    let path = format!("/api/chats/{}/messages", created["data"]["id"].as_str().unwrap());
    let (status, asked) = person.send(server, Method::POST, &path, json!({"content": "go"})).await;
    assert_eq!(status, 201, "{asked}");
    asked["data"]["run"].clone()
}

#[tokio::test]
async fn two_people_with_accounts_at_fastmcp_see_only_their_own_data() {
    let Some(python) = peer("python/bin/python") else { return };
    let mail = Mail::start(&python).await;
    let database = database().await;
    let (one, other) = (on(&database.url).await, on(&database.url).await);
    let (ann, bob) = (invite(&one, "ann").await, invite(&one, "bob").await);
    let body = json!({"id": "mail", "url": mail.url, "credentials": "person"});
    let (status, answer) = one.post("/api/mcp-servers", body).await;
    assert_eq!(status, 201, "{answer}");
    // The list of tools is that of the first person.
    poll(async || (ann.get(&other, "/api/accounts").await.0 == 200).then_some(())).await;
    connect(&ann, "ann", &one, &other).await;
    for server in [&one, &other] {
        let (status, answer) = inbox(&ann, server).await;
        assert_eq!((status, &answer["value"]["result"]), (200, &json!("mail of ann")), "{answer}");
        let (status, answer) = inbox(&bob, server).await;
        assert_eq!((status, code(&answer)), (403, "credential_required"), "{answer}");
        assert!(!answer.to_string().contains("ann"), "{answer}");
    }

    // A queued call and a chat of bob wait on one node, and go on when he connects on the other.
    let script = r#"
turns:
  - when: {tool: inbox, failed: false}
    text: "It says: {{result.result}}."
  - when: {tool: inbox, failed: true}
    text: "No mail."
  - text: I look.
    calls: [{tool: inbox, arguments: {}}]
"#;
    create(&one, scripted("reader", &["mail:inbox"], script)).await;
    let queue = "/api/tools/mail:inbox/invoke?async=true";
    let (status, queued) = bob.send(&one, Method::POST, queue, json!({"args": {}})).await;
    assert_eq!((status, code(&queued)), (202, "credential_required"), "{queued}");
    let asked = ask(&bob, &one).await;
    assert_eq!(asked["status"], "awaiting_approval", "{asked}");
    connect(&bob, "bob", &other, &one).await;
    assert_eq!(finished(&other, &queued["call_id"]).await["value"]["result"], "mail of bob");
    assert_eq!(ended(&other, asked["id"].as_str().unwrap()).await["output"], "It says: mail of bob.");

    let (_, of_ann) = ann.token(&one, json!({"role": "caller"})).await;
    let (_, of_bob) = bob.token(&one, json!({"role": "caller"})).await;
    for server in [&one, &other] {
        for (person, token, name) in [(&ann, &of_ann, "ann"), (&bob, &of_bob, "bob")] {
            let mail = format!("mail of {name}");
            assert_eq!(inbox(person, server).await.1["value"]["result"], mail);
            let known = async || {
                (with(server, token, Method::GET, "/api/session", Value::Null).await.0 == 200).then_some(())
            };
            poll(known).await;
            let (failed, text) = over_mcp(server, token).await;
            assert!(!failed && text.contains(&mail), "{text}");
            let (_, queued) = person.send(server, Method::POST, queue, json!({"args": {}})).await;
            assert_eq!(finished(server, &queued["call_id"]).await["value"]["result"], mail);
            let run = ask(person, server).await;
            let run = ended(server, run["id"].as_str().unwrap()).await;
            assert_eq!(run["output"], format!("It says: {mail}."), "{run}");
        }
    }

    // What one revokes on one node leaves the other's.
    assert_eq!(ann.send(&one, Method::DELETE, "/api/accounts/mcp:mail", Value::Null).await.0, 200);
    for server in [&one, &other] {
        let (status, answer) = inbox(&ann, server).await;
        assert_eq!((status, code(&answer)), (403, "credential_required"), "{answer}");
        let (failed, text) = over_mcp(server, &of_ann).await;
        assert!(failed && text.contains("/ui/accounts?connect=mcp:mail") && !text.contains("bob"), "{text}");
        let run = ask(&ann, server).await;
        assert_eq!(run["status"], "awaiting_approval", "{run}");
        assert_eq!(inbox(&bob, server).await.1["value"]["result"], "mail of bob");
        let (failed, text) = over_mcp(server, &of_bob).await;
        assert!(!failed && text.contains("mail of bob"), "{text}");
    }
}

/// An example server of the Python SDK: at its login page, the demo user logs in.
struct Example {
    _children: Vec<Child>,
    url: String,
}

impl Example {
    /// Starts the server that is its own authorization server, or one with another.
    async fn start(python: &Path, examples: &Path, is_split: bool) -> Self {
        let (port, auth_port) = (free_port(), free_port());
        let mut children = Vec::new();
        let port_arg = format!("--port={port}");
        if is_split {
            let auth_port_arg = format!("--port={auth_port}");
            let auth_server = format!("--auth-server=http://localhost:{auth_port}");
            children.push(module(python, examples, "auth_server", &[&auth_port_arg]));
            reachable(auth_port).await;
            children.push(module(python, examples, "server", &[&port_arg, &auth_server, "--oauth-strict"]));
        } else {
            children.push(module(python, examples, "legacy_as_server", &[&port_arg]));
        }
        reachable(port).await;
        Self { _children: children, url: format!("http://localhost:{port}/mcp") }
    }
}

/// Returns a port that is free now.
fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

async fn reachable(port: u16) {
    poll(async || tokio::net::TcpStream::connect(("localhost", port)).await.ok()).await;
}

#[expect(clippy::disallowed_methods, reason = "the server of another project is under test")]
fn module(python: &Path, examples: &Path, name: &str, args: &[&str]) -> Child {
    let mut command = Command::new(python);
    command.args(["-m", &format!("mcp_simple_auth.{name}")]).args(args).env("PYTHONPATH", examples);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    command.spawn().unwrap()
}

#[tokio::test]
async fn haft_logs_in_to_the_example_servers_of_the_python_sdk() {
    let (Some(python), Some(examples)) =
        (peer("python/bin/python"), peer("python-sdk/examples/servers/simple-auth"))
    else {
        return;
    };
    for is_split in [false, true] {
        let example = Example::start(&python, &examples, is_split).await;
        let server = Server::start_with(|settings| {
            settings.egress.private_hosts = vec!["127.0.0.1".to_owned(), "localhost".to_owned()];
        })
        .await;
        let ann = invite(&server, "ann").await;
        let body = json!({"id": "mail", "url": example.url, "credentials": "person"});
        let (status, answer) = server.post("/api/mcp-servers", body).await;
        assert_eq!(status, 201, "{answer}");
        let begin = "/api/accounts/mcp:mail/connect";
        let (status, answer) = ann.send(&server, Method::POST, begin, Value::Null).await;
        assert_eq!(status, 200, "split: {is_split}: {answer}");
        let login =
            url::Url::parse(&follow(answer["data"]["authorization_url"].as_str().unwrap()).await).unwrap();
        let state = login.query_pairs().find(|(name, _)| name == "state").unwrap().1.into_owned();
        let mut form = url::form_urlencoded::Serializer::new(String::new());
        form.extend_pairs([("state", &*state), ("username", "demo_user"), ("password", "demo_password")]);
        let request = browser().post(login.join("/login/callback").unwrap());
        let request = request.header("content-type", "application/x-www-form-urlencoded").body(form.finish());
        let response = request.send().await.unwrap();
        let callback = path(response.headers()[LOCATION].to_str().unwrap());
        let (status, page) = visit(&ann, &server, &callback).await;
        assert_eq!(status, 303, "split: {is_split}: {page}");
        let (status, answer) = poll(async || {
            Some(invoke(&ann, &server, "mail:get_time").await).filter(|(status, _)| *status != 404)
        })
        .await;
        assert_eq!(
            (status, &answer["value"]["timezone"]),
            (200, &json!("UTC")),
            "split: {is_split}: {answer}"
        );
    }
}
