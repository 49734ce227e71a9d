//! `haft token`: manages access tokens.

use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Map, Value, json};

use crate::client::{Request, segment};
use crate::context::Context;
use crate::error::CliError;
use crate::view;

/// Manage access tokens
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Create a token; it is printed only once
    #[command(after_help = examples!("haft token create ci --role caller --expires 90d"))]
    Create(Create),
    /// List tokens
    #[command(visible_alias = "ls", after_help = examples!("haft token list"))]
    List,
    /// Revoke a token
    #[command(after_help = examples!("haft token rm 019a8f50-b7b6-7a01-9a05-a22a6e0af101"))]
    Rm {
        /// Id of the token, from `haft token list`
        id: String,
    },
}

/// The role of a token.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Role {
    /// Read
    Viewer,
    /// Read and call tools
    Caller,
    /// Read, call and change tools
    Editor,
    /// Everything
    Admin,
}

impl Role {
    /// Returns the name in requests.
    pub(crate) fn name(self) -> Option<String> {
        self.to_possible_value().map(|value| value.get_name().to_owned())
    }
}

/// Create a token; it is printed only once
#[derive(Debug, Args)]
pub(crate) struct Create {
    /// Name of the token
    name: String,
    /// Role
    #[arg(long, default_value = "caller")]
    role: Role,
    /// Lifetime, e.g. `12h` or `90d` [default: no expiry]
    #[arg(long, value_name = "DURATION")]
    expires: Option<String>,
    /// Run tools that need approval without it
    #[arg(long)]
    elevated: bool,
}

/// Runs the command.
pub(crate) async fn run(command: Command, context: &Context) -> Result<(), CliError> {
    match command {
        Command::Create(create) => self::create(create, context).await,
        Command::List => list(context).await,
        Command::Rm { id } => remove(&id, context).await,
    }
}

async fn create(create: Create, context: &Context) -> Result<(), CliError> {
    let role = create.role.name();
    let mut body = Map::new();
    body.insert("name".to_owned(), json!(create.name));
    body.insert("role".to_owned(), json!(role));
    if let Some(expires) = create.expires {
        body.insert("expires_in".to_owned(), json!(expires));
    }
    if create.elevated {
        body.insert("elevated".to_owned(), json!(true));
    }
    let data = context.request(Request::post("/api/tokens", Value::Object(body))).await?;
    context.output.data(&data, |output| {
        output.note("store the token now: it is not shown again");
        output.line(&view::text(&data, "token"))
    })
}

async fn list(context: &Context) -> Result<(), CliError> {
    let data = context.request(Request::get("/api/tokens?page_size=500")).await?;
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
    let data = context.request(Request::delete(format!("/api/tokens/{}", segment(id)))).await?;
    context.output.data(&data, |output| {
        output.note(&format!("revoked token `{id}`"));
        Ok(())
    })
}
