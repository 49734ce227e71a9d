//! Turns a function into a tool, calls it with JSON, and prints its schema for a model.
//!
//! `cargo run -p haft --example hello`
#![expect(clippy::print_stdout, reason = "an example prints its results")]

use haft::{Format, Tools, tool};
use serde_json::json;

/// Greets someone by name.
#[tool]
fn greet(
    /// The person to greet
    name: &str,
) -> String {
    format!("Hello, {name}!")
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let tools = Tools::new();
    tools.register(greet::tool())?;

    println!("{}", tools.execute("greet", json!({"name": "Ada"})).await?);
    if let Err(error) = tools.execute("greet", json!({"nmae": "Ada"})).await {
        println!("{}", error.model_text());
    }
    for definition in tools.schema(Format::OpenAi) {
        println!("{definition:#}");
    }
    Ok(())
}
