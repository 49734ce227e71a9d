//! `haft tenant`: manages tenants.

use clap::Subcommand;
use http::Method;
use serde_json::{Value, json};

use crate::client::{Body, Request, segment};
use crate::context::Context;
use crate::error::CliError;
use crate::view;

/// Manage tenants
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Create a tenant
    #[command(after_help = examples!("haft tenant create acme --name \"Acme Inc.\""))]
    Create {
        /// Id: lower-case letters, digits, `-` and `_`
        id: String,
        /// Name [default: the id]
        #[arg(long, value_name = "TEXT")]
        name: Option<String>,
    },
    /// List tenants
    #[command(visible_alias = "ls", after_help = examples!("haft tenant list"))]
    List,
    /// Change the name of a tenant
    #[command(after_help = examples!("haft tenant rename acme \"Acme Inc.\""))]
    Rename {
        /// Id of the tenant
        id: String,
        /// New name
        name: String,
    },
    /// Disable a tenant: its tokens stop working
    #[command(after_help = examples!("haft tenant disable acme"))]
    Disable {
        /// Id of the tenant
        id: String,
    },
    /// Enable a tenant
    #[command(after_help = examples!("haft tenant enable acme"))]
    Enable {
        /// Id of the tenant
        id: String,
    },
    /// Delete a tenant with its tools, calls, credentials, tokens and files
    #[command(visible_alias = "rm", after_help = examples!("haft tenant delete acme --confirm acme"))]
    Delete {
        /// Id of the tenant
        id: String,
        /// The id again
        #[arg(long, value_name = "ID")]
        confirm: Option<String>,
    },
}

/// Runs the command.
pub(crate) async fn run(command: Command, context: &Context) -> Result<(), CliError> {
    match command {
        Command::Create { id, name } => create(&id, name, context).await,
        Command::List => list(context).await,
        Command::Rename { id, name } => change(&id, json!({"name": name}), "renamed", context).await,
        Command::Disable { id } => change(&id, json!({"enabled": false}), "disabled", context).await,
        Command::Enable { id } => change(&id, json!({"enabled": true}), "enabled", context).await,
        Command::Delete { id, confirm } => delete(&id, confirm.as_deref(), context).await,
    }
}

async fn create(id: &str, name: Option<String>, context: &Context) -> Result<(), CliError> {
    let mut body = json!({"id": id});
    if let (Some(name), Value::Object(map)) = (name, &mut body) {
        map.insert("name".to_owned(), json!(name));
    }
    let data = context.request(Request::post("/api/tenants", body)).await?;
    context.output.data(&data, |output| {
        output.note(&format!("created tenant `{id}`"));
        Ok(())
    })
}

async fn list(context: &Context) -> Result<(), CliError> {
    let data = context.request(Request::get("/api/tenants?page_size=500")).await?;
    context.output.data(&data, |output| {
        let rows = view::list(&data, "tenants").iter().map(|tenant| {
            vec![
                view::text(tenant, "id"),
                view::text(tenant, "name"),
                if view::is(tenant, "enabled") { "yes" } else { "no" }.to_owned(),
                view::time(tenant, "created_at"),
            ]
        });
        output.table(&["ID", "NAME", "ENABLED", "CREATED"], rows.collect())
    })
}

async fn change(id: &str, body: Value, done: &str, context: &Context) -> Result<(), CliError> {
    let path = format!("/api/tenants/{}", segment(id));
    let data = context.request(Request::new(Method::PATCH, path).with_body(Body::Json(body))).await?;
    context.output.data(&data, |output| {
        output.note(&format!("{done} tenant `{id}`"));
        Ok(())
    })
}

async fn delete(id: &str, confirm: Option<&str>, context: &Context) -> Result<(), CliError> {
    if confirm != Some(id) {
        return Err(CliError::usage(format!(
            "this deletes all tools, calls, credentials, tokens and files of `{id}`; confirm it with `--confirm {id}`"
        )));
    }
    let request = Request::delete(format!("/api/tenants/{}", segment(id))).query("confirm", id);
    let data = context.request(request).await?;
    context.output.data(&data, |output| {
        output.note(&format!("deleted tenant `{id}`"));
        Ok(())
    })
}
