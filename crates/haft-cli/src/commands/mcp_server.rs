//! `haft mcp-server`: the MCP servers whose tools are used.

use std::time::{Duration, Instant};

use clap::{Args, Subcommand};
use http::Method;
use serde_json::{Map, Value, json};

use super::mcp_import;
use crate::client::{Body, Request, segment};
use crate::context::Context;
use crate::error::CliError;
use crate::view;

/// Use the tools of MCP servers
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Use a server: a program and its arguments after `--`, or an address with `--url`
    #[command(
        after_help = "Examples:\n  haft mcp-server add time -- mcp-server-time --local-timezone UTC\n  \
                      haft mcp-server add docs --url https://mcp.example/mcp --header 'Authorization=Bearer ${DOCS_TOKEN}'"
    )]
    Add(Box<Add>),
    /// Use the servers that another client has in its configuration
    Import(mcp_import::Import),
    /// List the servers and how they are doing
    #[command(visible_alias = "ls")]
    List,
    /// Read the list of a server again, or try again to connect to it
    Refresh {
        /// Its id
        id: String,
    },
    /// Log in to a server that wants it: prints the address to open in a browser, and waits until you did
    Login {
        /// Its id
        id: String,
        /// Print the address and do not wait
        #[arg(long)]
        no_wait: bool,
    },
    /// Forget the login to a server
    Logout {
        /// Its id
        id: String,
    },
    /// Show what a server changed of its tools since someone agreed to them
    Changes {
        /// Its id
        id: String,
    },
    /// Agree to what a server made of its tools
    Accept {
        /// Its id
        id: String,
        /// The tools; all that changed without any
        tools: Vec<String>,
    },
    /// Connect to a server
    Enable {
        /// Its id
        id: String,
    },
    /// Stop using a server without forgetting it
    Disable {
        /// Its id
        id: String,
    },
    /// Forget a server and its tools
    Rm {
        /// Its id
        id: String,
    },
}

/// Use a server.
#[derive(Debug, Args)]
pub(crate) struct Add {
    /// Its name, and that of the bundle that holds its tools
    id: String,
    /// The program and its arguments
    #[arg(last = true, value_name = "COMMAND", required_unless_present = "url", conflicts_with = "url")]
    command: Vec<String>,
    /// The address of a server that is not started here
    #[arg(long)]
    url: Option<String>,
    /// A header of every request; the value may name secrets as `${NAME}`
    #[arg(long = "header", value_name = "NAME=VALUE", value_parser = pair, requires = "url")]
    headers: Vec<(String, String)>,
    /// The client that was registered at its authorisation server; without it, haft registers by itself
    #[arg(long, requires = "url")]
    client_id: Option<String>,
    /// The secret of that client, as `${NAME}`
    #[arg(long, value_name = "REFERENCE", requires = "client_id")]
    client_secret: Option<String>,
    /// What to ask for at a login; without any, what the server says
    #[arg(long = "scope", value_name = "SCOPE", requires = "url")]
    scopes: Vec<String>,
    /// Who agrees to a login: you in a browser, or nobody
    #[arg(long, value_parser = ["authorization_code", "client_credentials"], requires = "url")]
    grant: Option<String>,
    /// A variable of the program; the value may name secrets as `${NAME}`
    #[arg(long = "env", value_name = "NAME=VALUE", value_parser = pair, conflicts_with = "url")]
    env: Vec<(String, String)>,
    /// The folder that the program starts in
    #[arg(long, value_name = "DIR", conflicts_with = "url")]
    cwd: Option<String>,
    /// Let the program use the network
    #[arg(long, conflicts_with = "url")]
    network: bool,
    /// Show the program nothing of the machine but its system folders and `--cwd`
    #[arg(long, conflicts_with = "url")]
    sandbox: bool,
    /// What stands before the names of its tools
    #[arg(long)]
    prefix: Option<String>,
    /// Who may call its tools
    #[arg(long, value_parser = ["allow", "elevated", "deny"])]
    policy: Option<String>,
    /// Take over what changes on the server without being asked
    #[arg(long)]
    accept_changes: bool,
}

fn pair(text: &str) -> Result<(String, String), String> {
    let split = text.split_once('=').filter(|(name, _)| !name.is_empty());
    split
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .ok_or_else(|| "expected NAME=VALUE".to_owned())
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
        Command::Changes { id } => changes(&id, context).await,
        Command::Accept { id, tools } => accept(&id, tools, context).await,
        Command::Enable { id } => switch(&id, true, context).await,
        Command::Disable { id } => switch(&id, false, context).await,
        Command::Rm { id } => remove(&id, context).await,
    }
}

fn path(id: &str) -> String {
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
            prefix,
            policy,
            accept_changes,
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
        }
        body.insert("prefix".to_owned(), json!(prefix.unwrap_or_default()));
        body.insert("policy".to_owned(), json!(policy));
        body.insert("accept_changes".to_owned(), json!(accept_changes));
        Value::Object(body)
    }
}

impl Add {
    /// What is said about logins, where something is.
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
    let added = context.ask(Request::post("/api/mcp-servers", add.body())).await?;
    for warning in view::list(&added, "warnings").iter().filter_map(Value::as_str) {
        context.output.warn(warning);
    }
    context.output.note(&format!("added the MCP server `{id}`; asking it for its tools"));
    // It is kept also where it does not answer now: its list says why.
    refresh(&id, context).await
}

async fn list(context: &Context) -> Result<(), CliError> {
    let data = context.ask(Request::get("/api/mcp-servers?page_size=500")).await?;
    context.output.data(&data, |output| {
        let rows = view::list(&data, "mcp_servers").iter().map(row);
        output.table(&["ID", "STATE", "TOOLS", "SERVER", "ERROR"], rows.collect())
    })
}

fn row(server: &Value) -> Vec<String> {
    let nothing = Value::Null;
    let state = server.get("state").unwrap_or(&nothing);
    vec![
        view::text(server, "id"),
        view::text(state, "phase"),
        view::text(state, "tools"),
        view::text(state, "server_info"),
        view::text(state, "error"),
    ]
}

async fn refresh(id: &str, context: &Context) -> Result<(), CliError> {
    let data = context.ask(Request::post(format!("{}/refresh", path(id)), json!({}))).await?;
    context
        .output
        .data(&data, |output| output.table(&["ID", "STATE", "TOOLS", "SERVER", "ERROR"], vec![row(&data)]))
}

/// How long a person may take.
const LOGIN_WITHIN: Duration = Duration::from_mins(10);

async fn login(id: &str, no_wait: bool, context: &Context) -> Result<(), CliError> {
    let client = context.client().await?;
    if client.engine().is_some() {
        client.close().await;
        let message =
            "a login needs a server that people can be sent back to: run `haft serve`, then try again";
        return Err(CliError::Usage(message.to_owned()));
    }
    let is_connected =
        |server: &Value| server.pointer("/state/phase").and_then(Value::as_str) == Some("connected");
    // Of a server that is connected already it cannot be seen when the login is over.
    let no_wait = no_wait || is_connected(&client.data(Request::get(path(id))).await?);
    let begun = client.data(Request::post(format!("{}/login", path(id)), json!({}))).await?;
    if no_wait {
        return context.output.data(&begun, |output| output.line(&view::text(&begun, "authorization_url")));
    }
    context
        .output
        .note(&format!("open this address, and agree:\n\n{}\n", view::text(&begun, "authorization_url")));
    let started = Instant::now();
    while started.elapsed() < LOGIN_WITHIN {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let server = client.data(Request::get(path(id))).await?;
        if is_connected(&server) {
            return context.output.data(&server, |output| {
                output.table(&["ID", "STATE", "TOOLS", "SERVER", "ERROR"], vec![row(&server)])
            });
        }
    }
    let message = format!("nobody agreed to the login to `{id}` in time; try again");
    Err(CliError::Usage(message))
}

async fn logout(id: &str, context: &Context) -> Result<(), CliError> {
    let data = context.ask(Request::post(format!("{}/logout", path(id)), json!({}))).await?;
    context.output.data(&data, |output| {
        output.note(&format!("logged out of the MCP server `{id}`"));
        Ok(())
    })
}

async fn changes(id: &str, context: &Context) -> Result<(), CliError> {
    let data = context.ask(Request::get(format!("{}/changes", path(id)))).await?;
    context.output.data(&data, |output| {
        for change in view::list(&data, "changes") {
            output.line(&view::text(change, "name"))?;
            for side in ["agreed", "offered"] {
                let shown = change.get(side).map(ToString::to_string).unwrap_or_default();
                output.line(&format!("  {side}: {shown}"))?;
            }
        }
        Ok(())
    })
}

async fn accept(id: &str, tools: Vec<String>, context: &Context) -> Result<(), CliError> {
    let body = if tools.is_empty() { json!({}) } else { json!({"tools": tools}) };
    let data = context.ask(Request::post(format!("{}/accept", path(id)), body)).await?;
    context.output.data(&data, |output| {
        let names: Vec<_> = view::list(&data, "accepted").iter().filter_map(Value::as_str).collect();
        output.note(&format!(
            "accepted: {}",
            if names.is_empty() { "nothing".to_owned() } else { names.join(", ") }
        ));
        Ok(())
    })
}

async fn switch(id: &str, enabled: bool, context: &Context) -> Result<(), CliError> {
    let request = Request::new(Method::PATCH, path(id)).with_body(Body::Json(json!({"enabled": enabled})));
    let data = context.ask(request).await?;
    let word = if enabled { "enabled" } else { "disabled" };
    context.output.data(&data, |output| {
        output.note(&format!("{word} the MCP server `{id}`"));
        Ok(())
    })
}

async fn remove(id: &str, context: &Context) -> Result<(), CliError> {
    let data = context.ask(Request::delete(path(id))).await?;
    context.output.data(&data, |output| {
        output.note(&format!("forgot the MCP server `{id}` and its tools"));
        Ok(())
    })
}
