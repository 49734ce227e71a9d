//! A haft server with a function of this program.
//!
//! `cargo run -p haft --features server --example embed_server`; then, with the token that it prints:
//! `curl -H "Authorization: Bearer …" -d '{"args":{"name":"Ada"}}' http://127.0.0.1:18789/api/tools/greet/invoke`
#![expect(clippy::print_stdout, reason = "an example prints its results")]

use haft::server::{Server, Settings};
use haft::tool;

/// Greets someone by name.
#[tool]
fn greet(name: &str) -> String {
    format!("Hello, {name}!")
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut settings = Settings::for_home("haft-home".into());
    if let Some(address) = std::env::args().nth(1) {
        settings.addr = address.parse()?;
    }
    let listener = tokio::net::TcpListener::bind(settings.addr).await?;
    let app = Server::new(settings).tool(greet::tool()).open().await?;
    println!("listening on http://{}; token: {}", listener.local_addr()?, app.local_token().expose());
    app.serve(listener, async { drop(tokio::signal::ctrl_c().await) }).await?;
    Ok(())
}
