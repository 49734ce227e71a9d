//! Retrieval pipelines through the API: documents in, passages out.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use haft_testkit::upstream::Upstream;
use haft_testkit::upstream::axum::extract::State;
use haft_testkit::upstream::axum::http::StatusCode;
use haft_testkit::upstream::axum::response::{IntoResponse, Redirect, Response};
use haft_testkit::upstream::axum::routing::{get, post};
use haft_testkit::upstream::axum::{Json, Router};
use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Server, code, poll, send};

async fn create(server: &Server, definition: Value) -> Value {
    let (status, answer) = server.post("/api/pipelines", definition).await;
    assert_eq!(status, 201, "{answer}");
    answer["data"].clone()
}

async fn upload(server: &Server, name: &str, bytes: Vec<u8>) -> Value {
    let path = format!("/api/pipelines/handbook/documents?name={name}");
    let request = server.request(Method::POST, &path);
    let (status, answer) = send(request.header("content-type", "application/octet-stream").body(bytes)).await;
    assert_eq!(status, 202, "{answer}");
    answer["data"]["documents"][0].clone()
}

async fn add(server: &Server, body: Value) -> Value {
    let (status, answer) = server.post("/api/pipelines/handbook/documents", body).await;
    assert_eq!(status, 202, "{answer}");
    answer["data"]["documents"].clone()
}

/// Waits until no document is queued or running.
async fn ingested(server: &Server) -> Value {
    poll(async || {
        let (_, report) = server.get("/api/pipelines/handbook/ingests").await;
        (report["data"]["state"] == "done").then(|| report["data"].clone())
    })
    .await
}

async fn query(server: &Server, body: Value) -> Vec<Value> {
    let (status, answer) = server.post("/api/pipelines/handbook/query", body).await;
    assert_eq!(status, 200, "{answer}");
    answer["data"]["hits"].as_array().unwrap().clone()
}

fn names(hits: &[Value]) -> Vec<&str> {
    hits.iter().map(|hit| hit["document"].as_str().unwrap()).collect()
}

fn pdf(text: &str) -> Vec<u8> {
    let content = format!("BT /F1 12 Tf 72 700 Td ({text}) Tj ET");
    format!(
        "%PDF-1.7\n1 0 obj << /Type /Catalog /Pages 2 0 R >> endobj\n\
         2 0 obj << /Type /Pages /Kids [3 0 R] /Count 1 /Resources << /Font << /F1 5 0 R >> >> >> endobj\n\
         3 0 obj << /Type /Page /Parent 2 0 R /Contents 4 0 R >> endobj\n\
         4 0 obj\n<< /Length {} >>\nstream\n{content}\nendstream\nendobj\n\
         5 0 obj << /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >> endobj\n\
         trailer << /Root 1 0 R >>\n%%EOF",
        content.len()
    )
    .into_bytes()
}

fn docx(text: &str) -> Vec<u8> {
    let mut files = haft_package::files::PackageFiles::new();
    let body = format!("<w:document><w:body><w:p><w:r><w:t>{text}</w:t></w:r></w:p></w:body></w:document>");
    files.put_text("word/document.xml", body).unwrap();
    haft_package::zip::write(&files).unwrap()
}

#[tokio::test]
async fn documents_of_every_format_are_found() {
    let server = Server::start().await;
    let pipeline = create(&server, json!({"slug": "handbook", "name": "Handbook"})).await;
    assert_eq!(pipeline["chunking"], json!({"size": 300, "unit": "tokens", "overlap": 40}));
    assert_eq!((&pipeline["status"], &pipeline["documents"]), (&json!("draft"), &json!(0)));
    let markdown = "# Guide\n\n## Install\n\nRun the zebra installer.\n\n## Remove\n\nDelete the folder.\n";
    upload(&server, "guide.md", markdown.into()).await;
    upload(&server, "page.html", "<html><body><h1>Page</h1><p>The quokka smiles.</p></body>".into()).await;
    upload(&server, "paper.pdf", pdf("A walrus sleeps on ice.")).await;
    upload(&server, "letter.docx", docx("An otter holds hands.")).await;
    upload(&server, "rows.csv", "animal,sound\nfox,ring\n".into()).await;
    upload(&server, "lines.jsonl", "{\"text\":\"badger burrow\"}\n".into()).await;
    upload(&server, "notes.txt", "The heron waits.\n".into()).await;
    // UTF-16 with a byte order mark, and Latin-1 in HTML.
    let utf16: Vec<u8> = "\u{feff}Die Größe der Möwe".encode_utf16().flat_map(u16::to_le_bytes).collect();
    upload(&server, "utf16.txt", utf16).await;
    let report = ingested(&server).await;
    assert_eq!((&report["done"], &report["failed"]), (&json!(8), &json!(0)), "{report}");
    for (question, expected) in [
        ("how do I install zebra?", "guide.md"),
        ("quokka", "page.html"),
        ("walruses", "paper.pdf"),
        ("otter", "letter.docx"),
        ("fox sound", "rows.csv"),
        ("badger", "lines.jsonl"),
        ("heron", "notes.txt"),
        ("Möwen", "utf16.txt"),
    ] {
        let hits = query(&server, json!({"query": question})).await;
        assert_eq!(names(&hits).first(), Some(&expected), "{question}: {hits:?}");
    }
    let hit = query(&server, json!({"query": "zebra", "top_k": 1})).await[0].clone();
    assert_eq!(hit["headings"], json!(["Guide", "Install"]));
    assert_eq!((&hit["text"], &hit["position"]["line"]), (&json!("Run the zebra installer."), &json!(5)));
    let (start, end) = (hit["position"]["start"].as_u64().unwrap(), hit["position"]["end"].as_u64().unwrap());
    let range = usize::try_from(start).unwrap()..usize::try_from(end).unwrap();
    assert!(markdown[range].contains("Run the zebra installer."));
    assert!(hit["score"].as_f64().unwrap() > 0.0 && hit["bm25"] == hit["score"], "{hit}");
    assert_eq!(query(&server, json!({"query": "walrus"})).await[0]["position"]["page"], 1);
    let (_, pipeline) = server.get("/api/pipelines/handbook").await;
    assert_eq!(pipeline["data"]["documents"], 8);
    assert!(pipeline["data"]["chunks"].as_u64().unwrap() >= 8);
}

#[tokio::test]
async fn a_form_has_several_files_with_metadata() {
    let server = Server::start().await;
    create(&server, json!({"slug": "handbook"})).await;
    let form = "--b\r\nContent-Disposition: form-data; name=\"metadata\"\r\n\r\n{\"team\":\"core\",\"year\":2026}\r\n\
                --b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.md\"\r\nContent-Type: text/markdown\r\n\r\n\
                Alpha badger\r\n--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"b.txt\"\r\n\r\n\
                Beta badger\r\n--b--\r\n";
    let path = "/api/pipelines/handbook/documents";
    let request =
        server.request(Method::POST, path).header("content-type", "multipart/form-data; boundary=b");
    let (status, answer) = send(request.body(form)).await;
    assert_eq!((status, answer["data"]["documents"].as_array().unwrap().len()), (202, 2), "{answer}");
    add(&server, json!({"text": "Gamma badger", "name": "c.txt", "metadata": {"team": "web", "year": 2020}}))
        .await;
    ingested(&server).await;
    let found = async |filter: Value| {
        let hits = query(&server, json!({"query": "badger", "filter": filter})).await;
        let mut found: Vec<String> = names(&hits).into_iter().map(str::to_owned).collect();
        found.sort();
        found.join(" ")
    };
    assert_eq!(found(json!(null)).await, "a.md b.txt c.txt");
    assert_eq!(found(json!({"team": "core"})).await, "a.md b.txt");
    assert_eq!(found(json!({"range": {"key": "year", "max": 2021}})).await, "c.txt");
    assert_eq!(found(json!({"not": {"equals": {"key": "team", "value": "core"}}})).await, "c.txt");
    for (body, expected) in [
        (json!({"query": "x", "filter": {"team": null}}), "invalid `filter`"),
        (json!({"query": "x", "top_k": 0}), "`top_k` is 0; use 1 to 100"),
        (json!({"query": " "}), "`query` is empty"),
        (json!({"query": "x", "mode": "embedding"}), "the pipeline has no embedding model"),
        (json!({"query": "x", "mode": "magic"}), "unknown variant `magic`"),
    ] {
        let (status, answer) = server.post("/api/pipelines/handbook/query", body).await;
        assert_eq!(status, 400, "{answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains(expected), "{answer}");
    }
}

#[tokio::test]
async fn bad_documents_have_an_error_each() {
    let server = Server::start_with(|settings| settings.retrieval.max_document_bytes = 100_000).await;
    create(&server, json!({"slug": "handbook"})).await;
    let ole: Vec<u8> = [
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1".to_vec(),
        "EncryptedPackage".encode_utf16().flat_map(u16::to_le_bytes).collect(),
    ]
    .concat();
    let encrypted = b"%PDF-1.7\n1 0 obj << /Type /Catalog >> endobj trailer << /Root 1 0 R /Encrypt 2 0 R >>";
    for (name, bytes) in [
        ("binary.bin", (0..=255_u8).cycle().take(5000).collect()),
        ("empty.txt", Vec::new()),
        ("space.md", b" \n ".to_vec()),
        ("secret.pdf", encrypted.to_vec()),
        ("secret.docx", ole),
        ("image.png", b"\x89PNG\r\n".to_vec()),
        ("broken.jsonl", b"{\"a\":\n".to_vec()),
        ("broken.pdf", b"%PDF-1.7 nothing".to_vec()),
        ("wrong.pdf", b"text".to_vec()),
        ("good.txt", b"fine".to_vec()),
    ] {
        upload(&server, name, bytes).await;
    }
    let report = ingested(&server).await;
    assert_eq!((&report["done"], &report["failed"]), (&json!(1), &json!(9)), "{report}");
    let (_, documents) = server.get("/api/pipelines/handbook/documents").await;
    let error = |name: &str| {
        let documents = documents["data"]["documents"].as_array().unwrap();
        let document = documents.iter().find(|document| document["name"] == name).unwrap();
        document["error"].as_str().unwrap_or_default().to_owned()
    };
    for (name, expected) in [
        ("binary.bin", "document is binary"),
        ("empty.txt", "document is empty"),
        ("space.md", "document is empty"),
        ("secret.pdf", "PDF document is encrypted"),
        ("secret.docx", "DOCX document is encrypted"),
        ("image.png", "unsupported document type `.png`"),
        ("broken.jsonl", "invalid JSON Lines document"),
        ("wrong.pdf", "invalid PDF document"),
        ("good.txt", ""),
    ] {
        assert!(error(name).starts_with(expected), "{name}: {}", error(name));
    }
    let large = server.request(Method::POST, "/api/pipelines/handbook/documents?name=large.txt");
    let (status, answer) = send(large.body(vec![b'a'; 100_001])).await;
    assert_eq!((status, code(&answer)), (413, "too_large"), "{answer}");
    assert!(answer["error"]["message"].as_str().unwrap().contains("retrieval.max_document_bytes"));
    for (body, expected) in [
        (json!({}), "expected one of `text`, `urls` and `path`"),
        (json!({"text": "a", "name": ""}), "invalid `name`"),
        (json!({"text": "a", "metadata": {"a": {}}}), "invalid `metadata`"),
        (json!({"urls": ["file:///etc/passwd"]}), "expected `http` or `https`"),
        (json!({"urls": ["https://user:pw@example.com/"]}), "a URL with a password"),
        (json!({"path": "/no/such/folder"}), "cannot read the folder"),
    ] {
        let (status, answer) = server.post("/api/pipelines/handbook/documents", body).await;
        assert_eq!(status, 400, "{answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains(expected), "{answer}");
    }
}

#[tokio::test]
async fn a_new_version_costs_what_changed_and_old_passages_are_gone() {
    let server = Server::start().await;
    create(&server, json!({"slug": "handbook"})).await;
    let first = upload(&server, "a.md", "# A\n\nalpha text\n\n# B\n\nbeta text\n".into()).await;
    upload(&server, "b.md", "# C\n\ngamma text\n".into()).await;
    ingested(&server).await;
    let before = query(&server, json!({"query": "beta"})).await[0]["chunk_id"].clone();
    assert_eq!(names(&query(&server, json!({"query": "alpha"})).await), ["a.md"]);
    let again = upload(&server, "a.md", "# A\n\ndelta text\n\n# B\n\nbeta text\n".into()).await;
    assert_eq!(again["id"], first["id"]);
    ingested(&server).await;
    assert_eq!(query(&server, json!({"query": "alpha"})).await, Vec::<Value>::new());
    assert_eq!(names(&query(&server, json!({"query": "delta"})).await), ["a.md"]);
    assert_eq!(query(&server, json!({"query": "beta"})).await[0]["chunk_id"], before, "it stays");
    let (status, answer) = server.post("/api/pipelines/handbook/reingest", json!({})).await;
    assert_eq!((status, answer["data"]["message"].as_str()), (200, Some("2 documents queued")));
    ingested(&server).await;
    assert_eq!(query(&server, json!({"query": "beta"})).await[0]["chunk_id"], before);
    let path = format!("/api/pipelines/handbook/documents/{}", first["id"].as_str().unwrap());
    assert_eq!(server.get(&path).await.1["data"]["chunks"], 2);
    assert_eq!(server.delete(&path).await.0, 200);
    assert_eq!(server.get(&path).await.0, 404);
    assert_eq!(query(&server, json!({"query": "beta"})).await, Vec::<Value>::new());
    // Other chunk sizes: the documents are cut again.
    let (status, answer) =
        server.put("/api/pipelines/handbook", json!({"chunking": {"size": 16, "overlap": 0}})).await;
    assert_eq!((status, &answer["data"]["slug"]), (200, &json!("handbook")), "{answer}");
    ingested(&server).await;
    assert_eq!(names(&query(&server, json!({"query": "gamma"})).await), ["b.md"]);
    let server = server.restart().await;
    assert_eq!(names(&query(&server, json!({"query": "gamma"})).await), ["b.md"]);
}

#[tokio::test]
async fn a_folder_and_urls_are_read() {
    let router = Router::new()
        .route("/page", get(|| async { ([("content-type", "text/html")], "<p>The ibex climbs.</p>") }))
        .route("/moved", get(|| async { Redirect::temporary("/page") }))
        .route("/inside", get(|| async { Redirect::temporary("http://169.254.169.254/latest") }))
        .route("/gone", get(|| async { StatusCode::NOT_FOUND }));
    let upstream = Upstream::serve(router).await.unwrap();
    let server = Server::start().await;
    create(&server, json!({"slug": "handbook"})).await;
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("deep")).unwrap();
    std::fs::write(folder.path().join("deep/lynx.md"), "The lynx listens.").unwrap();
    std::fs::write(folder.path().join(".hidden"), "no").unwrap();
    std::os::unix::fs::symlink("/etc/passwd", folder.path().join("passwd.txt")).unwrap();
    let added = add(&server, json!({"path": folder.path(), "metadata": {"from": "folder"}})).await;
    assert_eq!(added.as_array().unwrap().len(), 1, "{added}");
    let urls: Vec<String> =
        ["/page", "/moved", "/inside", "/gone"].iter().map(|path| upstream.url(path)).collect();
    add(&server, json!({"urls": urls})).await;
    let report = ingested(&server).await;
    assert_eq!((&report["done"], &report["failed"]), (&json!(3), &json!(2)), "{report}");
    let errors = report["documents"].to_string();
    assert!(errors.contains("169.254.169.254") && errors.contains("status 404"), "{errors}");
    // Both documents have the same text, so the same score.
    let hits = query(&server, json!({"query": "ibex"})).await;
    let mut found = names(&hits);
    found.sort_unstable();
    assert_eq!(found, [upstream.url("/moved"), upstream.url("/page")]);
    assert_eq!(names(&query(&server, json!({"query": "lynx"})).await), ["deep/lynx.md"]);
}

/// Embeds a text as whether it is about animals or about machines; counts the texts.
async fn embeddings(State(count): State<Arc<AtomicUsize>>, Json(body): Json<Value>) -> Response {
    if body["model"] == "broken" {
        return (StatusCode::UNAUTHORIZED, Json(json!({"error": {"message": "bad key sk-secret-key"}})))
            .into_response();
    }
    let texts = body["input"].as_array().unwrap();
    // The first request is too early.
    if count.fetch_add(texts.len(), Ordering::SeqCst) == 0 {
        return (StatusCode::TOO_MANY_REQUESTS, [("retry-after", "0")], "slow down").into_response();
    }
    let vector = |text: &str| {
        let about = |words: &[&str]| if words.iter().any(|word| text.contains(word)) { 1.0 } else { 0.01 };
        json!([about(&["badger", "beast"]), about(&["engine", "machine"])])
    };
    let data: Vec<Value> = texts.iter().enumerate().rev().map(|(index, text)| {
        json!({"object": "embedding", "index": index, "embedding": vector(text.as_str().unwrap())})
    }).collect();
    Json(json!({"object": "list", "data": data, "model": body["model"]})).into_response()
}

#[tokio::test]
async fn embeddings_find_by_meaning() {
    let count = Arc::new(AtomicUsize::new(0));
    let router = Router::new().route("/v1/embeddings", post(embeddings)).with_state(Arc::clone(&count));
    let upstream = Upstream::serve(router).await.unwrap();
    let private = upstream.url("");
    let server = Server::start_with(|settings| {
        settings.egress.private_hosts.clear();
        settings.models.private_urls = vec![private];
    })
    .await;
    let (status, answer) = server.put("/api/credentials/EMBED_KEY", json!({"value": "sk-secret-key"})).await;
    assert!(status < 300, "{answer}");
    let embedding = |model: &str, url: String| json!({"slug": "handbook", "embedding": {"model": model, "base_url": url, "credential": "EMBED_KEY"}});
    create(&server, embedding("small", upstream.url("/v1/"))).await;
    upload(&server, "a.md", "The badger digs.".into()).await;
    upload(&server, "b.md", "The engine runs.".into()).await;
    let report = ingested(&server).await;
    assert_eq!(report["done"], 2, "{report}");
    let seen = upstream.seen().pop().unwrap();
    assert_eq!(seen.headers["authorization"], "Bearer sk-secret-key");
    let hits = query(&server, json!({"query": "beast"})).await;
    assert_eq!(names(&hits)[0], "a.md", "{hits:?}");
    assert!(hits[0]["cosine"].as_f64().unwrap() > 0.9 && hits[0]["bm25"].is_null(), "{hits:?}");
    let hits = query(&server, json!({"query": "machine", "mode": "embedding", "top_k": 1})).await;
    assert_eq!(names(&hits), ["b.md"]);
    assert_eq!(query(&server, json!({"query": "machine", "mode": "bm25"})).await, Vec::<Value>::new());
    // Only the new document is embedded.
    let before = count.load(Ordering::SeqCst);
    upload(&server, "c.md", "Another badger.".into()).await;
    ingested(&server).await;
    server.post("/api/pipelines/handbook/reingest", json!({})).await;
    ingested(&server).await;
    assert_eq!(count.load(Ordering::SeqCst), before + 1);
    // Another model: everything is embedded again, and the error of a model is an error of the document.
    let (status, answer) =
        server.put("/api/pipelines/handbook", embedding("broken", upstream.url("/v1"))).await;
    assert_eq!(status, 200, "{answer}");
    let report = ingested(&server).await;
    assert_eq!(report["failed"], 3, "{report}");
    let error = report["documents"][0]["error"].as_str().unwrap();
    assert!(error.contains("status 401: bad key ***") && !error.contains("sk-secret"), "{error}");
    let hits = query(&server, json!({"query": "badger"})).await;
    assert_eq!(hits.len(), 2, "words still work: {hits:?}");
    let (status, answer) =
        server.post("/api/pipelines/handbook/query", json!({"query": "badger", "mode": "embedding"})).await;
    assert_eq!((status, code(&answer)), (502, "network"), "{answer}");
    // A private address that is not listed is not reached.
    server.put("/api/pipelines/handbook", embedding("small", "http://127.0.0.1:9/v1".to_owned())).await;
    let report = ingested(&server).await;
    let error = report["documents"][0]["error"].as_str().unwrap();
    assert!(error.contains("`models.private_urls`") && !error.contains("private_hosts"), "{error}");
}

#[tokio::test]
async fn a_tool_queries_a_pipeline_of_its_tenant() {
    let server = Server::start_whole(|_| {}).await;
    let tool = |pipeline: &str| {
        json!({"name": "ask", "description": "Searches the handbook",
               "implementation": {"type": "rag_retrieval", "pipeline_id": pipeline, "config": {"top_k": 2}}})
    };
    let (status, answer) = server.post("/api/tools", tool("handbook")).await;
    assert_eq!((status, code(&answer)), (400, "invalid_definition"), "{answer}");
    assert!(
        answer["error"]["message"].as_str().unwrap().contains("pipeline `handbook` not found"),
        "{answer}"
    );
    let (status, answer) = server.post("/api/pipelines", json!({"slug": "a b"})).await;
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(status == 400 && message.starts_with("invalid request body: `slug`: "), "{message}");
    let pipeline = create(&server, json!({"slug": "handbook"})).await;
    upload(&server, "a.md", "The badger digs.".into()).await;
    ingested(&server).await;
    let created = server.create(tool("handbook")).await;
    assert_eq!(created["input_schema"]["required"], json!(["query"]));
    assert_eq!((&created["ready"], &created["tool_type"]), (&json!(true), &json!("custom")));
    let invoke = "/api/tools/ask/invoke?mode=debug";
    let (status, answer) = server.post(invoke, json!({"args": {"query": "badger"}})).await;
    assert_eq!((status, &answer["ok"]), (200, &json!(true)), "{answer}");
    assert_eq!(
        (&answer["value"]["query"], &answer["value"]["pipeline"]),
        (&json!("badger"), &json!("handbook"))
    );
    assert_eq!(answer["value"]["hits"][0]["document"], "a.md");
    let (status, answer) = server.post(invoke, json!({"args": {}})).await;
    assert_eq!((status, code(&answer)), (400, "invalid_arguments"), "{answer}");
    // Production needs a published pipeline.
    assert_eq!(server.post("/api/tools/ask/publish", json!({})).await.0, 409);
    assert_eq!(
        server.post("/api/pipelines/handbook/publish", json!({})).await.1["data"]["status"],
        "published"
    );
    assert_eq!(server.post("/api/tools/ask/publish", json!({})).await.0, 200);
    let (_, answer) =
        server.post("/api/tools/ask/invoke?mode=production", json!({"args": {"query": "badger"}})).await;
    assert_eq!(answer["value"]["hits"][0]["text"], "The badger digs.", "{answer}");
    let args = json!({"args": {"pipeline": pipeline["id"], "query": "badger", "top_k": 1}});
    let (_, answer) = server.post("/api/tools/retrieval_pipeline/invoke", args).await;
    assert_eq!(answer["value"]["hits"][0]["document"], "a.md", "{answer}");
    let (_, answer) = server
        .post("/api/tools/retrieval_pipeline/invoke", json!({"args": {"pipeline": "x", "query": "y"}}))
        .await;
    assert_eq!((&answer["ok"], code(&answer)), (&json!(false), "not_found"), "{answer}");
    // Without its pipeline the tool is not ready; with a new one of the same name it is.
    assert_eq!(server.delete("/api/pipelines/handbook?force=true").await.0, 200);
    let (_, shown) = server.get("/api/tools/ask").await;
    assert_eq!(shown["data"]["ready"], false, "{shown}");
    assert!(shown["data"]["error"].as_str().unwrap().contains("pipeline `handbook` not found"));
    let (status, answer) = server.post(invoke, json!({"args": {"query": "badger"}})).await;
    assert_eq!((status, code(&answer)), (409, "not_ready"), "{answer}");
    create(&server, json!({"slug": "handbook"})).await;
    assert_eq!(server.get("/api/tools/ask").await.1["data"]["ready"], true);
}

#[tokio::test]
async fn pipelines_of_other_tenants_and_roles_are_closed() {
    let server = Server::start().await;
    let pipeline = create(&server, json!({"slug": "handbook"})).await;
    upload(&server, "a.md", "The badger digs.".into()).await;
    ingested(&server).await;
    let (status, answer) = server.post("/api/tenants", json!({"id": "acme", "name": "Acme"})).await;
    assert_eq!(status, 201, "{answer}");
    let token = async |tenant: &str, role: &str| {
        let body = json!({"tenant": tenant, "role": role, "name": format!("{tenant}-{role}")});
        let (status, answer) = server.post("/api/tokens", body).await;
        assert_eq!(status, 201, "{answer}");
        answer["data"]["token"].as_str().unwrap().to_owned()
    };
    let stranger = token("acme", "admin").await;
    let by = async |token: &str, method: Method, path: &str, body: Value| {
        send(server.bare(method, path).bearer_auth(token).body(body.to_string())).await
    };
    let id = pipeline["id"].as_str().unwrap();
    for (method, path, body) in [
        (Method::GET, format!("/api/pipelines/{id}"), json!({})),
        (Method::PUT, format!("/api/pipelines/{id}"), json!({})),
        (Method::POST, format!("/api/pipelines/{id}/query"), json!({"query": "badger"})),
        (Method::POST, format!("/api/pipelines/{id}/documents"), json!({"text": "x"})),
        (Method::DELETE, "/api/pipelines/handbook".to_owned(), json!({})),
    ] {
        let (status, answer) = by(&stranger, method, &path, body).await;
        assert_eq!(status, 404, "{path}: {answer}");
    }
    let tool = json!({"name": "ask", "description": "d", "implementation": {"type": "rag_retrieval", "pipeline_id": id}});
    let (status, answer) = by(&stranger, Method::POST, "/api/tools", tool).await;
    assert_eq!((status, code(&answer)), (400, "invalid_definition"), "{answer}");
    let folder = json!({"path": "/etc"});
    by(&stranger, Method::POST, "/api/pipelines", json!({"slug": "own"})).await;
    let (status, answer) = by(&stranger, Method::POST, "/api/pipelines/own/documents", folder).await;
    assert_eq!((status, code(&answer)), (403, "forbidden"), "{answer}");
    let (viewer, caller) = (token("default", "viewer").await, token("default", "caller").await);
    let question = json!({"query": "badger"});
    assert_eq!(by(&viewer, Method::GET, "/api/pipelines/handbook", json!({})).await.0, 200);
    assert_eq!(by(&viewer, Method::POST, "/api/pipelines/handbook/query", question.clone()).await.0, 403);
    assert_eq!(by(&caller, Method::POST, "/api/pipelines/handbook/query", question).await.0, 200);
    assert_eq!(by(&caller, Method::POST, "/api/pipelines", json!({"slug": "x"})).await.0, 403);
}

#[tokio::test]
async fn definitions_are_checked() {
    let server = Server::start().await;
    for (body, expected) in [
        (json!({}), "missing `slug`"),
        (json!({"slug": "a b"}), "slug"),
        (json!({"slug": "a", "chunking": {"size": 1}}), "chunking.size"),
        (json!({"slug": "a", "embedding": {"model": ""}}), "embedding.model"),
        (json!({"slug": "a", "chunk": {}}), "unknown field `chunk`"),
    ] {
        let (status, answer) = server.post("/api/pipelines", body).await;
        assert_eq!(status, 400, "{answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains(expected), "{answer}");
    }
    create(&server, json!({"slug": "handbook"})).await;
    let (status, answer) = server.post("/api/pipelines", json!({"slug": "handbook"})).await;
    assert_eq!((status, code(&answer)), (409, "conflict"), "{answer}");
    let (_, listed) = server.get("/api/pipelines").await;
    assert_eq!(
        (&listed["data"]["total"], &listed["data"]["pipelines"][0]["name"]),
        (&json!(1), &json!("handbook"))
    );
}

#[tokio::test]
async fn production_queries_the_published_definition() {
    let server = Server::start().await;
    create(&server, json!({"slug": "handbook", "chunking": {"size": 16, "overlap": 0}})).await;
    upload(&server, "a.md", "The badger digs.".into()).await;
    ingested(&server).await;
    let (_, published) = server.post("/api/pipelines/handbook/publish", json!({})).await;
    assert_eq!(
        (&published["data"]["revision"], &published["data"]["published_revision"]),
        (&json!(1), &json!(1))
    );
    // A draft with an embedding model that does not exist changes nothing in production.
    let draft = json!({"embedding": {"model": "m", "base_url": "http://127.0.0.1:9/v1"}});
    let (status, edited) = server.put("/api/pipelines/handbook", draft).await;
    assert_eq!((status, &edited["data"]["revision"]), (200, &json!(2)), "{edited}");
    assert_eq!(
        (&edited["data"]["published_revision"], &edited["data"]["status"]),
        (&json!(1), &json!("published"))
    );
    let (_, state) = server.get("/api/pipelines/handbook/ingests").await;
    assert_eq!((&state["data"]["state"], &state["data"]["done"]), (&json!("done"), &json!(1)), "{state}");
    assert_eq!(query(&server, json!({"query": "badger"})).await.len(), 1);
    let (_, diff) = server.get("/api/pipelines/handbook/diff").await;
    assert_eq!((&diff["data"]["from"], &diff["data"]["to"]), (&json!(1), &json!(2)), "{diff}");
    let (_, revisions) = server.get("/api/pipelines/handbook/revisions").await;
    let shown: Vec<_> =
        revisions["data"]["revisions"].as_array().unwrap().iter().map(|one| &one["published"]).collect();
    assert_eq!(shown, [false, true]);
    let (status, restored) = server.post("/api/pipelines/handbook/revisions/1/restore", json!({})).await;
    assert_eq!((status, &restored["data"]["revision"]), (200, &json!(3)), "{restored}");
    assert_eq!(restored["data"]["embedding"], Value::Null);
    // Publication of a definition that cuts documents differently reads them again.
    server.put("/api/pipelines/handbook", json!({"chunking": {"size": 32, "overlap": 0}})).await;
    let (status, _) = server.post("/api/pipelines/handbook/publish", json!({})).await;
    assert_eq!(status, 200);
    ingested(&server).await;
    assert_eq!(query(&server, json!({"query": "badger"})).await.len(), 1);
    server.patch("/api/pipelines/handbook", json!({"enabled": false})).await;
    let (_, refused) = server.post("/api/pipelines/handbook/query", json!({"query": "badger"})).await;
    assert_eq!(code(&refused), "disabled", "{refused}");
}
