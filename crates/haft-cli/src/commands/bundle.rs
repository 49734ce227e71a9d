//! `haft bundle`: manages bundles of tools.

use clap::{Args, Subcommand};
use http::Method;
use serde_json::{Value, json};

use crate::client::{Body, Request, segment};
use crate::context::Context;
use crate::error::CliError;
use crate::view;

/// Manage bundles of tools
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List bundles
    #[command(visible_alias = "ls", after_help = examples!("haft bundle list"))]
    List,
    /// Create a bundle, or change its display name or description
    #[command(after_help = examples!("haft bundle add pets --description \"The pet store\""))]
    Add(Add),
    /// Enable a bundle and its tools
    #[command(after_help = examples!("haft bundle enable pets"))]
    Enable {
        /// Bundle
        name: String,
    },
    /// Disable a bundle and its tools
    #[command(after_help = examples!("haft bundle disable pets"))]
    Disable {
        /// Bundle
        name: String,
    },
    /// Publish the newest revisions of all tools of a bundle: all of them or none
    #[command(after_help = examples!("haft bundle publish pets --dry-run", "haft bundle publish pets"))]
    Publish {
        /// Bundle
        name: String,
        /// Show what would be done, and publish nothing
        #[arg(long)]
        dry_run: bool,
    },
    /// Delete an empty bundle
    #[command(after_help = examples!("haft bundle rm pets"))]
    Rm {
        /// Bundle
        name: String,
    },
}

/// Create a bundle, or change its display name or description
#[derive(Debug, Args)]
pub(crate) struct Add {
    /// Name of the bundle and of its folder
    name: String,
    /// Display name
    #[arg(long, value_name = "TEXT")]
    display_name: Option<String>,
    /// Description
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// Create it disabled
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
        Command::Publish { name, dry_run } => publish(&name, dry_run, context).await,
        Command::Rm { name } => change(Method::DELETE, &name, None, "deleted", context).await,
    }
}

/// Creates a bundle, or changes the given fields of an existing one.
async fn store(add: Add, context: &Context) -> Result<(), CliError> {
    let client = context.client().await?;
    let path = format!("/api/tools/bundles/{}", segment(&add.name));
    let current = match client.data(Request::get(path)).await {
        Ok(bundle) => bundle,
        Err(CliError::Api(error)) if error.code == "not_found" => Value::Null,
        Err(error) => return Err(error),
    };
    client.close().await;
    let existing = |key: &str| Some(view::text(&current, key)).filter(|text| !text.is_empty());
    let body = json!({
        "slug": add.name,
        "display_name": add.display_name.or_else(|| existing("display_name")).unwrap_or_else(|| add.name.clone()),
        "description": add.description.or_else(|| existing("description")).unwrap_or_default(),
        "enabled": !add.disabled && current.get("enabled").and_then(Value::as_bool).unwrap_or(true),
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
    let data = context.request(request).await?;
    context.output.data(&data, |output| {
        output.note(&format!("{done} bundle `{name}`"));
        Ok(())
    })
}

async fn publish(name: &str, dry_run: bool, context: &Context) -> Result<(), CliError> {
    let path = format!("/api/tools/bundles/{}/publish", segment(name));
    let request = Request::post(path, json!({})).query("dry_run", if dry_run { "true" } else { "false" });
    let report = context.request(request).await?;
    context.output.data(&report, |output| {
        let rows = view::list(&report, "tools").iter().map(|line| {
            vec![
                view::text(line, "tool"),
                view::text(line, "action"),
                view::text(line, "revision"),
                view::text(line, "reason"),
            ]
        });
        output.table(&["TOOL", "ACTION", "REVISION", "NOTE"], rows.collect())?;
        let start = if dry_run { "dry run: would publish" } else { "published" };
        output.note(&format!(
            "{start} {} tools of bundle `{name}`; {} unchanged, {} failed",
            view::text(&report, "published"),
            view::text(&report, "unchanged"),
            view::text(&report, "failed"),
        ));
        Ok(())
    })
}

async fn list(context: &Context) -> Result<(), CliError> {
    let request = Request::get("/api/tools/bundles?include_disabled=true&page_size=500");
    let data = context.request(request).await?;
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
