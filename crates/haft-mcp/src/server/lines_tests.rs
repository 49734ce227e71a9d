use serde_json::json;
use tokio::io::AsyncReadExt as _;

use super::*;

/// Reads an input to its end in a session whose version has batches; returns the messages and the responses.
async fn read_all(input: &str) -> (Vec<ClientJsonRpcMessage>, Vec<Value>) {
    let (mut theirs, read) = tokio::io::duplex(input.len());
    theirs.write_all(input.as_bytes()).await.unwrap();
    drop(theirs);
    // Smaller than a response.
    let (write, mut output) = tokio::io::duplex(16);
    let reading = tokio::spawn(async move {
        let mut text = String::new();
        output.read_to_string(&mut text).await.unwrap();
        text
    });
    let input_closed = CancellationToken::new();
    let mut lines = Lines::new(read, write, 1000, input_closed.clone());
    lock(&lines.batches).version = Some("2025-03-26".to_owned());
    let mut messages = Vec::new();
    while let Some(message) = lines.receive().await {
        messages.push(message);
    }
    assert!(input_closed.is_cancelled());
    drop(lines);
    let text = reading.await.unwrap();
    (messages, text.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
}

#[tokio::test]
async fn every_invalid_line_gets_a_response() {
    let numbers: Vec<u64> = (0..200).collect();
    let line = |id: u64| json!({"jsonrpc": "2.0", "id": id, "method": "tools/list", "params": {"cursor": 5}});
    let input: Vec<String> = numbers.iter().map(|id| line(*id).to_string()).collect();
    let (messages, responses) = read_all(&input.join("\n")).await;
    let mut ids: Vec<u64> = responses.iter().filter_map(|response| response["id"].as_u64()).collect();
    ids.sort_unstable();
    assert_eq!((messages.len(), ids), (0, numbers));

    let (messages, responses) = read_all(&"{\n".repeat(200)).await;
    let errors = responses.iter().filter(|response| response["error"]["code"] == -32700);
    assert_eq!((messages.len(), errors.count()), (0, 200));
}

#[tokio::test]
async fn the_last_line_needs_no_newline() {
    let ping = r#"{"jsonrpc": "2.0", "id": 1, "method": "ping"}"#;
    let long = "x".repeat(2000);
    for (input, messages, codes) in [
        (ping.to_owned(), 1, vec![]),
        (format!("{ping}\n"), 1, vec![]),
        (format!("{ping}\n{ping}"), 2, vec![]),
        ("{".to_owned(), 0, vec![-32700]),
        (long.clone(), 0, vec![-32600]),
        (format!("{long}\n{ping}"), 1, vec![-32600]),
    ] {
        let (received, responses) = read_all(&input).await;
        let found: Vec<i64> =
            responses.iter().filter_map(|response| response["error"]["code"].as_i64()).collect();
        assert_eq!((received.len(), found), (messages, codes), "{input}");
    }
}

#[tokio::test]
async fn each_request_above_the_batch_limit_gets_an_error() {
    let most = u64::try_from(MAX_BATCHES).unwrap();
    let ping = |id: u64| json!({"jsonrpc": "2.0", "id": id, "method": "ping"});
    let batch = |id: u64| json!([ping(id), ping(id + 1000)]).to_string();
    let input: Vec<String> = (0..most + 2).map(batch).collect();
    let (messages, mut responses) = read_all(&input.join("\n")).await;
    assert_eq!(messages.len(), 2 * MAX_BATCHES);
    responses.sort_by_key(|response| response[0]["id"].as_u64());
    let ids: Vec<Value> =
        responses.iter().map(|response| json!([response[0]["id"], response[1]["id"]])).collect();
    assert_eq!(ids, [json!([most, most + 1000]), json!([most + 1, most + 1001])]);
    assert_eq!(responses[0][0]["error"]["code"], -32600);
}
