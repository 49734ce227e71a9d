//! The built-in tools together with a tool of the program: `cargo run -p haft --features builtins --example
//! built_in_tools`.
#![expect(clippy::print_stdout, reason = "an example prints its results")]

use haft::{Tools, tool};
use serde_json::json;

/// Counts the words of a text.
#[tool]
fn count_words(text: &str) -> usize {
    text.split_whitespace().count()
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let tools = Tools::builder()
        .sandbox(folder.path())
        // `send_email` reads these variables at each call; no others are read.
        .env(["SMTP_HOST", "SMTP_USER", "SMTP_PASS"])
        .tool(count_words::tool())
        .built_ins()
        .build()?;
    println!("all tools: {}", tools.names().join(", "));

    // An agent with this view can run these tools only.
    let writer = tools.filter(["write_file", "read_file", "list_files", "count_words"])?;
    writer.execute("write_file", json!({"path": "report/draft.md", "content": "All is well."})).await?;
    let text: String = writer.execute_as("read_file", json!({"path": "report/draft.md"})).await?;
    println!("{} words", writer.execute("count_words", json!({"text": text})).await?);
    if let Err(error) = writer.execute("exec", json!({"command": "rm -rf /"})).await {
        println!("{}", error.model_text());
    }
    Ok(())
}
