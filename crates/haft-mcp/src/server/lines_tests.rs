use serde_json::json;
use tokio::io::AsyncReadExt as _;

use super::*;

/// Takes an input to its end, in a session of a version that has batches: what was handed over, and what was said.
async fn taken(input: &str) -> (Vec<ClientJsonRpcMessage>, Vec<Value>) {
    let (mut theirs, read) = tokio::io::duplex(input.len());
    theirs.write_all(input.as_bytes()).await.unwrap();
    drop(theirs);
    // Less than an answer fits in.
    let (write, mut output) = tokio::io::duplex(16);
    let reading = tokio::spawn(async move {
        let mut text = String::new();
        output.read_to_string(&mut text).await.unwrap();
        text
    });
    let gone = CancellationToken::new();
    let mut lines = Lines::new(read, write, 1000, gone.clone());
    lock(&lines.batches).version = Some("2025-03-26".to_owned());
    let mut messages = Vec::new();
    while let Some(message) = lines.receive().await {
        messages.push(message);
    }
    assert!(gone.is_cancelled());
    drop(lines);
    let text = reading.await.unwrap();
    (messages, text.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
}

#[tokio::test]
async fn every_line_that_is_wrong_is_answered() {
    let numbers: Vec<u64> = (0..200).collect();
    let line = |id: u64| json!({"jsonrpc": "2.0", "id": id, "method": "tools/list", "params": {"cursor": 5}});
    let input: Vec<String> = numbers.iter().map(|id| line(*id).to_string()).collect();
    let (messages, answers) = taken(&input.join("\n")).await;
    let mut ids: Vec<u64> = answers.iter().filter_map(|answer| answer["id"].as_u64()).collect();
    ids.sort_unstable();
    assert_eq!((messages.len(), ids), (0, numbers));

    let (messages, answers) = taken(&"{\n".repeat(200)).await;
    let complaints = answers.iter().filter(|answer| answer["error"]["code"] == -32700);
    assert_eq!((messages.len(), complaints.count()), (0, 200));
}

#[tokio::test]
async fn the_last_line_needs_no_end() {
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
        let (handed_over, answers) = taken(&input).await;
        let found: Vec<i64> = answers.iter().filter_map(|answer| answer["error"]["code"].as_i64()).collect();
        assert_eq!((handed_over.len(), found), (messages, codes), "{input}");
    }
}

#[tokio::test]
async fn requests_of_a_batch_too_many_are_answered_each() {
    let most = u64::try_from(MAX_BATCHES).unwrap();
    let ping = |id: u64| json!({"jsonrpc": "2.0", "id": id, "method": "ping"});
    let batch = |id: u64| json!([ping(id), ping(id + 1000)]).to_string();
    let input: Vec<String> = (0..most + 2).map(batch).collect();
    let (messages, mut answers) = taken(&input.join("\n")).await;
    assert_eq!(messages.len(), 2 * MAX_BATCHES);
    answers.sort_by_key(|answer| answer[0]["id"].as_u64());
    let ids: Vec<Value> = answers.iter().map(|answer| json!([answer[0]["id"], answer[1]["id"]])).collect();
    assert_eq!(ids, [json!([most, most + 1000]), json!([most + 1, most + 1001])]);
    assert_eq!(answers[0][0]["error"]["code"], -32600);
}
