//! The official Python client of OpenAI drives agents.

use std::path::{Path, PathBuf};
use std::process::Command;

use haft_testkit::prerequisite::{Prerequisite, skip};
use serde_json::{Value, json};

use crate::agents::{create, scripted, with_helper};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")
}

#[tokio::test(flavor = "multi_thread")]
#[expect(clippy::disallowed_methods, reason = "the client of another project is under test")]
async fn the_official_client_drives_an_agent() {
    let python = folder().join("../../../target/peers/models/bin/python");
    if !python.exists() {
        skip(Prerequisite::ModelPeers, &format!("`{}` is not installed", python.display()));
        return;
    }
    let server = with_helper().await;
    create(&server, scripted("broken", &[], "turns: [{error: {kind: auth, message: bad key}}]")).await;
    let thinking = "turns: [{reasoning: Let me think., text: '{\"n\": 1}'}]";
    create(&server, scripted("thinker", &[], thinking)).await;
    let (address, token) = (server.url(""), server.token.clone());
    let driving = tokio::task::spawn_blocking(move || {
        let script = folder().join("peers/drive_agents.py");
        Command::new(python).arg(script).arg(address).arg(token).output().unwrap()
    });
    let output = driving.await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let read: Value = serde_json::from_slice(&output.stdout).unwrap();
    let text = "One moment.\n\nIt is 42.";
    assert_eq!(
        read,
        json!({
            "models": ["broken", "helper", "thinker"],
            "model": "helper",
            "chat": text,
            "chat_finish": "stop",
            "chat_stream": text,
            "chat_stream_usage": true,
            "chat_final": text,
            "reasoning": "Let me think.",
            "parsed": {"n": 1},
            "response": "One moment.It is 42.",
            "response_stream": "One moment.It is 42.",
            "response_final": "completed",
            "response_retrieved": "completed",
            "response_continued": "Hello!",
            "response_failed": "failed",
            "image": "Hello!",
            "errors": {
                "401": "AuthenticationError invalid_api_key",
                "404": "NotFoundError model_not_found",
                "400": "BadRequestError unsupported_parameter n",
                "tools": "BadRequestError unsupported_parameter tools",
                "run": "InternalServerError 1",
                "stream": "APIError",
            },
        })
    );
}
