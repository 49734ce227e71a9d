//! Input that is wrong on purpose: a clear error, and nothing lost.

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Server, code, function_tool, send};

fn http_tool(name: &str, url: &str) -> Value {
    json!({
        "name": name, "description": "Fetches a page",
        "implementation": {"type": "http", "method": "GET", "url": url},
        "input_schema": {"type": "object", "properties": {"x": {"type": "string"}}},
    })
}

#[tokio::test]
async fn errors_in_definitions_have_a_position() {
    let server = Server::start().await;
    let cases: [(&str, &str, &str); 11] = [
        ("application/json", "{\"name\": \"a\",}", "line 1"),
        ("application/json", "[1, 2]", ""),
        ("application/json", "", ""),
        ("application/yaml", "name: a\n  bad: [", "line"),
        (
            "application/yaml",
            "a: &a [x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e]\ng: [*f,*f,*f,*f,*f,*f,*f,*f]\n",
            "",
        ),
        ("application/x-haft-skill", "name: x\nno front matter", ""),
        ("text/html", "<p>", "text/html"),
        (
            "application/json",
            r#"{"name":"a","description":"d","implementation":{"type":"quantum"}}"#,
            "quantum",
        ),
        (
            "application/json",
            r#"{"name":"a","description":"d","implementation":{"type":"http","url":"ftp://x"}}"#,
            "http",
        ),
        (
            "application/yaml",
            "name: a\ndescription: d\nparams: []\nexecution:\n  max_concurrency: 0\n\
             implementation: {type: http, url: https://a.example}\n",
            "line 5, column 3: `execution.max_concurrency`",
        ),
        (
            "application/json",
            "{\n\"name\": \"a\", \"description\": \"d\",\n\"execution\": {\"max_concurrency\": 0},\n\
             \"implementation\": {\"type\": \"http\", \"url\": \"https://a.example\"}}",
            "line 3",
        ),
    ];
    for (media, text, part) in cases {
        let request = server.request(Method::POST, "/api/tools").header("content-type", media).body(text);
        let (status, answer) = send(request).await;
        assert!(status == 400 || status == 415, "{text}: {status} {answer}");
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.contains(part) && !message.is_empty(), "{text}: {message}");
    }
    let (_, answer) = server.get("/api/tools?filter=skills&include_disabled=true").await;
    assert_eq!(answer["data"]["total"], 0);
}

#[tokio::test]
async fn invalid_names_are_rejected() {
    let server = Server::start().await;
    for name in ["", " ", "a b", "a/b", "../x", "..", "a\u{0}b", "a\nb", "🌧", &"x".repeat(65), "a:b", "a@b"]
    {
        let (status, answer) = server.post("/api/tools", function_tool(name, "echo")).await;
        assert_eq!((status, code(&answer)), (400, "invalid_definition"), "{name:?} {answer}");
    }
    let files: Vec<_> =
        std::fs::read_dir(server.home.path()).unwrap().map(|f| f.unwrap().file_name()).collect();
    assert!(files.iter().all(|name| !name.to_string_lossy().starts_with('x')), "{files:?}");
}

#[tokio::test]
async fn bodies_are_bounded() {
    let server = Server::start().await;
    let huge = vec![b' '; 100 * 1024 * 1024];
    let response = server.request(Method::POST, "/api/tools/hello/invoke").body(huge).send().await;
    // The server may close the connection while the client is still sending.
    if let Ok(response) = response {
        assert_eq!(response.status(), 413);
    }
    let deep = format!("{{\"args\":{}{}}}", "[".repeat(10_000), "]".repeat(10_000));
    let (status, answer) = send(server.request(Method::POST, "/api/tools/hello/invoke").body(deep)).await;
    assert_eq!((status, code(&answer)), (400, "invalid_request"), "{answer}");
    let (status, answer) =
        send(server.request(Method::POST, "/api/tools").body("x".repeat(3 * 1024 * 1024))).await;
    assert_eq!((status, code(&answer)), (400, "invalid_definition"), "{answer}");
    assert_eq!(server.invoke("hello", json!({"still": "alive"})).await.0, 200);
}

#[tokio::test]
async fn private_addresses_are_rejected_in_every_notation() {
    let server = Server::start_with(|settings| settings.egress.private_hosts = Vec::new()).await;
    for (index, host) in [
        "127.0.0.1",
        "localhost",
        "127.1",
        "0x7f.0.0.1",
        "0177.0.0.1",
        "2130706433",
        "0",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[64:ff9b::7f00:1]",
        "10.0.0.1",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "[fd00::1]",
        "[fe80::1]",
        "0.0.0.0",
        "224.0.0.1",
        "127.0.0.1.",
    ]
    .iter()
    .enumerate()
    {
        let name = format!("probe-{index}");
        server.create(http_tool(&name, &format!("http://{host}:9/"))).await;
        let (status, answer) = server.invoke(&name, json!({})).await;
        assert_eq!((status, code(&answer)), (200, "egress_refused"), "{host} {answer}");
    }
}

#[tokio::test]
async fn invalid_schemas_are_rejected() {
    let server = Server::start().await;
    for schema in [
        json!({"type": "objec"}),
        json!({"$ref": "https://example.com/x.json"}),
        json!({"$ref": "#"}),
        json!({"properties": {"a": {"pattern": "("}}}),
        json!(["x"]),
        json!("x"),
    ] {
        let mut tool = function_tool("shaped", "echo");
        tool["input_schema"] = schema.clone();
        let (status, answer) = server.post("/api/tools", tool).await;
        assert_eq!((status, code(&answer)), (400, "invalid_definition"), "{schema} {answer}");
    }
}

#[tokio::test]
async fn unknown_fields_are_named_in_a_warning() {
    let server = Server::start().await;
    let mut tool = function_tool("worker", "echo");
    tool["descripton"] = json!("typo");
    let created = server.create(tool).await;
    let warnings = created["warnings"].to_string();
    assert!(warnings.contains("descripton") && warnings.contains("description"), "{warnings}");
}

#[tokio::test]
async fn an_unreadable_file_is_listed_with_its_error() {
    let server = Server::start().await;
    let folder = server.home.path().join("skills/hand");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("broken.yaml"), "name: broken\nruntime: [\n").unwrap();
    for _ in 0..250 {
        let (status, answer) = server.get("/api/tools/hand:broken").await;
        if status == 409 {
            let message = answer["error"]["message"].as_str().unwrap();
            assert_eq!(message.matches("skills/hand/broken.yaml").count(), 1, "{message}");
            assert!(message.contains("line "), "{message}");
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    panic!("the file was not noticed");
}

#[tokio::test]
async fn a_client_that_sends_too_much_gets_the_response() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let server = Server::start().await;
    let length = 40 * 1024 * 1024;
    let mut stream = tokio::net::TcpStream::connect(server.addr).await.unwrap();
    let head = format!(
        "POST /api/tools HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\nconnection: close\r\n\r\n",
        server.token
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let part = vec![b'x'; 1024 * 1024];
    for _ in 0..40 {
        stream.write_all(&part).await.unwrap();
    }
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 413") && answer.contains("too_large"), "{answer}");
}
