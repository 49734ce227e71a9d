//! The HTTP server of an installation.

use std::ops::Deref;
use std::sync::Arc;

use axum::Router;
use haft_core::spec::ToolSpec;
use haft_mcp::server::ProtocolExtension;
use haft_platform::settings::Settings;
use haft_platform::{Installation, StartError};
use haft_runtime::function::Functions;
use haft_runtime::stages::Stage;
use tokio::net::TcpListener;

use crate::mcp::{Mcp, StdioClient, UnknownBundle};
use crate::{router, serve};

/// What an embedding program adds: functions, built-in tools that use them, stages, and MCP methods.
#[derive(Default)]
pub struct Extensions {
    /// Functions that definitions can refer to.
    pub functions: Functions,
    /// Tools that are compiled in.
    pub built_ins: Vec<ToolSpec>,
    /// Stages around every call, outermost first; they run inside the stages of the server.
    pub stages: Vec<Arc<dyn Stage>>,
    /// Handles MCP requests that haft does not: prompts, resources, requests to the client.
    pub mcp: Option<Arc<dyn ProtocolExtension>>,
}

/// An open installation with its HTTP surface.
pub struct App {
    installation: Arc<Installation>,
    mcp: Arc<Mcp>,
}

impl App {
    /// Opens an installation.
    pub async fn open(settings: Settings) -> Result<Arc<Self>, StartError> {
        Self::open_with(settings, Extensions::default()).await
    }

    /// Opens an installation with a program's own functions and tools.
    pub async fn open_with(settings: Settings, extensions: Extensions) -> Result<Arc<Self>, StartError> {
        let Extensions { functions, built_ins, stages, mcp } = extensions;
        let extensions = haft_platform::Extensions { functions, built_ins, stages };
        let installation = Box::pin(Installation::open_with(settings, extensions)).await?;
        let mcp = Arc::new(Mcp::new(&installation, mcp));
        Ok(Arc::new(Self { installation, mcp }))
    }

    /// Builds the whole HTTP surface as a router, to be mounted in another program.
    pub fn router(&self) -> Router {
        router::embeddable(&self.installation, &self.mcp)
    }

    /// Returns the OpenAPI document of the API.
    pub fn openapi(&self) -> serde_json::Value {
        router::document(&self.installation)
    }

    /// Serves HTTP until `stop` completes; then lets running calls finish within the grace period.
    pub async fn serve(
        self: Arc<Self>,
        listener: TcpListener,
        stop: impl Future<Output = ()> + Send,
    ) -> std::io::Result<()> {
        serve::http(&self.installation, &self.mcp, listener, stop).await;
        Ok(())
    }

    /// Serves one MCP client over standard input and output until it disconnects or `stop` completes.
    pub async fn serve_stdio(
        self: Arc<Self>,
        client: StdioClient,
        stop: impl Future<Output = ()> + Send,
    ) -> Result<(), UnknownBundle> {
        serve::stdio(&self.installation, &self.mcp, client, stop).await
    }
}

impl Deref for App {
    type Target = Installation;

    fn deref(&self) -> &Installation {
        &self.installation
    }
}
