//! The server that the public MCP conformance suites run against (`tools/conformance`).
//!
//! A program that embeds haft: it registers functions as tools and extends the protocol by prompts, resources and tools
//! that request input from the client. Run without arguments it serves standard input and output; with an address it
//! listens there and prints its URL. The suites send no token, so the program adds its own to every request.

#![expect(clippy::print_stdout, reason = "the script reads the URL from stdout")]

mod inputs;
mod prompts;
mod resources;
mod schemas;
mod tools;

use std::sync::Arc;

use axum::extract::Request;
use axum::http::{HeaderValue, header};
use axum::middleware::{self, Next};
use haft_core::BoxFuture;
use haft_server::settings::Settings;
use haft_server::{
    App, ExtensionError, ExtensionRequest, ExtensionResult, Extensions, ProtocolExtension, StdioClient,
};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

/// A red pixel.
const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
/// An empty recording.
const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let home = tempfile::tempdir()?;
    let mut settings = Settings::for_home(home.path().to_owned());
    settings.built_ins.enabled = false;
    let extensions = Extensions {
        functions: tools::functions(),
        built_ins: tools::specs()?,
        mcp: Some(Arc::new(Conformance::default())),
        ..Extensions::default()
    };
    let app = App::open_with(settings, extensions).await?;
    app.verify().await;
    let mut terminated = signal(SignalKind::terminate())?;
    let stop = async move {
        let _ = terminated.recv().await;
    };
    let Some(addr) = std::env::args().nth(1) else {
        return Ok(app.serve_stdio(StdioClient::default(), stop).await?);
    };
    let authorization = HeaderValue::try_from(format!("Bearer {}", app.local_token().expose()))?;
    let authorize = middleware::from_fn(move |mut request: Request, next: Next| {
        request.headers_mut().insert(header::AUTHORIZATION, authorization.clone());
        next.run(request)
    });
    let listener = TcpListener::bind(addr).await?;
    println!("http://{}/mcp", listener.local_addr()?);
    let served = axum::serve(listener, app.router().layer(authorize)).into_future();
    tokio::select! {
        served = served => served?,
        () = stop => {}
    }
    app.close().await;
    Ok(())
}

/// What the suites request besides ordinary tools.
#[derive(Default)]
struct Conformance {
    inputs: inputs::Inputs,
}

impl ProtocolExtension for Conformance {
    fn capabilities(&self) -> Value {
        json!({"resources": {"subscribe": true}, "prompts": {}, "completions": {}})
    }

    fn handle<'a>(&'a self, request: ExtensionRequest<'a>) -> BoxFuture<'a, Option<ExtensionResult>> {
        Box::pin(async move {
            let params = &request.params;
            Some(match request.method {
                "tools/call" => return self.inputs.call(params, &request.client).await,
                "resources/list" => Ok(resources::list()),
                "resources/templates/list" => Ok(resources::templates()),
                "resources/read" => resources::read(text(params, "uri")),
                "resources/subscribe" | "resources/unsubscribe" => Ok(json!({})),
                "prompts/list" => Ok(prompts::list()),
                "prompts/get" => prompts::get(params),
                "completion/complete" => {
                    Ok(json!({"completion": {"values": [], "total": 0, "hasMore": false}}))
                }
                _ => return None,
            })
        })
    }
}

/// Returns a field that is a string; other values are empty.
fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn not_found(what: &str, data: Value) -> ExtensionError {
    ExtensionError { code: -32002, message: format!("{what} not found"), data: Some(data) }
}
