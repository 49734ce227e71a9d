//! A haft server that also serves functions of the program.
//!
//! ```no_run
//! use haft::ToolDef;
//! use haft::server::{Server, Settings};
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Greet {
//!     name: String,
//! }
//!
//! # async fn run() -> Result<(), haft::server::ServerError> {
//! Server::new(Settings::for_home("haft-home".into()))
//!     .tool(ToolDef::new("greet", |args: Greet| async move { format!("Hello, {}!", args.name) }))
//!     .serve(async { drop(tokio::signal::ctrl_c().await) })
//!     .await
//! # }
//! ```

use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::Arc;

use haft_core::name::ToolName;
use haft_runtime::stages::Stage;
pub use haft_server::settings::Settings;
pub use haft_server::{App, StartError, settings};
use haft_server::{Extensions, Functions};
use tokio::net::TcpListener;

use crate::def::ToolDef;
use crate::error::{RegisterError, RegisterErrorKind};
use crate::set::validated_spec;

/// The error of starting or running a server.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// A tool cannot be registered.
    #[error(transparent)]
    Tool(#[from] RegisterError),
    /// The installation cannot be opened.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The server cannot listen on the address.
    #[error("cannot listen on `{addr}`")]
    Listen {
        /// The address.
        addr: SocketAddr,
        /// The cause.
        source: std::io::Error,
    },
    /// The server stopped with an error.
    #[error("the server stopped with an error")]
    Serve(#[source] std::io::Error),
}

/// Configures and runs a server with the program's tools, functions and middleware.
#[must_use = "a server does nothing until `serve` or `open` is called"]
pub struct Server {
    settings: Settings,
    tools: Vec<ToolDef>,
    functions: Vec<ToolDef>,
    layers: Vec<Arc<dyn Stage>>,
}

impl Server {
    /// Creates a server with settings such as [`Settings::for_home`].
    pub fn new(settings: Settings) -> Self {
        Self { settings, tools: Vec::new(), functions: Vec::new(), layers: Vec::new() }
    }

    /// Adds a tool: it is served as a built-in tool, and stored definitions can name its function.
    pub fn tool(mut self, def: ToolDef) -> Self {
        self.tools.push(def);
        self
    }

    /// Adds a function that stored definitions can name (`type: builtin`), without a tool of its own.
    ///
    /// A stored tool whose function is missing stays unchanged and is not ready until a program registers the function
    /// again.
    pub fn function(mut self, def: ToolDef) -> Self {
        self.functions.push(def);
        self
    }

    /// Adds a middleware layer around every call. The layer that was added last sees a call first.
    pub fn layer(mut self, stage: impl Stage + 'static) -> Self {
        self.layers.push(Arc::new(stage));
        self
    }

    /// Opens the installation without listening, for programs that call [`App::serve`] themselves.
    pub async fn open(self) -> Result<Arc<App>, ServerError> {
        let (settings, extensions) = self.extensions()?;
        Ok(App::open_with(settings, extensions).await?)
    }

    /// Listens on the address in the settings and serves until `stop` completes; running calls then finish.
    pub async fn serve(self, stop: impl Future<Output = ()> + Send) -> Result<(), ServerError> {
        let addr = self.settings.addr;
        let listener =
            TcpListener::bind(addr).await.map_err(|source| ServerError::Listen { addr, source })?;
        self.open().await?.serve(listener, stop).await.map_err(ServerError::Serve)
    }

    fn extensions(self) -> Result<(Settings, Extensions), RegisterError> {
        let functions = Functions::default();
        let mut built_ins = Vec::new();
        let mut taken = HashSet::new();
        let defs = self.tools.into_iter().map(|def| (def, true));
        for (def, is_tool) in defs.chain(self.functions.into_iter().map(|def| (def, false))) {
            let register_error = |kind| RegisterError { tool: def.name.clone(), kind };
            let spec = validated_spec(&def).map_err(register_error)?;
            // A program may use some names that are reserved on a server because they are part of routes.
            ToolName::new(&def.name).map_err(|error| register_error(error.into()))?;
            if !taken.insert(def.name.clone()) {
                return Err(register_error(RegisterErrorKind::Duplicate));
            }
            functions.insert(&def.name, def.function);
            if is_tool {
                built_ins.push(spec);
            }
        }
        let mut stages = self.layers;
        stages.reverse();
        Ok((self.settings, Extensions { functions, built_ins, stages, mcp: None }))
    }
}
