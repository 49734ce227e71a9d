//! A haft server with the program's own functions in it.
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
use crate::error::{Reason, RegisterError};
use crate::set::checked;

/// Why a server does not start, or stopped.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// A tool cannot be registered.
    #[error(transparent)]
    Tool(#[from] RegisterError),
    /// The installation cannot be opened.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The address cannot be used.
    #[error("listen on `{addr}`")]
    Listen {
        /// The address.
        addr: SocketAddr,
        /// What went wrong.
        source: std::io::Error,
    },
    /// The server stopped by itself.
    #[error("serve")]
    Serve(#[source] std::io::Error),
}

/// A server in the making: its settings, and what the program brings along.
#[must_use = "nothing is served until `serve`"]
pub struct Server {
    settings: Settings,
    tools: Vec<ToolDef>,
    functions: Vec<ToolDef>,
    layers: Vec<Arc<dyn Stage>>,
}

impl Server {
    /// Starts with settings, such as [`Settings::for_home`].
    pub fn new(settings: Settings) -> Self {
        Self { settings, tools: Vec::new(), functions: Vec::new(), layers: Vec::new() }
    }

    /// Adds a tool: it is served as a built-in one, and stored definitions may name its function.
    pub fn tool(mut self, def: ToolDef) -> Self {
        self.tools.push(def);
        self
    }

    /// Adds a function that stored definitions may name (`type: builtin`), without a tool of its own.
    ///
    /// A stored tool whose function is missing is not ready, is left as it is, and is back when the program brings
    /// the function again.
    pub fn function(mut self, def: ToolDef) -> Self {
        self.functions.push(def);
        self
    }

    /// Puts a layer around every call, around those that were added before it.
    pub fn layer(mut self, stage: impl Stage + 'static) -> Self {
        self.layers.push(Arc::new(stage));
        self
    }

    /// Opens the installation without listening, for programs that do it by themselves: [`App::serve`].
    pub async fn open(self) -> Result<Arc<App>, ServerError> {
        let (settings, extensions) = self.extensions()?;
        Ok(App::open_with(settings, extensions).await?)
    }

    /// Listens at the address of the settings and serves until `stop` is over; then lets what is running finish.
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
            let refused = |reason| RegisterError { tool: def.name.clone(), reason };
            let spec = checked(&def).map_err(refused)?;
            // Some names that a program may use are words of the routes.
            ToolName::new(&def.name).map_err(|error| refused(error.into()))?;
            if !taken.insert(def.name.clone()) {
                return Err(refused(Reason::Duplicate));
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
