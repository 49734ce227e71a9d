//! `haft mcp-server`: manages the MCP servers whose tools haft uses.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::{Args, Subcommand};
use haft_api::mcp_server::{McpServerList, McpServerView, StartedLogin};
use haft_core::mcp::{Phase, Transport};
use http::Method;
use serde_json::{Map, Value, json};

use super::{mcp_import, mcp_review};
use crate::client::{Body, Request, segment};
use crate::context::Context;
use crate::error::CliError;
use crate::{input, view};

/// Manage MCP servers whose tools haft uses
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Add a server: a program with arguments after `--`, or a URL with `--url`
    #[command(visible_alias = "create", after_help = examples!(
        "haft mcp-server add time -- mcp-server-time --local-timezone UTC",
        "haft mcp-server add docs --url https://mcp.example/mcp --header 'Authorization=Bearer ${DOCS_TOKEN}'"
    ))]
    Add(Box<Add>),
    /// Add the servers in the configuration of another MCP client
    #[command(after_help = examples!("haft mcp-server import .mcp.json --network"))]
    Import(mcp_import::Import),
    /// List servers with their state
    #[command(visible_alias = "ls", after_help = examples!("haft mcp-server list"))]
    List,
    /// Reload the tools of a server, connecting to it if needed
    #[command(after_help = examples!("haft mcp-server refresh time"))]
    Refresh {
        /// Id of the server
        id: String,
    },
    /// Log in to a server with OAuth: prints a URL to open in a browser, and waits for the login
    #[command(after_help = examples!("haft mcp-server login docs"))]
    Login {
        /// Id of the server
        id: String,
        /// Print the URL and exit
        #[arg(long)]
        no_wait: bool,
    },
    /// Log out of a server
    #[command(after_help = examples!("haft mcp-server logout docs"))]
    Logout {
        /// Id of the server
        id: String,
    },
    /// Change the settings of a server; what is not given stays
    #[command(visible_alias = "set", after_help = examples!(
        "haft mcp-server update fetch --network",
        "haft mcp-server update excel --start-timeout 3m"
    ))]
    Update(Update),
    /// Show the tools of a server that wait for review: new ones, and those that changed since they were accepted
    #[command(after_help = examples!("haft mcp-server changes time"))]
    Changes {
        /// Id of the server
        id: String,
    },
    /// Accept new and changed tools of a server
    #[command(after_help = examples!("haft mcp-server accept time", "haft mcp-server accept time get_current_time"))]
    Accept {
        /// Id of the server
        id: String,
        /// Tools [default: all that wait for review]
        tools: Vec<String>,
    },
    /// Reject new and changed tools of a server: they stay out of service until the server changes them again
    #[command(after_help = examples!("haft mcp-server reject time", "haft mcp-server reject time get_current_time"))]
    Reject {
        /// Id of the server
        id: String,
        /// Tools [default: all that wait for review]
        tools: Vec<String>,
    },
    /// Mark a server as reviewed: its new tools wait for review from now on
    #[command(after_help = examples!("haft mcp-server review time"))]
    Review {
        /// Id of the server
        id: String,
    },
    /// Show suspicious parts of the tools of a server, or of a file with the result of `tools/list`
    #[command(after_help = examples!("haft mcp-server scan time", "haft mcp-server scan --file tools.json"))]
    Scan {
        /// Id of the server
        #[arg(required_unless_present = "file", conflicts_with = "file")]
        id: Option<String>,
        /// Scan this file, without a server; `-` reads stdin
        #[arg(long, value_name = "FILE")]
        file: Option<PathBuf>,
    },
    /// Enable a server
    #[command(after_help = examples!("haft mcp-server enable time"))]
    Enable {
        /// Id of the server
        id: String,
    },
    /// Disable a server and its tools
    #[command(after_help = examples!("haft mcp-server disable time"))]
    Disable {
        /// Id of the server
        id: String,
    },
    /// Remove a server and its tools
    #[command(visible_alias = "delete", after_help = examples!("haft mcp-server rm time"))]
    Rm {
        /// Id of the server
        id: String,
    },
}

/// Add a server.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct Add {
    /// Id of the server, and of the bundle with its tools
    id: String,
    /// Program and arguments
    #[arg(last = true, value_name = "COMMAND", required_unless_present = "url", conflicts_with = "url")]
    command: Vec<String>,
    /// URL of a remote server
    #[arg(long)]
    url: Option<String>,
    /// Header of every request; the value may refer to secrets as `${NAME}` (repeatable)
    #[arg(long = "header", value_name = "NAME=VALUE", value_parser = input::parse_pair, requires = "url")]
    headers: Vec<(String, String)>,
    /// OAuth client id [default: dynamic registration]
    #[arg(long, requires = "url")]
    client_id: Option<String>,
    /// OAuth client secret, as `${NAME}`
    #[arg(long, value_name = "REFERENCE", requires = "client_id")]
    client_secret: Option<String>,
    /// OAuth scope (repeatable) [default: what the server requires]
    #[arg(long = "scope", value_name = "SCOPE", requires = "url")]
    scopes: Vec<String>,
    /// OAuth grant
    #[arg(long, value_parser = ["authorization_code", "client_credentials"], requires = "url")]
    grant: Option<String>,
    /// Environment variable of the program; the value may refer to secrets as `${NAME}` (repeatable)
    #[arg(long = "env", value_name = "NAME=VALUE", value_parser = input::parse_pair, conflicts_with = "url")]
    env: Vec<(String, String)>,
    /// Working directory of the program
    #[arg(long, value_name = "DIR", conflicts_with = "url")]
    cwd: Option<String>,
    /// Allow the program network access
    #[arg(long, conflicts_with = "url")]
    network: bool,
    /// Restrict the program to system folders and `--cwd`
    #[arg(long, conflicts_with = "url")]
    sandbox: bool,
    /// Run each call in a workspace in a process of its own, in the folder of the workspace
    #[arg(long, conflicts_with_all = ["url", "cwd"])]
    workspace: bool,
    /// Prefix for the names of its tools
    #[arg(long)]
    prefix: Option<String>,
    /// Who may call its tools
    #[arg(long, value_parser = ["allow", "elevated", "deny"])]
    policy: Option<String>,
    /// Whose credentials its connections use
    #[arg(long, value_parser = ["shared", "person", "person_or_shared"])]
    credentials: Option<String>,
    /// Accept changed tools without review
    #[arg(long)]
    accept_changes: bool,
    /// Whether new tools wait for review [default: `auto`, once somebody reviewed the server]
    #[arg(long, value_name = "WHEN", value_parser = REVIEW_NEW_TOOLS)]
    review_new_tools: Option<String>,
    /// Timeout of a call, such as `2m`; progress of the tool restarts it [default: 30s]
    #[arg(long, value_name = "DURATION", value_parser = parse_timeout)]
    timeout: Option<u64>,
    /// How long the server may take to start, such as `3m` [default: 2m]
    #[arg(long, value_name = "DURATION", value_parser = parse_timeout)]
    start_timeout: Option<u64>,
    /// Size limit of a result, in bytes [default: 4194304]
    #[arg(long, value_name = "BYTES")]
    max_response_bytes: Option<u64>,
}

/// Change the settings of a server.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct Update {
    /// Id of the server
    id: String,
    /// Allow the program network access
    #[arg(long)]
    network: bool,
    /// Deny the program network access
    #[arg(long, conflicts_with = "network")]
    no_network: bool,
    /// Who may call its tools
    #[arg(long, value_parser = ["allow", "elevated", "deny"])]
    policy: Option<String>,
    /// Whose credentials its connections use
    #[arg(long, value_parser = ["shared", "person", "person_or_shared"])]
    credentials: Option<String>,
    /// Accept changed tools without review
    #[arg(long)]
    accept_changes: bool,
    /// Review changed tools before they are used
    #[arg(long, conflicts_with = "accept_changes")]
    review_changes: bool,
    /// Whether new tools wait for review; `auto`: once somebody reviewed the server
    #[arg(long, value_name = "WHEN", value_parser = REVIEW_NEW_TOOLS)]
    review_new_tools: Option<String>,
    /// Timeout of a call, such as `2m`; progress of the tool restarts it
    #[arg(long, value_name = "DURATION", value_parser = parse_timeout)]
    timeout: Option<u64>,
    /// How long the server may take to start, such as `3m`
    #[arg(long, value_name = "DURATION", value_parser = parse_timeout)]
    start_timeout: Option<u64>,
    /// Size limit of a result, in bytes
    #[arg(long, value_name = "BYTES")]
    max_response_bytes: Option<u64>,
}

impl Update {
    fn body(&self) -> Value {
        let switch = |on: bool, off: bool| (on || off).then_some(on);
        let fields = [
            ("network", switch(self.network, self.no_network).map(Value::from)),
            ("accept_changes", switch(self.accept_changes, self.review_changes).map(Value::from)),
            ("review_new_tools", self.review_new_tools.as_deref().map(review_new_tools)),
            ("policy", self.policy.clone().map(Value::from)),
            ("credentials", self.credentials.clone().map(Value::from)),
            ("timeout_ms", self.timeout.map(Value::from)),
            ("start_timeout_ms", self.start_timeout.map(Value::from)),
            ("max_response_bytes", self.max_response_bytes.map(Value::from)),
        ];
        let set = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
        Value::Object(set.collect())
    }
}

/// When new tools wait for review.
const REVIEW_NEW_TOOLS: [&str; 3] = ["auto", "always", "never"];

/// Returns the setting of the server for one of [`REVIEW_NEW_TOOLS`].
fn review_new_tools(when: &str) -> Value {
    match when {
        "always" => Value::Bool(true),
        "never" => Value::Bool(false),
        _ => Value::Null,
    }
}

/// Parses a duration; a bare number is in seconds.
fn parse_timeout(text: &str) -> Result<u64, String> {
    let parsed =
        haft_core::duration::parse(text, Duration::from_secs(1)).map_err(|error| error.to_string())?;
    u64::try_from(parsed.as_millis()).map_err(|error| error.to_string())
}

/// Runs the command.
pub(crate) async fn run(command: Command, context: &Context) -> Result<(), CliError> {
    match command {
        Command::Add(add) => self::add(*add, context).await,
        Command::Import(import) => mcp_import::run(import, context).await,
        Command::List => list(context).await,
        Command::Refresh { id } => refresh(&id, context).await,
        Command::Login { id, no_wait } => login(&id, no_wait, context).await,
        Command::Logout { id } => logout(&id, context).await,
        Command::Update(update) => self::update(&update, context).await,
        Command::Changes { id } => mcp_review::changes(&id, context).await,
        Command::Accept { id, tools } => mcp_review::accept(&id, tools, context).await,
        Command::Reject { id, tools } => mcp_review::reject(&id, tools, context).await,
        Command::Review { id } => mcp_review::review(&id, context).await,
        Command::Scan { file: Some(file), .. } => mcp_review::scan_file(&file, context),
        Command::Scan { id, file: None } => mcp_review::scan(&id.unwrap_or_default(), context).await,
        Command::Enable { id } => switch(&id, true, context).await,
        Command::Disable { id } => switch(&id, false, context).await,
        Command::Rm { id } => remove(&id, context).await,
    }
}

pub(super) fn path(id: &str) -> String {
    format!("/api/mcp-servers/{}", segment(id))
}

impl Add {
    fn body(self) -> Value {
        let oauth = self.oauth();
        let Self {
            id,
            command,
            url,
            headers,
            env,
            cwd,
            network,
            sandbox,
            workspace,
            prefix,
            policy,
            credentials,
            accept_changes,
            review_new_tools,
            timeout,
            start_timeout,
            max_response_bytes,
            ..
        } = self;
        let mut body = Map::new();
        body.insert("id".to_owned(), json!(id));
        oauth.map(|oauth| body.insert("oauth".to_owned(), oauth));
        let map = |pairs: Vec<(String, String)>| {
            Value::Object(pairs.into_iter().map(|(name, value)| (name, Value::from(value))).collect())
        };
        if let Some(url) = url {
            body.insert("url".to_owned(), json!(url));
            body.insert("headers".to_owned(), map(headers));
        } else {
            let mut words = command.into_iter();
            body.insert("command".to_owned(), json!(words.next()));
            body.insert("args".to_owned(), words.collect());
            body.insert("env".to_owned(), map(env));
            body.insert("network".to_owned(), json!(network));
            body.insert("sandbox".to_owned(), json!(sandbox));
            body.insert("cwd".to_owned(), json!(cwd));
            body.insert("workspace".to_owned(), json!(workspace));
        }
        body.insert("prefix".to_owned(), json!(prefix.unwrap_or_default()));
        body.insert("policy".to_owned(), json!(policy));
        body.insert("credentials".to_owned(), json!(credentials));
        body.insert("accept_changes".to_owned(), json!(accept_changes));
        let review_new_tools = review_new_tools.as_deref().map(self::review_new_tools);
        body.insert("review_new_tools".to_owned(), json!(review_new_tools));
        body.insert("timeout_ms".to_owned(), json!(timeout));
        body.insert("start_timeout_ms".to_owned(), json!(start_timeout));
        body.insert("max_response_bytes".to_owned(), json!(max_response_bytes));
        Value::Object(body)
    }

    /// Returns the OAuth settings, if any.
    fn oauth(&self) -> Option<Value> {
        let mut oauth = Map::new();
        for (name, text) in
            [("client_id", &self.client_id), ("client_secret", &self.client_secret), ("grant", &self.grant)]
        {
            text.as_ref().map(|text| oauth.insert(name.to_owned(), json!(text)));
        }
        if !self.scopes.is_empty() {
            oauth.insert("scopes".to_owned(), json!(self.scopes));
        }
        (!oauth.is_empty()).then_some(Value::Object(oauth))
    }
}

async fn add(add: Add, context: &Context) -> Result<(), CliError> {
    let id = add.id.clone();
    if add.url.is_none() {
        context.note_remote("the program runs");
    }
    let added =
        context.request(Request::post("/api/mcp-servers", add.body())).await.map_err(
            |error| match error {
                CliError::Api(mut error) => {
                    error.message = format!("MCP server `{id}` was not added: {}", error.message);
                    CliError::Api(error)
                }
                other => other,
            },
        )?;
    let warnings = view::read::<McpServerView>(&added)?.warnings;
    for warning in &warnings {
        context.output.warn(warning);
    }
    if warnings.iter().any(|warning| warning.contains("set `network: true`")) {
        // Without network, loading the tools would wait until the package runner stops retrying its download.
        context.output.note(&format!("added MCP server `{id}`"));
        return show(&added, context);
    }
    context.output.note(&format!("added MCP server `{id}`; loading its tools"));
    // The server stays added even if it is unavailable, and the error says so.
    refresh(&id, context).await.map_err(|error| CliError::NotConnected { error: Box::new(error), id })
}

async fn update(update: &Update, context: &Context) -> Result<(), CliError> {
    let body = update.body();
    if body.as_object().is_none_or(Map::is_empty) {
        let message = "nothing to change: pass an option, such as `--network` or `--start-timeout 3m`";
        return Err(CliError::usage(message));
    }
    let request = Request::new(Method::PATCH, path(&update.id)).with_body(Body::Json(body));
    let changed = context.request(request).await?;
    show(&changed, context)
}

async fn list(context: &Context) -> Result<(), CliError> {
    let data = context.request(Request::get("/api/mcp-servers?page_size=500")).await?;
    context.output.show(&data, |output, list: McpServerList| {
        output.list(&COLUMNS, &WIDE, list.mcp_servers.into_iter().map(row).collect())
    })
}

/// The columns of the table of servers.
const COLUMNS: [&str; 5] = ["ID", "STATE", "TOOLS", "SERVER", "ERROR"];
/// The additional columns of `-o wide`.
const WIDE: [&str; 3] = ["RUNS", "ENABLED", "POLICY"];

fn row(McpServerView { server, state, .. }: McpServerView) -> Vec<String> {
    vec![
        server.id.to_string(),
        view::word(&state.phase),
        state.tools.to_string(),
        state.server_info.unwrap_or_default(),
        state.error.unwrap_or_default(),
        runs(&server.transport),
        view::yes_no(server.enabled),
        view::word(&server.policy),
    ]
}

/// Returns the command line or the URL of a server.
fn runs(transport: &Transport) -> String {
    match transport {
        Transport::Stdio(stdio) => {
            [std::slice::from_ref(&stdio.command), stdio.args.as_slice()].concat().join(" ")
        }
        Transport::Http(http) => http.url.clone(),
    }
}

/// Shows a server and its state.
fn show(server: &Value, context: &Context) -> Result<(), CliError> {
    context
        .output
        .show(server, |output, server: McpServerView| output.list(&COLUMNS, &WIDE, vec![row(server)]))
}

async fn refresh(id: &str, context: &Context) -> Result<(), CliError> {
    let data = context.request(Request::post(format!("{}/refresh", path(id)), json!({}))).await?;
    show(&data, context)
}

/// How long the user may take to log in.
const LOGIN_TIMEOUT: Duration = Duration::from_mins(10);

async fn login(id: &str, no_wait: bool, context: &Context) -> Result<(), CliError> {
    let client = context.client().await?;
    if client.engine().is_some() {
        client.close().await;
        return Err(CliError::Usage {
            message: "a login needs a running server, which the browser is redirected to".to_owned(),
            hint: Some("start the server with `haft serve`, then retry".to_owned()),
        });
    }
    let is_connected = |server: &Value| {
        view::read::<McpServerView>(server).map(|server| server.state.phase == Phase::Connected)
    };
    // The end of a login is detected by the connection, so there is nothing to wait for if it is already open.
    let no_wait = no_wait || is_connected(&client.data(Request::get(path(id))).await?)?;
    let login = client.data(Request::post(format!("{}/login", path(id)), json!({}))).await?;
    if no_wait {
        return context
            .output
            .show(&login, |output, login: StartedLogin| output.line(&login.authorization_url));
    }
    let url = view::read::<StartedLogin>(&login)?.authorization_url;
    context.output.note(&format!("open this URL in a browser:\n\n{url}\n"));
    let started = Instant::now();
    while started.elapsed() < LOGIN_TIMEOUT {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let server = client.data(Request::get(path(id))).await?;
        if is_connected(&server)? {
            return show(&server, context);
        }
    }
    Err(CliError::usage(format!("timeout: no login to `{id}` within 10 minutes; retry")))
}

async fn logout(id: &str, context: &Context) -> Result<(), CliError> {
    let data = context.request(Request::post(format!("{}/logout", path(id)), json!({}))).await?;
    context.output.data(&data, |output| {
        output.note(&format!("logged out of MCP server `{id}`"));
        Ok(())
    })
}

async fn switch(id: &str, enabled: bool, context: &Context) -> Result<(), CliError> {
    let request = Request::new(Method::PATCH, path(id)).with_body(Body::Json(json!({"enabled": enabled})));
    let data = context.request(request).await?;
    let word = if enabled { "enabled" } else { "disabled" };
    context.output.data(&data, |output| {
        output.note(&format!("{word} MCP server `{id}`"));
        Ok(())
    })
}

async fn remove(id: &str, context: &Context) -> Result<(), CliError> {
    let data = context.request(Request::delete(path(id))).await?;
    context.output.data(&data, |output| {
        output.note(&format!("removed MCP server `{id}` and its tools"));
        Ok(())
    })
}
