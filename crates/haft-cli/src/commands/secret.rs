//! `haft secret`: manages secrets, which tools refer to as `${NAME}`.

use clap::Subcommand;
use http::Method;
use serde_json::json;

use crate::client::{Body, Request, segment};
use crate::context::Context;
use crate::error::CliError;
use crate::input;
use crate::view;

/// Manage secrets, which tools refer to as `${NAME}`
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Store a secret; the value is read from stdin, or prompted for
    #[command(after_help = examples!("haft secret set WEATHER_API_KEY < key.txt", "echo -n VALUE | haft secret set NAME"))]
    Set {
        /// Name of the secret
        name: String,
    },
    /// List the names of secrets
    #[command(visible_alias = "ls", after_help = examples!("haft secret list"))]
    List,
    /// Delete a secret
    #[command(after_help = examples!("haft secret rm WEATHER_API_KEY"))]
    Rm {
        /// Name of the secret
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
    let data = context.request(request).await?;
    context.output.data(&data, |output| {
        output.note(&format!("stored secret `{name}`; tools refer to it as `${{{name}}}`"));
        Ok(())
    })
}

async fn list(context: &Context) -> Result<(), CliError> {
    let data = context.request(Request::get("/api/credentials?page_size=500")).await?;
    context.output.data(&data, |output| {
        let rows = view::list(&data, "credentials").iter();
        let rows = rows.map(|row| vec![view::text(row, "name"), view::time(row, "modified_at")]).collect();
        output.table(&["NAME", "CHANGED"], rows)
    })
}

async fn remove(name: &str, context: &Context) -> Result<(), CliError> {
    let data = context.request(Request::delete(format!("/api/credentials/{}", segment(name)))).await?;
    context.output.data(&data, |output| {
        output.note(&format!("deleted secret `{name}`"));
        Ok(())
    })
}
