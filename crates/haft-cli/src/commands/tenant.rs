//! `haft tenant`: manages tenants.

use clap::{Args, Subcommand};
use haft_api::tenant::{TenantList, TenantView};
use http::Method;
use serde_json::{Map, Value, json};

use crate::client::{Body, Request, segment};
use crate::context::Context;
use crate::error::CliError;
use crate::{input, view};

/// The word that removes a setting.
const NONE: &str = "none";

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
    /// Show a tenant with its limits, file roots and environment variables
    #[command(after_help = examples!("haft tenant show acme"))]
    Show {
        /// Id of the tenant
        id: String,
    },
    /// Set the limits, file roots and environment variables of a tenant
    #[command(after_help = examples!(
        "haft tenant set acme --limit calls_per_minute=600 --limit max_parallel=8",
        "haft tenant set acme --limit max_tools=none",
        "haft tenant set acme --file-root reports=/srv/acme/reports --env WEATHER_API_KEY",
    ))]
    Set(Settings),
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

/// What `haft tenant set` changes.
#[derive(Debug, Args)]
#[group(required = true, multiple = true, args = ["limits", "file_roots", "read_only_roots", "environment"])]
pub(crate) struct Settings {
    /// Id of the tenant
    id: String,
    /// A limit, or `none` to remove it: `calls_per_minute`, `max_parallel`, `max_tools`, `max_agents`,
    /// `max_pipelines`, `max_artifacts`, `max_queued_calls`, `max_stored_bytes`, `max_runs`, `max_parallel_runs`,
    /// `max_chats`, `max_messages_per_chat`, `max_workspaces` or `max_documents`; other limits stay
    #[arg(long = "limit", value_name = "NAME=NUMBER", value_parser = input::parse_pair)]
    limits: Vec<(String, String)>,
    /// A folder that its file tools may use; replaces the earlier ones
    #[arg(long = "file-root", value_name = "NAME=FOLDER", value_parser = input::parse_pair)]
    file_roots: Vec<(String, String)>,
    /// Like --file-root, but its content must not be changed
    #[arg(long = "read-only-root", value_name = "NAME=FOLDER", value_parser = input::parse_pair)]
    read_only_roots: Vec<(String, String)>,
    /// An environment variable that its tools may read; replaces the earlier ones; `none` for none
    #[arg(long = "env", value_name = "NAME")]
    environment: Vec<String>,
}

/// Runs the command.
pub(crate) async fn run(command: Command, context: &Context) -> Result<(), CliError> {
    match command {
        Command::Create { id, name } => create(&id, name, context).await,
        Command::List => list(context).await,
        Command::Rename { id, name } => change(&id, json!({"name": name}), "renamed", context).await,
        Command::Show { id } => show(&id, context).await,
        Command::Set(settings) => set(settings, context).await,
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
    context.output.show(&data, |output, list: TenantList| {
        let rows = list.tenants.into_iter().map(|tenant| {
            vec![tenant.id, tenant.name, view::yes_no(tenant.enabled), view::moment(tenant.created_at)]
        });
        output.list(&["ID", "NAME", "ENABLED", "CREATED"], &[], rows.collect())
    })
}

async fn show(id: &str, context: &Context) -> Result<(), CliError> {
    let data = context.request(Request::get(format!("/api/tenants/{}", segment(id)))).await?;
    context.output.data(&data, |output| {
        let fields = data.as_object().into_iter().flatten();
        let rows = fields.flat_map(|(name, value)| setting_rows(name, value)).collect();
        output.table(&["SETTING", "VALUE"], rows)
    })
}

/// Returns a row for a value; one for each entry of an object or list.
fn setting_rows(name: &str, value: &Value) -> Vec<Vec<String>> {
    match value {
        Value::Object(entries) => {
            entries.iter().flat_map(|(key, value)| setting_rows(&format!("{name}.{key}"), value)).collect()
        }
        Value::Array(items) => items.iter().flat_map(|item| setting_rows(name, item)).collect(),
        value => vec![vec![name.to_owned(), view::readable(value)]],
    }
}

async fn set(settings: Settings, context: &Context) -> Result<(), CliError> {
    let path = format!("/api/tenants/{}", segment(&settings.id));
    let mut body = Map::new();
    if !settings.limits.is_empty() {
        // The server replaces all limits at once.
        let tenant: TenantView = view::read(&context.request(Request::get(path)).await?)?;
        let mut limits = match json!(tenant.limits) {
            Value::Object(limits) => limits,
            _ => Map::new(),
        };
        for (name, value) in settings.limits {
            if value == NONE {
                limits.remove(&name);
                continue;
            }
            let number: u64 = value.parse().map_err(|_| {
                CliError::usage(format!("--limit {name}: `{value}` must be a whole number or `{NONE}`"))
            })?;
            limits.insert(name, number.into());
        }
        body.insert("limits".to_owned(), limits.into());
    }
    let writable = settings.file_roots.into_iter().map(|root| (root, false));
    let read_only = settings.read_only_roots.into_iter().map(|root| (root, true));
    let roots: Vec<Value> = writable
        .chain(read_only)
        .map(|((name, path), read_only)| json!({"name": name, "path": path, "read_only": read_only}))
        .collect();
    if !roots.is_empty() {
        context.note_remote("the folders are");
        body.insert("file_roots".to_owned(), roots.into());
    }
    if !settings.environment.is_empty() {
        let names = settings.environment.into_iter().filter(|name| name != NONE).collect::<Vec<_>>();
        body.insert("environment".to_owned(), names.into());
    }
    change(&settings.id, body.into(), "changed", context).await
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
