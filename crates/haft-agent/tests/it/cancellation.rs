//! Dropping a stream cancels the request.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use haft_agent::model::Provider;
use haft_testkit::upstream::{Upstream, read_head};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::Notify;

use crate::harness::{model, request};

#[tokio::test]
async fn dropping_a_stream_closes_the_connection() {
    let closed = Arc::new(Notify::new());
    let noticed = Arc::clone(&closed);
    let server = Upstream::raw(move |mut stream| {
        let closed = Arc::clone(&closed);
        async move {
            read_head(&mut stream).await;
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
            let event = "data: {\"choices\":[{\"delta\":{\"content\":\"Hel\"}}]}\n\n";
            let _ = stream.write_all(format!("{head}{event}").as_bytes()).await;
            // The rest of the request, then the end of the connection.
            let mut rest = [0_u8; 4096];
            while stream.read(&mut rest).await.is_ok_and(|count| count > 0) {}
            closed.notify_one();
        }
    })
    .await
    .unwrap();
    let mut events = model(&server, Provider::Ollama).stream(&request());
    let first = events.next().await;
    assert!(first.unwrap().is_ok());
    drop(events);
    tokio::time::timeout(Duration::from_secs(5), noticed.notified()).await.unwrap();
}

#[tokio::test]
async fn nothing_is_sent_before_the_first_poll() {
    let server = crate::harness::serve([crate::harness::Canned::cassette("chat_stream.sse")]).await;
    drop(model(&server, Provider::Ollama).stream(&request()));
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(server.seen(), []);
}
