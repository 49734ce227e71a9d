//! `haft bundle`: lists, makes and switches bundles of tools.

use clap::{Args, Subcommand};
use http::Method;
use serde_json::{Value, json};

use crate::client::{Body, Request, segment};
use crate::context::Context;
use crate::error::CliError;
use crate::view;

/// List, make and switch bundles of tools
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List the bundles
    #[command(visible_alias = "ls")]
    List,
    /// Make a bundle, or change the texts of one
    Add(Add),
    /// Let the tools of a bundle run
    Enable {
        /// The bundle
        name: String,
    },
    /// Keep the tools of a bundle from running
    Disable {
        /// The bundle
        name: String,
    },
    /// Remove an empty bundle
    Rm {
        /// The bundle
        name: String,
    },
}

/// Make a bundle, or change the texts of one
#[derive(Debug, Args)]
pub(crate) struct Add {
    /// Its name, which is also the name of its folder
    name: String,
    /// The name shown to people
    #[arg(long, value_name = "TEXT")]
    display_name: Option<String>,
    /// What it is for
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// Make it switched off
    #[arg(long)]
    disabled: bool,
}

/// Runs the command.
pub(crate) async fn run(command: Command, context: &Context) -> Result<(), CliError> {
    match command {
        Command::List => list(context).await,
        Command::Add(add) => store(add, context).await,
        Command::Enable { name } => {
            change(Method::PATCH, &name, Some(json!({"enabled": true})), "enabled", context).await
        }
        Command::Disable { name } => {
            change(Method::PATCH, &name, Some(json!({"enabled": false})), "disabled", context).await
        }
        Command::Rm { name } => change(Method::DELETE, &name, None, "removed", context).await,
    }
}

/// Makes a bundle, or changes what is said of one and leaves the rest as it is.
async fn store(add: Add, context: &Context) -> Result<(), CliError> {
    let client = context.client().await?;
    let path = format!("/api/tools/bundles/{}", segment(&add.name));
    let now = match client.data(Request::get(path)).await {
        Ok(bundle) => bundle,
        Err(CliError::Api(error)) if error.code == "not_found" => Value::Null,
        Err(error) => return Err(error),
    };
    client.close().await;
    let kept = |key: &str| Some(view::text(&now, key)).filter(|text| !text.is_empty());
    let body = json!({
        "slug": add.name,
        "display_name": add.display_name.or_else(|| kept("display_name")).unwrap_or_else(|| add.name.clone()),
        "description": add.description.or_else(|| kept("description")).unwrap_or_default(),
        "enabled": !add.disabled && now.get("enabled").and_then(Value::as_bool).unwrap_or(true),
    });
    change(Method::PUT, &add.name, Some(body), "stored", context).await
}

async fn change(
    method: Method,
    name: &str,
    body: Option<Value>,
    done: &str,
    context: &Context,
) -> Result<(), CliError> {
    let request = Request::new(method, format!("/api/tools/bundles/{}", segment(name)))
        .with_body(body.map_or(Body::Empty, Body::Json));
    let data = context.ask(request).await?;
    context.output.data(&data, |output| {
        output.note(&format!("{done} the bundle `{name}`"));
        Ok(())
    })
}

async fn list(context: &Context) -> Result<(), CliError> {
    let request = Request::get("/api/tools/bundles?include_disabled=true&page_size=500");
    let data = context.ask(request).await?;
    context.output.data(&data, |output| {
        let rows = view::list(&data, "bundles").iter().map(|bundle| {
            vec![
                view::text(bundle, "slug"),
                view::text(bundle, "kind"),
                if view::is(bundle, "enabled") { "yes".to_owned() } else { "no".to_owned() },
                view::text(bundle, "tool_count"),
                view::first_line(&view::text(bundle, "description"), 80),
            ]
        });
        output.table(&["NAME", "KIND", "ENABLED", "TOOLS", "DESCRIPTION"], rows.collect())
    })
}
