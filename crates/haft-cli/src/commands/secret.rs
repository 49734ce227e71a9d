//! `haft secret`: keeps the secrets that tools name as `${NAME}`.

use clap::Subcommand;
use http::Method;
use serde_json::json;

use crate::client::{Body, Request, segment};
use crate::context::Context;
use crate::error::CliError;
use crate::input;
use crate::view;

/// Keep the secrets that tools name as `${NAME}`
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Store a secret; its value comes from stdin, or is asked for without echo
    Set {
        /// The name, as in `${NAME}`
        name: String,
    },
    /// List the names; values are never shown
    #[command(visible_alias = "ls")]
    List,
    /// Remove a secret
    Rm {
        /// The name
        name: String,
    },
}

/// Runs the command.
pub(crate) async fn run(command: Command, context: &Context) -> Result<(), CliError> {
    match command {
        Command::Set { name } => set(&name, context).await,
        Command::List => list(context).await,
        Command::Rm { name } => remove(&name, context).await,
    }
}

async fn set(name: &str, context: &Context) -> Result<(), CliError> {
    let value = input::read_secret(&format!("Value of {name}"))?;
    let body = Body::Json(json!({"value": value.expose()}));
    let request = Request::new(Method::PUT, format!("/api/credentials/{}", segment(name))).with_body(body);
    let data = context.ask(request).await?;
    context.output.data(&data, |output| {
        output.note(&format!("stored the secret `{name}`; tools read it as ${{{name}}}"));
        Ok(())
    })
}

async fn list(context: &Context) -> Result<(), CliError> {
    let data = context.ask(Request::get("/api/credentials?page_size=500")).await?;
    context.output.data(&data, |output| {
        let rows = view::list(&data, "credentials").iter();
        let rows = rows.map(|row| vec![view::text(row, "name"), view::time(row, "modified_at")]).collect();
        output.table(&["NAME", "CHANGED"], rows)
    })
}

async fn remove(name: &str, context: &Context) -> Result<(), CliError> {
    let data = context.ask(Request::delete(format!("/api/credentials/{}", segment(name)))).await?;
    context.output.data(&data, |output| {
        output.note(&format!("removed the secret `{name}`"));
        Ok(())
    })
}
