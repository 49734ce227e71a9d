//! How answers are read, good ones and bad ones.

use std::io::Write as _;

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;

use super::harness::{Upstream, World, brief};

/// Asks a server that answers with these bytes; returns the value or the brief error.
async fn read(http: Value, answer: impl Into<Vec<u8>>) -> Result<Value, String> {
    let server = Upstream::bytes(answer).await.unwrap();
    ask(http, &server).await
}

async fn ask(mut http: Value, server: &Upstream) -> Result<Value, String> {
    http["url"] = json!(server.url("/"));
    let world = World::new();
    let tool = world.tool(http).execution(json!({"limits": {"max_response_bytes": 100_000}}));
    tool.run(json!({})).await.map_err(|error| brief(&error))
}

fn answer(content_type: &str, body: &[u8]) -> Vec<u8> {
    let head =
        format!("HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\ncontent-length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

fn gzip(body: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(body).unwrap();
    encoder.finish().unwrap()
}

fn gzipped(content_type: &str, packed: &[u8]) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\ncontent-encoding: gzip\r\ncontent-length: {}\r\n\r\n",
        packed.len()
    );
    [head.as_bytes(), packed].concat()
}

#[tokio::test]
async fn by_content_type() {
    for (http, content_type, body, expected) in [
        (json!({}), "application/json", &b"{\"a\":1}"[..], Ok(json!({"a": 1}))),
        (json!({}), "application/problem+json; charset=utf-8", b"[1]", Ok(json!([1]))),
        (json!({}), "application/json", b"\xef\xbb\xbf{\"bom\":1}", Ok(json!({"bom": 1}))),
        (json!({}), "application/json; charset=iso-8859-1", b"\"\xe9\"", Ok(json!("é"))),
        (json!({}), "application/json", b"", Ok(json!(null))),
        (json!({}), "text/plain", b"{\"a\":1}", Ok(json!("{\"a\":1}"))),
        (json!({}), "text/plain; charset=\"windows-1252\"", b"\x80 caf\xe9", Ok(json!("€ café"))),
        (json!({}), "text/plain", b"caf\xe9", Ok(json!("caf\u{fffd}"))),
        (json!({}), "application/octet-stream", b"plain", Ok(json!("plain"))),
        (
            json!({}),
            "image/png",
            b"\x89PNG\xff",
            Ok(json!([{"type": "image", "data": "iVBOR/8=", "mimeType": "image/png"}])),
        ),
        (
            json!({}),
            "application/pdf",
            b"%PDF\xff",
            Ok(json!({"media_type": "application/pdf", "size": 5, "base64": "JVBERv8="})),
        ),
        (json!({"response": "graphql"}), "application/json", b"{\"data\":{\"a\":1}}", Ok(json!({"a": 1}))),
        (
            json!({"response": "graphql", "extract": "$.a"}),
            "application/json",
            b"{\"data\":{\"a\":1}}",
            Ok(json!(1)),
        ),
        (
            json!({"response": "graphql"}),
            "application/json",
            b"{\"data\":{\"a\":1},\"errors\":[{\"message\":\"no access\"}]}",
            Err("execution_failed final: the GraphQL server reports: no access"),
        ),
        (
            json!({"response": "graphql"}),
            "application/json",
            b"{}",
            Err("invalid_response final: the GraphQL response has no `data`"),
        ),
        (json!({"response": "json"}), "text/plain", b"{\"a\":1}", Ok(json!({"a": 1}))),
        (json!({"response": "text"}), "application/json", b"{\"a\":1}", Ok(json!("{\"a\":1}"))),
        (
            json!({"response": "json"}),
            "text/plain",
            b"",
            Err("invalid_response final: the response is empty; expected JSON"),
        ),
        (
            json!({}),
            "application/json",
            b"{\"a\":",
            Err(
                "invalid_response final: the response is not valid JSON: EOF while parsing a value at line 1 column 5",
            ),
        ),
        (json!({"extract": "$.a.b"}), "text/plain", b"{\"a\":{\"b\":7}}", Ok(json!(7))),
        (json!({"extract": "$.l[*]"}), "application/json", b"{\"l\":[1,2]}", Ok(json!([1, 2]))),
        (
            json!({"extract": "$.x"}),
            "application/json",
            b"{}",
            Err("invalid_response final: `$.x` matched nothing in the response"),
        ),
        (json!({"extract": "$.x", "error_mode": "empty"}), "application/json", b"{}", Ok(json!(null))),
        (json!({"extract": "id=(\\d+)"}), "text/html", b"<a href='?id=42'>", Ok(json!("42"))),
        (json!({"extract": "\\d+"}), "application/json", b"{\"n\": 17}", Ok(json!("17"))),
    ] {
        let expected = expected.map_err(str::to_owned);
        assert_eq!(
            read(http.clone(), answer(content_type, body)).await,
            expected,
            "{http} {content_type} {body:?}"
        );
    }
    assert_eq!(read(json!({"response": "json"}), "HTTP/1.1 204 No Content\r\n\r\n").await, Ok(json!(null)));
    let head = json!({"method": "HEAD"});
    assert_eq!(read(head, "HTTP/1.1 200 OK\r\ncontent-length: 5000000\r\n\r\n").await, Ok(json!(null)));
}

#[tokio::test]
async fn gzip_is_decoded_and_bombs_are_rejected() {
    let packed = gzipped("application/json", &gzip(b"{\"a\":[1,2,3]}"));
    assert_eq!(read(json!({}), packed).await, Ok(json!({"a": [1, 2, 3]})));
    let bomb = gzip(&vec![b' '; 50_000_000]);
    assert!(bomb.len() < 100_000);
    let too_large = Err("too_large final: the response exceeds the limit of 100000 bytes".to_owned());
    assert_eq!(read(json!({}), gzipped("text/plain", &bomb)).await, too_large);
    let damaged = Err("invalid_response final: the service sent a corrupt response".to_owned());
    assert_eq!(read(json!({}), gzipped("text/plain", b"this is not gzip at all")).await, damaged);
    let mut flipped = gzip(&(0..9_999_u32).flat_map(u32::to_le_bytes).collect::<Vec<_>>());
    flipped.iter_mut().skip(100).take(50).for_each(|byte| *byte ^= 0x55);
    assert_eq!(read(json!({}), gzipped("text/plain", &flipped)).await, damaged);
}

#[tokio::test]
async fn responses_are_limited() {
    let too_large = Err("too_large final: the response exceeds the limit of 100000 bytes".to_owned());
    assert_eq!(read(json!({}), answer("text/plain", &vec![b'x'; 100_001])).await, too_large);
    assert_eq!(
        read(json!({}), answer("text/plain", &vec![b'x'; 100_000])).await,
        Ok(json!("x".repeat(100_000)))
    );

    let endless = Upstream::raw(|mut stream| async move {
        haft_testkit::upstream::read_head(&mut stream).await;
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n").await;
        while stream.write_all(&[b'x'; 4096]).await.is_ok() {}
    })
    .await
    .unwrap();
    assert_eq!(ask(json!({}), &endless).await, too_large);

    let deep = "[".repeat(10_000) + &"]".repeat(10_000);
    assert_eq!(
        read(json!({}), answer("application/json", deep.as_bytes())).await.unwrap_err(),
        "invalid_response final: the nesting depth of the response exceeds the limit of 127"
    );

    let endless_headers = Upstream::raw(|mut stream| async move {
        haft_testkit::upstream::read_head(&mut stream).await;
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n").await;
        while stream.write_all(b"x-more: and more\r\n").await.is_ok() {}
    })
    .await
    .unwrap();
    let broke = "network again: the connection to the service was lost";
    assert_eq!(ask(json!({}), &endless_headers).await.unwrap_err(), broke);
}

#[tokio::test]
async fn servers_that_misbehave() {
    let broke = "network again: the connection to the service was lost";
    for bytes in [
        &b"\x00\x01\x02 this is not HTTP\r\n\r\n"[..],
        b"",
        b"HTTP/1.1 200 OK\r\ncontent-le",
        b"HTTP/1.1 abc OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 100\r\n\r\nshort",
    ] {
        let outcome = read(json!({}), bytes).await;
        assert_eq!(outcome.unwrap_err(), broke, "{}", String::from_utf8_lossy(bytes));
    }
    assert_eq!(
        read(json!({}), "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\nnot a chunk")
            .await
            .unwrap_err(),
        "invalid_response final: the service sent a corrupt response"
    );
    let silent = Upstream::raw(|mut stream| async move {
        haft_testkit::upstream::read_head(&mut stream).await;
        std::future::pending::<()>().await;
    })
    .await
    .unwrap();
    assert_eq!(
        ask(json!({"timeout_ms": 80}), &silent).await.unwrap_err(),
        "timeout again: the service did not respond within 80ms"
    );
    let stalled = Upstream::raw(|mut stream| async move {
        haft_testkit::upstream::read_head(&mut stream).await;
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf").await;
        std::future::pending::<()>().await;
    })
    .await
    .unwrap();
    assert_eq!(
        ask(json!({"timeout_ms": 80, "method": "POST"}), &stalled).await.unwrap_err(),
        "timeout final: the service did not respond within 80ms"
    );
}

#[tokio::test]
async fn large_responses_are_processed() {
    let items: Vec<_> = (0..40_000).map(|n| json!({"id": n})).collect();
    let body = serde_json::to_vec(&json!({"items": items, "last": {"id": 1}})).unwrap();
    let server = Upstream::bytes(answer("application/json", &body)).await.unwrap();
    let world = World::new();
    let tool = world.tool(json!({"url": server.url("/"), "extract": "$.last.id"}));
    assert!(body.len() > 256 * 1024);
    assert_eq!(tool.run(json!({})).await, Ok(json!(1)));
}

#[tokio::test]
async fn an_unsupported_content_encoding_is_rejected() {
    let packed = |encoding: &str, status: u16, body: &str| {
        format!(
            "HTTP/1.1 {status} X\r\ncontent-type: text/plain\r\ncontent-encoding: {encoding}\r\n\
             content-length: {}\r\n\r\n{body}",
            body.len()
        )
    };
    for encoding in ["br", "zstd", "deflate", "x-unknown"] {
        assert_eq!(
            read(json!({}), packed(encoding, 200, "????")).await.unwrap_err(),
            format!(
                "invalid_response final: the response has the unsupported content encoding `{encoding}`; only gzip is supported"
            )
        );
    }
    assert_eq!(read(json!({}), packed("identity", 200, "plain")).await, Ok(json!("plain")));
    assert_eq!(read(json!({}), packed("br", 200, "")).await, Ok(json!(null)), "nothing is packed");
    // A body that cannot be decoded is not shown.
    assert_eq!(
        read(json!({}), packed("br", 404, "????")).await.unwrap_err(),
        "http_status final: the service returned 404 Not Found"
    );
}
