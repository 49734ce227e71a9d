//! `haft webhook`: manages where events are delivered.

use clap::{Args, Subcommand, ValueEnum};
use haft_api::webhook::{DeliveryList, DeliveryView, WebhookList, WebhookWithSecret};
use serde_json::{Map, Value, json};

use crate::client::{Request, segment};
use crate::context::Context;
use crate::error::CliError;
use crate::view;

/// Manage webhooks: URLs that events are posted to
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Add a webhook and print its signing secret
    #[command(visible_alias = "create", after_help = examples!(
        "haft webhook add https://example.com/hooks/haft",
        "haft webhook add https://example.com/hooks/haft --event approval.requested --tool 'mail:*'"
    ))]
    Add(Add),
    /// List webhooks
    #[command(visible_alias = "ls", after_help = examples!("haft webhook list"))]
    List,
    /// Delete a webhook and its deliveries
    #[command(visible_alias = "rm", after_help = examples!("haft webhook delete 019a8f50-b7b6-7a01-9a05-a22a6e0af101"))]
    Delete {
        /// Id of the webhook
        id: String,
    },
    /// Deliver a test event now
    #[command(after_help = examples!("haft webhook test 019a8f50-b7b6-7a01-9a05-a22a6e0af101"))]
    Test {
        /// Id of the webhook
        id: String,
    },
    /// List the deliveries to a webhook, newest first
    #[command(after_help = examples!("haft webhook deliveries 019a8f50-b7b6-7a01-9a05-a22a6e0af101 --status failed"))]
    Deliveries {
        /// Id of the webhook
        id: String,
        /// Only deliveries in this state
        #[arg(long, value_name = "STATUS")]
        status: Option<Status>,
    },
    /// Deliver an event again
    #[command(after_help = examples!(
        "haft webhook redeliver 019a8f50-b7b6-7a01-9a05-a22a6e0af101 019a8f50-c1d2-7a01-9a05-b33b7f1bf202"
    ))]
    Redeliver {
        /// Id of the webhook
        id: String,
        /// Id of the delivery
        delivery: String,
    },
}

/// Add a webhook and print its signing secret
#[derive(Debug, Args)]
pub(crate) struct Add {
    /// Where events are posted
    url: String,
    /// Only this event, such as `call.finished`; repeatable [default: all]
    #[arg(long = "event", value_name = "EVENT")]
    events: Vec<String>,
    /// Only events about this tool: `name` or `bundle:name`, with `*` for any text; repeatable [default: all]
    #[arg(long = "tool", value_name = "PATTERN")]
    tools: Vec<String>,
}

/// The state of a delivery.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Status {
    /// It is tried again
    Pending,
    /// The receiver accepted it
    Delivered,
    /// It is not tried again
    Failed,
}

/// Runs the command.
pub(crate) async fn run(command: Command, context: &Context) -> Result<(), CliError> {
    match command {
        Command::Add(add) => self::add(add, context).await,
        Command::List => list(context).await,
        Command::Delete { id } => delete(&id, context).await,
        Command::Test { id } => test(&id, context).await,
        Command::Deliveries { id, status } => deliveries(&id, status, context).await,
        Command::Redeliver { id, delivery } => redeliver(&id, &delivery, context).await,
    }
}

fn path(id: &str) -> String {
    format!("/api/webhooks/{}", segment(id))
}

async fn add(add: Add, context: &Context) -> Result<(), CliError> {
    let mut body = Map::new();
    body.insert("url".to_owned(), json!(add.url));
    if !add.events.is_empty() {
        body.insert("events".to_owned(), json!(add.events));
    }
    body.insert("tools".to_owned(), json!(add.tools));
    let data = context.request(Request::post("/api/webhooks", Value::Object(body))).await?;
    context.output.show(&data, |output, created: WebhookWithSecret| {
        output.line(&created.secret.unwrap_or_default())?;
        output.note(&format!("created webhook {}; the secret is shown only once", created.webhook.id));
        Ok(())
    })
}

async fn list(context: &Context) -> Result<(), CliError> {
    let data = context.request(Request::get("/api/webhooks?page_size=100")).await?;
    context.output.show(&data, |output, list: WebhookList| {
        let rows = list.webhooks.into_iter().map(|webhook| {
            let events: Vec<&str> = webhook.events.iter().map(|event| event.as_str()).collect();
            vec![
                webhook.id.to_string(),
                webhook.url,
                events.join(", "),
                webhook.tools.join(", "),
                webhook.enabled.to_string(),
            ]
        });
        output.list(&["ID", "URL", "EVENTS", "TOOLS", "ENABLED"], &[], rows.collect())
    })
}

async fn delete(id: &str, context: &Context) -> Result<(), CliError> {
    let data = context.request(Request::delete(path(id))).await?;
    context.output.data(&data, |output| {
        output.note(&format!("deleted webhook {id}"));
        Ok(())
    })
}

async fn test(id: &str, context: &Context) -> Result<(), CliError> {
    let data = context.request(Request::post(format!("{}/test", path(id)), json!({}))).await?;
    print(&data, context)
}

async fn redeliver(id: &str, delivery: &str, context: &Context) -> Result<(), CliError> {
    let path = format!("{}/deliveries/{}/redeliver", path(id), segment(delivery));
    let data = context.request(Request::post(path, json!({}))).await?;
    print(&data, context)
}

fn print(delivery: &Value, context: &Context) -> Result<(), CliError> {
    context.output.show(delivery, |output, delivery: DeliveryView| {
        let why = delivery.error.map(|why| format!(": {why}")).unwrap_or_default();
        output.note(&format!("{}{why}", delivery.status.as_str()));
        Ok(())
    })
}

async fn deliveries(id: &str, status: Option<Status>, context: &Context) -> Result<(), CliError> {
    let status = status.and_then(|status| status.to_possible_value());
    let status = status.as_ref().map(clap::builder::PossibleValue::get_name);
    let request = Request::get(format!("{}/deliveries?page_size=100", path(id))).query_some("status", status);
    let data = context.request(request).await?;
    context.output.show(&data, |output, list: DeliveryList| {
        let rows = list.deliveries.into_iter().map(|delivery| {
            vec![
                delivery.id.to_string(),
                delivery.event.as_str().to_owned(),
                delivery.status.as_str().to_owned(),
                delivery.attempts.to_string(),
                view::moment(delivery.created_at),
                delivery.error.unwrap_or_default(),
            ]
        });
        output.list(&["ID", "EVENT", "STATUS", "ATTEMPTS", "CREATED", "ERROR"], &[], rows.collect())
    })
}
