//! Loads a folder of definitions, watches it while the program runs, and combines it with a function of the program.
//!
//! `cargo run -p haft --example yaml_folder`, and meanwhile change a file in `crates/haft/examples/definitions`.
#![expect(clippy::print_stdout, reason = "an example prints its results")]

use std::path::Path;
use std::time::Duration;

use haft::{Tools, tool};
use serde_json::json;

/// Converts a text to upper case.
#[tool]
fn upper(text: &str) -> String {
    text.to_uppercase()
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let tools = Tools::new();
    // Definitions can name the function; it is not a tool itself.
    tools.register_function(upper::tool())?;

    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/definitions");
    let guard = tools.watch(&folder)?;
    println!("{}", guard.report());

    println!("{}", tools.execute("shout", json!({"text": "hello"})).await?);
    println!("{}", tools.execute("count_words", json!({"text": "one two three"})).await?);
    for _ in 0..30 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        println!("tools: {:?}", tools.names());
        for tool in tools.not_ready() {
            println!("  {tool}");
        }
    }
    Ok(())
}
