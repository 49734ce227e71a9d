//! What every command gets: the global flags, the environment, and where to print.

use std::path::PathBuf;

use haft_core::secret::Secret;
use serde_json::Value;
use url::Url;

use crate::cli::Globals;
use crate::client::{Client, Request, connect};
use crate::config::{self, Flags, LogSettings, Resolved};
use crate::environment::Environment;
use crate::error::CliError;
use crate::output::{Form, Output};

/// What every command gets.
pub(crate) struct Context {
    globals: Globals,
    /// The environment of the process.
    pub(crate) environment: Environment,
    /// Where to print.
    pub(crate) output: Output,
}

impl Context {
    /// Makes the context of a command.
    pub(crate) fn new(globals: Globals, environment: Environment) -> Self {
        let form = if globals.json { Form::Programs } else { Form::People };
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

    /// Resolves the configuration with the flags of a command.
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

    /// Lowers the log of a short command to warnings, unless a level was asked for.
    pub(crate) fn quiet(&self, log: LogSettings) -> LogSettings {
        let asked = self.globals.log.is_some() || self.environment.get("HAFT_LOG").is_some();
        if asked { log } else { LogSettings { level: "warn".to_owned(), ..log } }
    }

    /// Returns the token that was given.
    pub(crate) fn token(&self) -> Option<Secret> {
        let from_environment = || self.environment.get("HAFT_TOKEN").map(|text| Secret::new(text.to_owned()));
        self.globals.token.clone().or_else(from_environment)
    }

    /// Returns the server that was named.
    pub(crate) fn server(&self) -> Result<Option<Url>, CliError> {
        let Some(text) = self.globals.server.as_deref().or_else(|| self.environment.get("HAFT_SERVER"))
        else {
            return Ok(None);
        };
        let url =
            Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        url.map(Some).ok_or_else(|| {
            CliError::Usage(format!(
                "`{text}` is no address of a server; write it like `http://127.0.0.1:18789`"
            ))
        })
    }

    /// Connects to the server, or opens the home folder.
    pub(crate) async fn client(&self) -> Result<Client, CliError> {
        connect(self).await
    }

    /// Sends one request and returns the `data` of its answer.
    pub(crate) async fn ask(&self, request: Request) -> Result<Value, CliError> {
        let client = self.client().await?;
        let answer = client.data(request).await;
        client.close().await;
        answer
    }
}
