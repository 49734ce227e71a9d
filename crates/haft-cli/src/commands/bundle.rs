//! `haft bundle`: manages bundles of tools.

use clap::{Args, Subcommand};
use haft_api::bundle::{BundleList, BundlePublication, BundleView};
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
    #[command(visible_alias = "create", after_help = examples!("haft bundle add pets --description \"The pet store\""))]
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
    #[command(visible_alias = "delete", after_help = examples!("haft bundle rm pets"))]
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
        Ok(bundle) => Some(view::read::<BundleView>(&bundle)?),
        Err(CliError::Api(error)) if error.code == "not_found" => None,
        Err(error) => return Err(error),
    };
    client.close().await;
    let done = if current.is_none() { "added" } else { "changed" };
    let is_enabled = current.as_ref().is_none_or(|bundle| bundle.enabled);
    let (display_name, description) =
        current.map(|bundle| (bundle.display_name, bundle.description)).unwrap_or_default();
    let existing_name = (!display_name.is_empty()).then_some(display_name);
    let body = json!({
        "slug": add.name,
        "display_name": add.display_name.or(existing_name).unwrap_or_else(|| add.name.clone()),
        "description": add.description.unwrap_or(description),
        "enabled": !add.disabled && is_enabled,
    });
    change(Method::PUT, &add.name, Some(body), done, context).await
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
    context.output.show(&report, |output, report: BundlePublication| {
        let rows = report.tools.into_iter().map(|line| {
            vec![
                line.tool,
                view::word(&line.action),
                line.revision.to_string(),
                line.reason.unwrap_or_default(),
            ]
        });
        output.table(&["TOOL", "ACTION", "REVISION", "NOTE"], rows.collect())?;
        let start = if dry_run { "dry run: would publish" } else { "published" };
        output.note(&format!(
            "{start} {} tools of bundle `{name}`; {} unchanged, {} failed",
            report.published, report.unchanged, report.failed,
        ));
        Ok(())
    })
}

async fn list(context: &Context) -> Result<(), CliError> {
    let request = Request::get("/api/tools/bundles?include_disabled=true&page_size=500");
    let data = context.request(request).await?;
    context.output.show(&data, |output, list: BundleList| {
        let rows = list.bundles.into_iter().map(|bundle| {
            vec![
                bundle.slug,
                bundle.kind.as_str().to_owned(),
                view::yes_no(bundle.enabled),
                bundle.tool_count.to_string(),
                output.brief(&bundle.description, 80),
                bundle.display_name,
                bundle.id.to_string(),
                view::moment(bundle.modified_at),
            ]
        });
        let header = ["NAME", "KIND", "ENABLED", "TOOLS", "DESCRIPTION"];
        output.list(&header, &["DISPLAY NAME", "ID", "CHANGED"], rows.collect())
    })
}
