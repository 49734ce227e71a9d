//! The context of every command: global options, environment and output.

use std::path::PathBuf;

use haft_core::secret::Secret;
use serde_json::Value;
use url::Url;

use crate::cli::Globals;
use crate::client::{Client, Request, connect, explain};
use crate::config::{self, Flags, LogSettings, Resolved};
use crate::environment::Environment;
use crate::error::CliError;
use crate::output::{Form, Output};

/// The context of a command.
pub(crate) struct Context {
    globals: Globals,
    /// The environment of the process.
    pub(crate) environment: Environment,
    /// The output.
    pub(crate) output: Output,
}

impl Context {
    /// Creates the context of a command.
    pub(crate) fn new(globals: Globals, environment: Environment) -> Self {
        let form = if globals.json { Form::Json } else { Form::Text };
        let output = Output::new(form, globals.color, &environment);
        Self { globals, environment, output }
    }

    /// Returns the home folder.
    pub(crate) fn home(&self) -> Result<PathBuf, CliError> {
        Ok(config::home(self.globals.home.as_deref(), &self.environment)?)
    }

    /// Resolves the configuration.
    pub(crate) fn resolve(&self) -> Result<Resolved, CliError> {
        self.resolve_with(&Flags::default())
    }

    /// Resolves the configuration with the options of a command.
    pub(crate) fn resolve_with(&self, flags: &Flags) -> Result<Resolved, CliError> {
        let flags = Flags {
            home: self.globals.home.clone(),
            token: self.globals.token.clone(),
            log: self.globals.log.clone(),
            addr: flags.addr,
            mode: flags.mode,
        };
        Ok(config::resolve(&flags, &self.environment)?)
    }

    /// Lowers the log level of a short command to warnings, unless a level is given.
    pub(crate) fn quiet(&self, log: LogSettings) -> LogSettings {
        let is_given = self.globals.log.is_some() || self.environment.get("HAFT_LOG").is_some();
        if is_given { log } else { LogSettings { level: "warn".to_owned(), ..log } }
    }

    /// Returns the given token.
    pub(crate) fn token(&self) -> Option<Secret> {
        let from_environment = || self.environment.get("HAFT_TOKEN").map(|text| Secret::new(text.to_owned()));
        self.globals.token.clone().or_else(from_environment)
    }

    /// Returns the given server.
    pub(crate) fn server(&self) -> Result<Option<Url>, CliError> {
        let Some(text) = self.globals.server.as_deref().or_else(|| self.environment.get("HAFT_SERVER"))
        else {
            return Ok(None);
        };
        let url =
            Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        url.map(Some).ok_or_else(|| {
            CliError::usage(format!(
                "invalid server URL `{text}`: expected a URL such as `http://127.0.0.1:18789`"
            ))
        })
    }

    /// Connects to the server, or opens the home folder.
    pub(crate) async fn client(&self) -> Result<Client, CliError> {
        connect(self).await
    }

    /// Sends one request and returns the `data` of its response.
    pub(crate) async fn request(&self, request: Request) -> Result<Value, CliError> {
        let client = self.client().await?;
        let data = client.data(request).await;
        client.close().await;
        data
    }

    /// Sends one request about a tool; an error names the tool, or the most similar one.
    pub(crate) async fn tool_request(&self, tool: &str, request: Request) -> Result<Value, CliError> {
        let client = self.client().await?;
        let data = match client.data(request).await {
            Err(error) => Err(explain(error, tool, &client).await),
            data => data,
        };
        client.close().await;
        data
    }
}
