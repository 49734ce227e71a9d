//! `POST /import/curl`, `/import/tools` and `/import/mcp`: imports of single items, with a report per item.

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use haft_core::catalog::SourceText;
use haft_core::token::Role;
use haft_definition::dialect::{self, Defaults, DefinitionText};
use haft_import::{curl, mcp_client_config};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::authentication::Caller;
use crate::body::Body;
use crate::error::ApiError;
use crate::error::ErrorBody;
use crate::params::Params;
use crate::reply::{Success, success};
use crate::report_view;
use haft_api::import::ItemImportReport;
use haft_platform::Installation;
use haft_platform::audit;
use haft_platform::definition;
use haft_platform::identity::Identity;
use haft_platform::importing::{self, ImportItem, ItemAction, ItemImport};
use haft_platform::mcp_definition::NewServer;
use haft_platform::mcp_servers;

const SETTING: &str = "import.max_document_bytes";
/// The largest number of names to select.
const MAX_SELECTED: usize = dialect::MAX_DEFINITIONS;

/// A curl command to import.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
pub(crate) struct CurlImportBody {
    /// The command, as copied from a terminal, a documentation page or a browser.
    #[schema(example = "curl 'https://api.example.com/users?page=2' -H 'Authorization: Bearer …'")]
    command: String,
    /// The name of the tool; default: derived from the URL.
    name: Option<String>,
    /// The bundle; default: `user-created`.
    bundle: Option<String>,
    /// Report what would be done, and store nothing.
    #[serde(default)]
    #[schema(required = false)]
    dry_run: bool,
}

/// Definitions to import.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
pub(crate) struct ToolsImportBody {
    /// One or more definitions: a YAML stream, a JSON object or array, `tool.json`, or a skill.
    #[schema(example = "name: greet\nruntime: bash\nbody: echo \"Hello, $name!\"\n")]
    text: String,
    /// The bundle; default: that of each definition, or `user-created`.
    bundle: Option<String>,
    /// Report what would be done, and store nothing.
    #[serde(default)]
    #[schema(required = false)]
    dry_run: bool,
    /// The names of the tools to import; default: all.
    select: Option<Vec<String>>,
}

/// The configuration of another MCP client to import.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
pub(crate) struct McpImportBody {
    /// The configuration, as an object or as text; it has `mcpServers` or `servers`.
    #[schema(value_type = ClientConfig, example = json!({"mcpServers": {"files": {"command": "mcp-server-files"}}}))]
    config: Value,
    /// Whether programs may use the network; package runners such as `npx` need it.
    #[serde(default)]
    #[schema(required = false)]
    network: bool,
    /// Report what would be done, and store nothing.
    #[serde(default)]
    #[schema(required = false)]
    dry_run: bool,
    /// The names of the servers to import, as in the configuration; default: all.
    select: Option<Vec<String>>,
}

/// A configuration, as the OpenAPI document shows it.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only describes the body")]
pub(crate) enum ClientConfig {
    /// JSON.
    Text(String),
    /// The configuration itself.
    Object(HashMap<String, Value>),
}

/// Create a tool from a curl command. Query parameters and fields of the body become arguments; credentials become
/// references to secrets.
#[utoipa::path(
    post, path = "/import/curl", tag = "tools", request_body = CurlImportBody,
    responses((status = 200, body = Success<ItemImportReport>), (status = 404, body = ErrorBody), (status = 409, body = ErrorBody))
)]
pub(crate) async fn import_curl(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    body: Body,
) -> Result<Response, ApiError> {
    identity.require(Role::Editor)?;
    let CurlImportBody { command, name, bundle, dry_run } = body.json()?;
    let bundle = bundle.as_deref();
    let import = ItemImport { app: &app, identity: &identity, bundle, dry_run, select: None };
    let item = match curl::read(&command, name.as_deref()) {
        Ok(tool) => Box::pin(import.tool(tool.parse(), None)).await?,
        Err(error) => ImportItem::error(name.unwrap_or_else(|| "curl".to_owned()), error.to_string()),
    };
    let report = importing::ItemImportReport::new(dry_run, vec![item]);
    note(&identity, "import.curl", &report);
    Ok(success(report_view::items(report)).into_response())
}

/// Create or replace tools from one or more definitions in any dialect.
#[utoipa::path(
    post, path = "/import/tools", tag = "tools",
    params(
        ("bundle" = Option<String>, Query, description = "If the body is the text itself, as the following parameters: the bundle"),
        ("dry_run" = Option<bool>, Query), ("select" = Option<String>, Query, description = "Comma-separated names"),
    ),
    request_body(description = "An object with the text; or the text itself, with options in the query",
        content((ToolsImportBody = "application/json"), (String = "application/yaml"), (String = "application/x-haft-skill"), (String = "text/plain"))),
    responses((status = 200, body = Success<ItemImportReport>), (status = 404, body = ErrorBody), (status = 409, body = ErrorBody))
)]
pub(crate) async fn import_tools(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    params: Params,
    request: Request,
) -> Result<Response, ApiError> {
    identity.require(Role::Editor)?;
    let limit = app.settings().import.max_document_bytes;
    let body = Body::read(request, limit.saturating_mul(2).saturating_add(64 * 1024), SETTING).await?;
    let ToolsImportBody { text, bundle, dry_run, select } = tools_body(&body, &params)?;
    check_selection(select.as_deref())?;
    let definitions = dialect::split(&text).map_err(|problem| ApiError::invalid_definition(&[problem]))?;
    let (bundle, select) = (bundle.as_deref(), select.as_deref());
    let import = ItemImport { app: &app, identity: &identity, bundle, dry_run, select };
    let mut items = Vec::with_capacity(definitions.len());
    for DefinitionText { form, text } in definitions {
        let parsed = definition::read_all(&text, form, &Defaults::default());
        items.push(Box::pin(import.tool(parsed, Some(SourceText { form, text }))).await?);
    }
    let report = importing::ItemImportReport::new(dry_run, items);
    note(&identity, "import.tools", &report);
    Ok(success(report_view::items(report)).into_response())
}

/// Reads the request: JSON with the text, or the text itself.
fn tools_body(body: &Body, params: &Params) -> Result<ToolsImportBody, ApiError> {
    if matches!(body.media_type.as_str(), "" | "application/json" | "application/x-www-form-urlencoded") {
        return body.json();
    }
    let select = params.list("select");
    Ok(ToolsImportBody {
        text: body.text()?.to_owned(),
        bundle: params.get("bundle").map(str::to_owned),
        dry_run: params.flag("dry_run")?,
        select: (!select.is_empty()).then_some(select),
    })
}

/// Add the MCP servers in the configuration of another client. Only admins may add servers, because a server may be any
/// program; others see what would be added.
#[utoipa::path(
    post, path = "/import/mcp", tag = "mcp servers", request_body = McpImportBody,
    responses((status = 200, body = Success<ItemImportReport>), (status = 409, body = ErrorBody))
)]
pub(crate) async fn import_mcp(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    body: Body,
) -> Result<Response, ApiError> {
    identity.require(Role::Editor)?;
    let McpImportBody { config, network, dry_run, select } = body.json()?;
    check_selection(select.as_deref())?;
    let servers = match &config {
        Value::String(text) => mcp_client_config::read(text, network),
        config => mcp_client_config::read_value(config, network),
    };
    let servers = servers.map_err(|error| ApiError::bad_request(format!("invalid `config`: {error}")))?;
    if servers.len() > MAX_SELECTED {
        let message = format!("`config` has {} servers; the limit is {MAX_SELECTED}", servers.len());
        return Err(ApiError::bad_request(message));
    }
    let (bundle, select) = (None, select.as_deref());
    let import = ItemImport { app: &app, identity: &identity, bundle, dry_run, select };
    let mut items = Vec::with_capacity(servers.len());
    for server in servers {
        items.push(if import.selects(&server.name) {
            import_server(&import, server).await?
        } else {
            ImportItem::skip(server.name)
        });
    }
    let report = importing::ItemImportReport::new(dry_run, items);
    if report.has_changes() {
        app.mcp_clients().reload().await?;
    }
    note(&identity, "import.mcp", &report);
    Ok(success(report_view::items(report)).into_response())
}

async fn import_server(
    import: &ItemImport<'_>,
    server: mcp_client_config::ClientServer,
) -> Result<ImportItem, ApiError> {
    let ItemImport { app, identity, .. } = import;
    let mcp_client_config::ClientServer { name, body } = server;
    let parsed = match body {
        Ok(body) => serde_json::from_value::<NewServer>(body).map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    };
    let parsed = parsed.and_then(|new| new.parse(identity.tenant.clone(), app.now()));
    let parsed = match parsed {
        Ok(parsed) => parsed,
        Err(message) => return Ok(ImportItem::error(name, message)),
    };
    if let Err(error) = identity.require(Role::Admin) {
        return Ok(ImportItem::error(name, error.message));
    }
    if mcp_servers::find(app, identity, parsed.id.as_str()).await.is_ok() {
        let message = format!("MCP server `{}` already exists; delete it first", parsed.id);
        return Ok(ImportItem::error(name, message));
    }
    if !import.dry_run {
        app.store().catalog().put_mcp_server(parsed.clone()).await?;
    }
    let problem = |code: &str, text: String| haft_core::problem::Problem::new("", code, text);
    let credentials = mcp_servers::plain_credentials(&parsed).into_iter();
    let network = mcp_servers::missing_network(&parsed).map(|text| problem("network_disabled", text));
    let warnings = credentials.map(|text| problem("credential", text)).chain(network);
    let (action, warnings) = (ItemAction::Create, warnings.collect());
    Ok(ImportItem { name, action, warnings, message: None, definition: None })
}

fn check_selection(select: Option<&[String]>) -> Result<(), ApiError> {
    if select.is_some_and(|names| names.len() > MAX_SELECTED) {
        return Err(ApiError::bad_request(format!("`select` has more than {MAX_SELECTED} names")));
    }
    Ok(())
}

fn note(identity: &Identity, action: &str, report: &importing::ItemImportReport) {
    if report.has_changes() {
        audit::note(identity, action, &report.summary());
    }
}
