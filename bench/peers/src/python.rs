//! The Python peers, measured by `peers.py` in the environment that `tools/setup peers library` creates.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::Row;

/// The rows and their keys in the output of `peers.py`.
const ROWS: [(&str, Row); 3] = [
    (
        "plain",
        Row { name: "Python: the function itself", arguments: "values", checks: "nothing", time: None },
    ),
    (
        "pydantic_ai",
        Row {
            name: "Pydantic-AI, `ToolManager.handle_call`",
            arguments: "dict",
            checks: "types (pydantic)",
            time: None,
        },
    ),
    (
        "langchain",
        Row {
            name: "LangChain, `StructuredTool.invoke`",
            arguments: "dict",
            checks: "types (pydantic)",
            time: None,
        },
    ),
];

/// Measures the peers; those that are not installed have no time.
pub fn measure() -> Vec<Row> {
    let times = run();
    ROWS.into_iter()
        .map(|(key, row)| Row {
            time: times.get(key).and_then(Value::as_u64).map(Duration::from_nanos),
            ..row
        })
        .collect()
}

/// Returns the median in nanoseconds by key.
fn run() -> Value {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let interpreter = root.join("../../target/bench-peers/library/bin/python");
    let output = Command::new(interpreter).arg(root.join("peers.py")).output();
    let Ok(output) = output else { return Value::Null };
    if !output.status.success() {
        eprintln!("peers.py: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    serde_json::from_slice(&output.stdout).unwrap_or_default()
}
