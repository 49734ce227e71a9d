//! A layer of one's own around every call: here, one that measures.
//!
//! `cargo run -p haft --example middleware`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::time::Instant;

use haft::middleware::{Call, Next, Stage};
use haft::{CallError, ToolDef, Tools, Work};
use serde_json::{Value, json};

/// Says how long each call took, and what came of it.
struct Measure;

impl Stage for Measure {
    fn call<'a>(&'a self, call: &'a mut Call, next: Next<'a>) -> Work<'a, Result<Value, CallError>> {
        Box::pin(async move {
            let name = call.plan.spec.name.clone();
            let started = Instant::now();
            let outcome = next.run(call).await;
            let word = if outcome.is_ok() { "done" } else { "failed" };
            println!("{name}: {word} after {:?}", started.elapsed());
            outcome
        })
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let tools = Tools::builder()
        .layer(Measure)
        .tool(ToolDef::new("echo", |args: Value| async move { args }))
        .build()?;
    tools.execute("echo", json!({"text": "hello"})).await?;

    // A view has one more layer; the set that it is of stays as it is.
    let twice = tools.layer(Measure);
    twice.execute("echo", json!({})).await?;
    Ok(())
}
