//! Middleware around every call: timeout, rate limit, retries, audit, and a custom layer.
//!
//! `cargo run -p haft --example middleware`
#![expect(clippy::print_stdout, reason = "an example prints its results")]

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use haft::middleware::{Audit, AuditedCall, Call, Next, Rate, RateLimit, Retry, Timeout, from_fn_with};
use haft::{Failure, ToolDef, Tools};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

#[derive(Deserialize, JsonSchema)]
struct Search {
    /// The text to search for
    query: String,
}

async fn search(args: Search) -> Result<String, Failure> {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    // The first attempt fails with a retryable error; `Retry` tries again.
    match CALLS.fetch_add(1, Ordering::Relaxed) {
        0 => Err(Failure::new("the service is busy").retryable()),
        _ => Ok(format!("no results for {}", args.query)),
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let counter =
        from_fn_with(AtomicU64::new(0), async |count: &AtomicU64, call: &mut Call, next: Next<'_>| {
            println!("call {}: {}", count.fetch_add(1, Ordering::Relaxed) + 1, call.tool());
            next.run(call).await
        });
    // The layer that is added last sees a call first.
    let tools = Tools::builder()
        .tool(ToolDef::new("web_search", search))
        .layer(Timeout::new(Duration::from_secs(5))?)
        .layer(RateLimit::per_tool([("web_search", Rate::per_minute(2))])?)
        .layer(Retry::new(1))
        .layer(counter)
        .layer(Audit::new(|audited: AuditedCall| println!("{}: {:?}", audited.tool, audited.outcome)))
        .build()?;

    for query in ["hammers", "chisels", "files"] {
        match tools.execute("web_search", json!({"query": query})).await {
            Ok(value) => println!("{value}"),
            Err(error) => println!("{error}"),
        }
    }
    Ok(())
}
