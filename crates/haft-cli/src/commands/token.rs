//! `haft token`: makes and revokes access tokens.

use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Map, Value, json};

use crate::client::{Request, segment};
use crate::context::Context;
use crate::error::CliError;
use crate::view;

/// Make and revoke access tokens
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Make a token; it is printed once and never again
    Create(Create),
    /// List the tokens, without their secrets
    #[command(visible_alias = "ls")]
    List,
    /// Revoke a token
    Rm {
        /// Its id, from the list
        id: String,
    },
}

/// What a token may do.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Role {
    /// Read
    Viewer,
    /// Read and call tools
    Caller,
    /// Besides, change tools
    Editor,
    /// Everything
    Admin,
}

/// Make a token; it is printed once and never again
#[derive(Debug, Args)]
pub(crate) struct Create {
    /// A name, to tell it from others
    name: String,
    /// What it may do
    #[arg(long, default_value = "caller")]
    role: Role,
    /// How long it is valid, as in `12h`; without it, for ever
    #[arg(long, value_name = "DURATION")]
    expires: Option<String>,
    /// Let it run elevated tools without asking
    #[arg(long)]
    elevated: bool,
}

/// Runs the command.
pub(crate) async fn run(command: Command, context: &Context) -> Result<(), CliError> {
    match command {
        Command::Create(create) => make(create, context).await,
        Command::List => list(context).await,
        Command::Rm { id } => remove(&id, context).await,
    }
}

async fn make(create: Create, context: &Context) -> Result<(), CliError> {
    let role = create.role.to_possible_value().map(|value| value.get_name().to_owned());
    let mut body = Map::new();
    body.insert("name".to_owned(), json!(create.name));
    body.insert("role".to_owned(), json!(role));
    if let Some(expires) = create.expires {
        body.insert("expires_in".to_owned(), json!(expires));
    }
    if create.elevated {
        body.insert("elevated".to_owned(), json!(true));
    }
    let data = context.ask(Request::post("/api/tokens", Value::Object(body))).await?;
    context.output.data(&data, |output| {
        output.note("keep it safe: it is not shown again");
        output.line(&view::text(&data, "token"))
    })
}

async fn list(context: &Context) -> Result<(), CliError> {
    let data = context.ask(Request::get("/api/tokens?page_size=500")).await?;
    context.output.data(&data, |output| {
        let rows = view::list(&data, "tokens").iter().map(|token| {
            vec![
                view::text(token, "id"),
                view::text(token, "name"),
                view::text(token, "role"),
                if view::is(token, "elevated") { "yes" } else { "no" }.to_owned(),
                view::time(token, "created_at"),
                view::time(token, "expires_at"),
            ]
        });
        output.table(&["ID", "NAME", "ROLE", "ELEVATED", "CREATED", "EXPIRES"], rows.collect())
    })
}

async fn remove(id: &str, context: &Context) -> Result<(), CliError> {
    let data = context.ask(Request::delete(format!("/api/tokens/{}", segment(id)))).await?;
    context.output.data(&data, |output| {
        output.note(&format!("revoked the token `{id}`"));
        Ok(())
    })
}
