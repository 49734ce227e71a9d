//! The context of every command: global options, environment and output.

use std::path::PathBuf;

use haft_core::secret::Secret;
use serde_json::Value;

use crate::cli::Globals;
use crate::client::{Client, Request, connect, explain};
use crate::completion;
use crate::config::{self, Flags, LogSettings, Resolved};
use crate::contexts::{Contexts, LOCAL};
use crate::environment::Environment;
use crate::error::CliError;
use crate::output::{Form, Output};
use crate::server_url;
use crate::target::{Selection, Target};

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
        // Any other value is the output file of `toolset export`.
        let given = globals.output.as_deref().and_then(Form::parse);
        let form = if globals.json { Form::Json } else { given.unwrap_or(Form::Text) };
        let output = Output::new(form, globals.color, &environment)
            .without_headers(globals.no_headers)
            .quiet(globals.quiet);
        Self { globals, environment, output }
    }

    /// Returns the context with the connection of another command line, where that has one.
    pub(crate) fn with_connection(&self, given: completion::Globals) -> Self {
        let mut globals = self.globals.clone();
        globals.home = given.home.map(PathBuf::from).or(globals.home);
        globals.server = given.server.or(globals.server);
        globals.context = given.context.or(globals.context);
        globals.token = given.token.map(Secret::new).or(globals.token);
        Self::new(globals, self.environment.clone())
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

    /// Returns the token of `--token`. That of the environment is not for every server.
    pub(crate) fn token_option(&self) -> Option<Secret> {
        self.globals.token.clone()
    }

    /// Returns where requests go. Options come before variables, and the current context only counts if no home folder is
    /// named.
    pub(crate) fn target(&self) -> Result<Target, CliError> {
        let Globals { server, context, home, .. } = &self.globals;
        let variable = |name| self.environment.get(name);
        if server.is_some() && context.is_some() {
            return Err(CliError::usage("`--server` and `--context` exclude each other; pass one of them"));
        }
        if let Some(url) = server {
            return Ok(Target::Server(server_url::parse(url)?));
        }
        if let Some(name) = context {
            return self.named_context(name);
        }
        if let Some(url) = variable("HAFT_SERVER") {
            return Ok(Target::Server(server_url::parse(url)?));
        }
        if let Some(name) = variable("HAFT_CONTEXT") {
            return self.named_context(name);
        }
        if home.is_some() || variable("HAFT_HOME").is_some() {
            return Ok(Target::Home);
        }
        let contexts = Contexts::load(&self.environment)?;
        let current = contexts.current()?.cloned();
        Ok(current.map_or(Target::Home, |context| Target::Context(Box::new(context), Selection::Current)))
    }

    fn named_context(&self, name: &str) -> Result<Target, CliError> {
        if name == LOCAL {
            return Ok(Target::Home);
        }
        let context = Contexts::load(&self.environment)?.get(name)?.clone();
        Ok(Target::Context(Box::new(context), Selection::Named))
    }

    /// Returns the option or the variable that comes before the current context, if there is one.
    pub(crate) fn selected_by(&self) -> Option<&'static str> {
        let Globals { server, context, home, .. } = &self.globals;
        let is_set = |name: &&'static str| self.environment.get(name).is_some();
        let options =
            [("--server", server.is_some()), ("--context", context.is_some()), ("--home", home.is_some())];
        let option = options.into_iter().find(|(_, given)| *given).map(|(name, _)| name);
        option.or_else(|| ["HAFT_SERVER", "HAFT_CONTEXT", "HAFT_HOME"].into_iter().find(is_set))
    }

    /// Notes, if requests go to a named server, that something is on the machine of that server.
    pub(crate) fn note_remote(&self, what: &str) {
        if let Ok(target) = self.target()
            && let Some(url) = target.url()
        {
            let url = server_url::shown(url);
            self.output.note(&format!("{what} on the machine of the server at {url}"));
        }
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
