//! `haft context`: manages the stored logins to servers.

use clap::Subcommand;
use serde_json::{Value, json};

use crate::context::Context;
use crate::contexts::{Contexts, LOCAL};
use crate::error::CliError;
use crate::server_url::shown;
use crate::view;

/// Manage stored logins to servers
///
/// A context is a server with a token. Commands use the current one, unless `--context`, `--server` or `--home` names
/// another place. The context `local` is the home folder of this machine.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List contexts
    #[command(visible_alias = "ls", after_help = examples!("haft context list"))]
    List,
    /// Make a context the one that commands use
    #[command(after_help = examples!("haft context use haft.example.com", "haft context use local"))]
    Use {
        /// Name of the context, or `local` for the home folder of this machine
        name: String,
    },
    /// Remove a context; its token stays valid
    #[command(visible_alias = "delete", after_help = examples!("haft context rm haft.example.com"))]
    Rm {
        /// Name of the context
        name: String,
    },
}

/// Runs the command.
pub(crate) fn run(command: Command, context: &Context) -> Result<(), CliError> {
    match command {
        Command::List => list(context),
        Command::Use { name } => select(&name, context),
        Command::Rm { name } => remove(&name, context),
    }
}

fn list(context: &Context) -> Result<(), CliError> {
    let contexts = Contexts::load(&context.environment)?;
    // A name that the file does not have is shown as no current context.
    let current = contexts.current().ok().flatten().map_or(LOCAL, |context| context.name.as_str());
    let home = context.home().map(|home| home.display().to_string()).unwrap_or_default();
    let local = json!({"name": LOCAL, "server": null, "tenant": null, "current": current == LOCAL});
    let stored = contexts.all().iter().map(|context| {
        let name = context.name.as_str();
        json!({
            "name": name,
            "server": shown(&context.server),
            "tenant": context.tenant,
            "current": name == current,
        })
    });
    let all: Vec<Value> = std::iter::once(local).chain(stored).collect();
    context.output.data(&json!({"contexts": all}), |output| {
        let rows = all.iter().map(|one| {
            let server = one.get("server").and_then(Value::as_str).unwrap_or(home.as_str());
            let is_current = one.get("current") == Some(&Value::Bool(true));
            vec![
                view::text(one, "name"),
                server.to_owned(),
                view::text(one, "tenant"),
                if is_current { "yes" } else { "" }.to_owned(),
            ]
        });
        output.list(&["NAME", "SERVER", "TENANT", "CURRENT"], &[], rows.collect())
    })
}

fn select(name: &str, context: &Context) -> Result<(), CliError> {
    let mut contexts = Contexts::load_for_change(&context.environment)?;
    contexts.select(name)?;
    let server = contexts.current()?.map(|context| shown(&context.server).to_owned());
    context.output.data(&json!({"current": name, "server": server}), |output| {
        match &server {
            Some(server) => output.note(&format!("commands use the context `{name}` ({server})")),
            None => output.note("commands use the home folder of this machine"),
        }
        Ok(())
    })?;
    warn_if_overridden(context);
    Ok(())
}

/// Warns if the current context is not used, because a variable or an option comes before it.
pub(super) fn warn_if_overridden(context: &Context) {
    if let Some(name) = context.selected_by() {
        context.output.warn(&format!(
            "`{name}` comes before the current context: commands with it do not use the context"
        ));
    }
}

fn remove(name: &str, context: &Context) -> Result<(), CliError> {
    let mut contexts = Contexts::load_for_change(&context.environment)?;
    let had_current = contexts.current().ok().flatten().is_some();
    let removed = contexts.remove(name)?;
    let server = shown(&removed.server);
    let is_local = had_current && contexts.current()?.is_none();
    context.output.data(&json!({"removed": name, "server": server}), |output| {
        output.note(&format!("removed context `{name}`; its token stays valid on {server}"));
        if is_local {
            output.note("commands use the home folder of this machine");
        }
        Ok(())
    })
}
