//! A folder of definitions: loaded, followed while the program runs, and mixed with a function of the program.
//!
//! `cargo run -p haft --example yaml_folder`, and meanwhile change a file in `crates/haft/examples/definitions`.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::path::Path;
use std::time::Duration;

use haft::{Tools, tool};
use serde_json::json;

/// Says a text loudly.
#[tool]
fn upper(text: &str) -> String {
    text.to_uppercase()
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let tools = Tools::new();
    // Known to definitions, without being a tool of its own.
    tools.register_function(upper::tool())?;

    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/definitions");
    let watch = tools.watch(&folder)?;
    println!("{}", watch.report());

    println!("{}", tools.execute("shout", json!({"text": "hello"})).await?);
    println!("{}", tools.execute("count_words", json!({"text": "one two three"})).await?);
    for _ in 0..30 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        println!("tools: {:?}", tools.names());
        for fault in tools.faults() {
            println!("  {fault}");
        }
    }
    Ok(())
}
