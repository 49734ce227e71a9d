//! The servers under test. Each prints its address and then its token.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use axum::body::Bytes;
use axum::extract::Json;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderValue};
use axum::routing::post;
use haft_core::secret::Secret;
use haft_server::settings::{LedgerSync, Settings};
use haft_server::{App, Extensions, Functions};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ListToolsResult, PaginatedRequestParams,
    ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// A handler that only parses the call and returns the same JSON as haft.
pub fn plain() -> Result<()> {
    runtime()?.block_on(async {
        let handler = |Json(body): Json<Value>| async move {
            let value = body.get("args").cloned().unwrap_or_default();
            Json(json!({"ok": true, "value": value, "call_id": "01a1dd14-f93e-7dc1-8735-3d174088b1ac", "duration_ms": 0.01}))
        };
        let router = axum::Router::new().route("/api/tools/noop/invoke", post(handler));
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        announce(&listener, "none")?;
        let listener = axum::serve::ListenerExt::tap_io(listener, |stream| {
            let _ = stream.set_nodelay(true);
        });
        Ok(axum::serve(listener, router).await?)
    })
}

/// A server that only forwards each request, the lower bound for a gateway.
pub fn proxy(url: &str) -> Result<()> {
    // The client requires a TLS provider, although nothing is encrypted here.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder().tcp_nodelay(true).no_proxy().build()?;
    let url: reqwest::Url = url.parse()?;
    runtime()?.block_on(async move {
        let forward = move |headers: HeaderMap, body: Bytes| async move {
            let mut request = client.post(url).body(body);
            for (name, value) in
                headers.iter().filter(|(name, _)| !CONNECTION_HEADERS.contains(&name.as_str()))
            {
                request = request.header(name, value);
            }
            let response = request.send().await.map_err(|error| error.to_string())?;
            let content_type = response.headers().get(CONTENT_TYPE).cloned();
            let bytes = response.bytes().await.map_err(|error| error.to_string())?;
            Ok::<_, String>((
                [(CONTENT_TYPE, content_type.unwrap_or(HeaderValue::from_static("text/plain")))],
                bytes,
            ))
        };
        let router = axum::Router::new().route("/mcp", post(forward));
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        announce(&listener, "none")?;
        let listener = axum::serve::ListenerExt::tap_io(listener, |stream| {
            let _ = stream.set_nodelay(true);
        });
        Ok(axum::serve(listener, router).await?)
    })
}

/// Headers that are not forwarded.
const CONNECTION_HEADERS: [&str; 3] = ["host", "content-length", "connection"];

/// haft with one function that does nothing, on SQLite or on a PostgreSQL database.
pub fn haft(home: &str, sync: LedgerSync, database: Option<&str>) -> Result<()> {
    let mut settings = Settings::for_home(PathBuf::from(home));
    settings.ledger.sync = sync;
    if let Some(url) = database {
        settings.database_url = Some(Secret::new(url.to_owned()));
        settings.key = Some(Secret::new("00".repeat(32)));
    }
    serve_haft(settings)
}

/// haft with the same function, and a model server on loopback.
pub fn haft_with_model(home: &str, model: &str) -> Result<()> {
    let mut settings = Settings::for_home(PathBuf::from(home));
    settings.models.private_urls = vec![model.to_owned()];
    serve_haft(settings)
}

fn serve_haft(mut settings: Settings) -> Result<()> {
    runtime()?.block_on(async {
        // The MCP servers behind haft listen on loopback.
        settings.egress.private_hosts = vec!["127.0.0.1".to_owned()];
        let functions = Functions::default().with_async("noop", |args| async { Ok(Value::Object(args)) });
        let app = App::open_with(settings, Extensions { functions, ..Extensions::default() }).await?;
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        announce(&listener, app.local_token().expose())?;
        app.serve(listener, std::future::pending()).await?;
        Ok(())
    })
}

/// A plain rmcp server with one tool, which returns its arguments.
pub fn rmcp() -> Result<()> {
    use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
    use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
    runtime()?.block_on(async {
        let config = StreamableHttpServerConfig::default().with_json_response(true);
        let sessions = Arc::new(LocalSessionManager::default());
        let service = StreamableHttpService::new(|| Ok(Noop), sessions, config);
        let router = axum::Router::new().nest_service("/mcp", service);
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        announce(&listener, "none")?;
        let listener = axum::serve::ListenerExt::tap_io(listener, |stream| {
            let _ = stream.set_nodelay(true);
        });
        Ok(axum::serve(listener, router).await?)
    })
}

/// The same server on standard input and output.
pub fn rmcp_stdio() -> Result<()> {
    runtime()?.block_on(async {
        let service = rmcp::serve_server(Noop, rmcp::transport::stdio_pipes()).await?;
        service.waiting().await?;
        Ok(())
    })
}

struct Noop;

impl ServerHandler for Noop {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let schema = json!({"type": "object", "required": ["city"], "properties": {
            "city": {"type": "string"}, "days": {"type": "integer", "maximum": 14}}});
        let schema = schema.as_object().cloned().unwrap_or_default();
        Ok(ListToolsResult::with_all_items(vec![Tool::new("noop", "Returns its arguments", schema)]))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let value = Value::Object(request.arguments.unwrap_or_default());
        Ok(CallToolResult::structured(value).into())
    }
}

pub fn runtime() -> Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_multi_thread().enable_all().build()?)
}

pub fn announce(listener: &TcpListener, token: &str) -> Result<()> {
    println!("{}\n{token}", listener.local_addr()?);
    Ok(())
}
