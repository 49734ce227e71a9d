//! `haft connect`: adds haft to the configuration of an MCP client.
//!
//! The entry has a token of its own, so that the calls of the client are recorded in its name and end with it.

use clap::Args;
use haft_api::token::{CreatedToken, SessionView, TokenView};
use haft_core::name::BundleSlug;
use haft_core::secret::Secret;
use http::StatusCode;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use serde_json::{Value, json};
use url::Url;

use super::logout::{Revocation, revoke};
use super::token::Role;
use crate::client::{Request, connect_to, pipe_client, read_response, segment, server};
use crate::context::Context;
use crate::contexts::LOCAL;
use crate::error::CliError;
use crate::mcp_clients::{Endpoint, McpClient, SettingsFile, url_of_entry};
use crate::target::Target;
use crate::view;

/// The version of the protocol in the check; every client has it.
const PROTOCOL: &str = "2025-06-18";
/// What stands for the token in a printed entry.
const TOKEN_TO_FILL_IN: &str = "TOKEN";
/// The longest name of an entry.
const MAX_NAME_LENGTH: usize = 64;

/// Add haft to the configuration of an MCP client
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub(crate) struct Arguments {
    /// The client
    #[arg(required_unless_present = "list")]
    client: Option<McpClient>,
    /// Name of the entry [default: `haft`, or `haft-BUNDLE`]
    #[arg(long, value_name = "NAME", value_parser = parse_name)]
    name: Option<String>,
    /// Only the tools of one bundle
    #[arg(long, value_name = "SLUG")]
    bundle: Option<BundleSlug>,
    /// Let the client start `haft mcp` instead of connecting to the URL of the server
    #[arg(long)]
    stdio: bool,
    /// Store no token: the client logs in by itself, in a browser
    #[arg(long, conflicts_with = "stdio")]
    oauth: bool,
    /// Role of the token [default: caller]
    #[arg(long, conflicts_with = "oauth")]
    role: Option<Role>,
    /// Tools that the token may see and call: names, `bundle:*`, patterns, `tag:NAME` [default: every tool]
    #[arg(long, value_name = "RULES", value_delimiter = ',', conflicts_with = "oauth")]
    tools: Option<Vec<String>>,
    /// Lifetime of the token, e.g. `90d` [default: no expiry]
    #[arg(long, value_name = "DURATION", conflicts_with = "oauth")]
    expires_in: Option<String>,
    /// Print the entry, and change nothing
    #[arg(long)]
    print: bool,
    /// Remove the entry and revoke its token
    #[arg(long, conflicts_with = "print")]
    remove: bool,
    /// List the clients, and which of them are connected
    #[arg(long, conflicts_with_all = ["client", "print", "remove"])]
    list: bool,
}

fn parse_name(text: &str) -> Result<String, String> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if (1..=MAX_NAME_LENGTH).contains(&text.len()) && text.chars().all(is_name) {
        return Ok(text.to_owned());
    }
    Err(format!("expected 1 to {MAX_NAME_LENGTH} letters, digits, `-` and `_`"))
}

impl Arguments {
    fn name(&self) -> String {
        let of_bundle = || self.bundle.as_ref().map(|bundle| format!("haft-{bundle}"));
        self.name.clone().or_else(of_bundle).unwrap_or_else(|| "haft".to_owned())
    }
}

/// Runs the command.
pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<(), CliError> {
    let Some(client) = arguments.client else { return list(&arguments, context) };
    let file = SettingsFile::read(client, &context.environment)?;
    if arguments.remove {
        return remove(client, &file, &arguments.name(), context).await;
    }
    let route = Route::of(client, &arguments, context).await?;
    if arguments.print {
        return print(client, &file, &route, &arguments, context);
    }
    connect(client, &file, route, &arguments, context).await
}

/// How the client reaches haft; the token does not exist yet.
struct Route {
    /// The server, unless the program of the entry opens the home folder.
    server: Option<Url>,
    /// The arguments of `haft`, if the client starts it.
    program: Option<Vec<String>>,
    /// Whether the entry has a token.
    has_token: bool,
}

impl Route {
    async fn of(client: McpClient, arguments: &Arguments, context: &Context) -> Result<Self, CliError> {
        if arguments.oauth && !client.supports_http() {
            let message = format!("{} cannot log in to a URL of its configuration", client.label());
            return Err(CliError::Usage { message, hint: Some("leave out `--oauth`".to_owned()) });
        }
        if !arguments.stdio && client.supports_http() {
            let found = server(context).await?.ok_or_else(|| CliError::Usage {
                message: "no server is running".to_owned(),
                hint: Some("start one with `haft serve`, or pass `--stdio`, which needs none".to_owned()),
            })?;
            return Ok(Self { server: Some(found.0), program: None, has_token: !arguments.oauth });
        }
        let mut program = vec!["mcp".to_owned()];
        let (server, options) = match context.target()? {
            Target::Home => (None, vec!["--context".to_owned(), LOCAL.to_owned()]),
            Target::Server(url) => (Some(url.clone()), vec!["--server".to_owned(), url.to_string()]),
            Target::Context(stored, _) => {
                (Some(stored.server), vec!["--context".to_owned(), stored.name.to_string()])
            }
        };
        program.extend(options);
        let has_token = program.iter().any(|argument| argument == "--server");
        if server.is_none() {
            program.extend(["--home".to_owned(), context.home()?.display().to_string()]);
        }
        if let Some(bundle) = &arguments.bundle {
            program.extend(["--bundle".to_owned(), bundle.to_string()]);
        }
        Ok(Self { server, program: Some(program), has_token })
    }

    fn endpoint(&self, bundle: Option<&BundleSlug>, token: Option<Secret>) -> Result<Endpoint, CliError> {
        match (&self.program, &self.server) {
            (Some(args), _) => Ok(Endpoint::Program { command: executable()?, args: args.clone(), token }),
            (None, Some(server)) => Ok(Endpoint::Http { url: mcp_url(server, bundle)?, token }),
            (None, None) => Err(CliError::usage("no server is running")),
        }
    }
}

fn mcp_url(server: &Url, bundle: Option<&BundleSlug>) -> Result<Url, CliError> {
    let bundle = bundle.map(|slug| format!("/bundles/{slug}")).unwrap_or_default();
    let url = format!("{}/mcp{bundle}", server.as_str().trim_end_matches('/'));
    Url::parse(&url).map_err(|error| CliError::usage(format!("`{url}` is not a URL: {error}")))
}

fn executable() -> Result<String, CliError> {
    let path = std::env::current_exe().map_err(CliError::io("find the program `haft`"))?;
    Ok(path.display().to_string())
}

fn print(
    client: McpClient,
    file: &SettingsFile,
    route: &Route,
    arguments: &Arguments,
    context: &Context,
) -> Result<(), CliError> {
    let token = route.has_token.then(|| Secret::new(TOKEN_TO_FILL_IN.to_owned()));
    let name = arguments.name();
    let entry = client.entry(&name, &route.endpoint(arguments.bundle.as_ref(), token)?);
    let text = SettingsFile::only_entry(client, &name, &entry);
    let data = json!({"client": client.name(), "file": file.path().display().to_string(), "text": text});
    context.output.data(&data, |output| {
        output.note(&format!("add this to `{}`", file.path().display()));
        if route.has_token {
            let command = format!("haft token create {} --role caller", client.name());
            output.note(&format!("replace `{TOKEN_TO_FILL_IN}` by the output of `{command}`"));
        }
        output.line(&text)
    })
}

async fn connect(
    client: McpClient,
    file: &SettingsFile,
    route: Route,
    arguments: &Arguments,
    context: &Context,
) -> Result<(), CliError> {
    let name = arguments.name();
    let earlier = file.entry(&name)?;
    let token = match &route.server {
        Some(_) if route.has_token => Some(create_token(client, arguments, context).await?),
        _ => None,
    };
    let written = async {
        let entry = client.entry(&name, &route.endpoint(arguments.bundle.as_ref(), token.clone())?);
        let text = file.with_entry(&name, &entry)?;
        let tools = check(&route, arguments.bundle.as_ref(), token.as_ref(), context).await?;
        Ok((file.write(&text)?, tools))
    };
    let (backup, tools) = match written.await {
        Ok(written) => written,
        Err(error) => {
            if let (Some(server), Some(token)) = (&route.server, &token) {
                revoke(server, token).await;
            }
            return Err(error);
        }
    };
    let data = json!({
        "client": client.name(),
        "name": name,
        "file": file.path().display().to_string(),
        "backup": backup.as_ref().map(|path| path.display().to_string()),
        "tools": tools,
        "replaced": earlier.is_some(),
    });
    context.output.data(&data, |output| {
        output.note(&format!("added `{name}` to `{}`", file.path().display()));
        if let Some(backup) = &backup {
            output.note(&format!("the earlier file is `{}`", backup.display()));
        }
        let label = client.label();
        output.note(&match tools {
            Some(tools) => {
                format!("checked: haft answers, and {label} will see {tools} tools; restart {label} now")
            }
            None => format!("checked: haft answers; restart {label} now, and log in there"),
        });
        Ok(())
    })?;
    if let Some(earlier) = earlier {
        revoke_token_of(&earlier, client, context).await;
    }
    Ok(())
}

/// Returns the name of the token of a client on this computer.
fn token_name(client: McpClient) -> String {
    let computer = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let name = format!("{} on {computer}", client.label());
    name.chars().filter(|c| !c.is_control()).take(64).collect()
}

async fn create_token(
    client: McpClient,
    arguments: &Arguments,
    context: &Context,
) -> Result<Secret, CliError> {
    let who: SessionView = view::read(&context.request(Request::get("/api/session")).await?)?;
    let role = arguments.role.unwrap_or(Role::Caller).name();
    let mut body = json!({"name": token_name(client), "role": role});
    if let Some(body) = body.as_object_mut() {
        // Whoever has a person acts as that person in the client, too.
        let fields = [
            ("owner", who.actor.map(|_| json!("me"))),
            ("tools", arguments.tools.clone().map(Value::from)),
            ("expires_in", arguments.expires_in.clone().map(Value::from)),
        ];
        body.extend(fields.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))));
    }
    let created: CreatedToken = view::read(&context.request(Request::post("/api/tokens", body)).await?)?;
    for warning in &created.warnings {
        context.output.warn(warning);
    }
    Ok(Secret::new(created.token))
}

/// Checks that haft answers the way the client will ask; returns the number of tools that the client will see, if that is
/// known before its login.
async fn check(
    route: &Route,
    bundle: Option<&BundleSlug>,
    token: Option<&Secret>,
    context: &Context,
) -> Result<Option<u64>, CliError> {
    let path = match bundle {
        Some(bundle) => format!("/api/tools?page_size=1&bundle_ids={}", segment(bundle.as_str())),
        None => "/api/tools?page_size=1".to_owned(),
    };
    let tools = match (&route.server, token) {
        (Some(server), Some(token)) => {
            initialize(server, bundle, token).await?;
            connect_to(server, token)?.send(Request::get(path)).await?
        }
        (Some(server), None) if route.program.is_none() => {
            login_metadata(server).await?;
            return Ok(None);
        }
        _ => context.client().await?.send(Request::get(path)).await?,
    };
    let total = |value: &Value| value.get("total").and_then(Value::as_u64);
    Ok(total(&tools).or_else(|| tools.get("data").and_then(total)))
}

/// Opens a session of MCP and ends it.
async fn initialize(server: &Url, bundle: Option<&BundleSlug>, token: &Secret) -> Result<(), CliError> {
    let failed = |error: reqwest::Error| CliError::unreachable(server, error.without_url().into());
    let url = mcp_url(server, bundle)?;
    let client = pipe_client(server)?;
    let bearer = format!("Bearer {}", token.expose());
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": PROTOCOL, "capabilities": {},
        "clientInfo": {"name": "haft connect", "version": env!("CARGO_PKG_VERSION")}
    }});
    let request = client
        .post(url.clone())
        .header(AUTHORIZATION, &bearer)
        .header(CONTENT_TYPE, "application/json")
        .header(ACCEPT, "application/json, text/event-stream")
        .body(message.to_string());
    let response = request.send().await.map_err(failed)?;
    let status = response.status();
    let session = response.headers().get("mcp-session-id").cloned();
    if status != StatusCode::OK {
        let body = response.bytes().await.map_err(failed)?;
        read_response(status.as_u16(), &body, || server.to_string())?;
        return Err(CliError::InvalidResponse { url: url.to_string(), status: status.as_u16() });
    }
    if let Some(session) = session {
        let end = client.delete(url).header(AUTHORIZATION, bearer).header("mcp-session-id", session);
        // A session that stays open ends when it is idle.
        let _ = end.send().await;
    }
    Ok(())
}

/// Reads what a client reads first if it has no token.
async fn login_metadata(server: &Url) -> Result<(), CliError> {
    let failed = |error: reqwest::Error| CliError::unreachable(server, error.without_url().into());
    let url = format!("{}/.well-known/oauth-protected-resource/mcp", server.as_str().trim_end_matches('/'));
    let response = pipe_client(server)?.get(&url).send().await.map_err(failed)?;
    match response.status() {
        status if status.is_success() => Ok(()),
        status => Err(CliError::InvalidResponse { url, status: status.as_u16() }),
    }
}

async fn remove(
    client: McpClient,
    file: &SettingsFile,
    name: &str,
    context: &Context,
) -> Result<(), CliError> {
    let Some(entry) = file.entry(name)? else {
        let path = file.path().display();
        return Err(CliError::Usage {
            message: format!("`{path}` has no entry `{name}`"),
            hint: Some("list the clients with `haft connect --list`".to_owned()),
        });
    };
    let backup = file.write(&file.without_entry(name)?)?;
    let data = json!({
        "client": client.name(),
        "name": name,
        "file": file.path().display().to_string(),
        "backup": backup.map(|path| path.display().to_string()),
    });
    context.output.data(&data, |output| {
        output.note(&format!("removed `{name}` from `{}`", file.path().display()));
        Ok(())
    })?;
    revoke_token_of(&entry, client, context).await;
    Ok(())
}

/// Revokes the token of an entry, if `haft connect` has created it.
async fn revoke_token_of(entry: &str, client: McpClient, context: &Context) {
    let (url, token) = url_of_entry(entry);
    let (Some(mut server), Some(token)) = (url, token) else { return };
    server.set_path("/");
    server.set_query(None);
    match is_created_here(&server, &token, client, context).await {
        Ok(true) => match revoke(&server, &token).await {
            Revocation::Done => context.output.note("revoked the token of the earlier entry"),
            Revocation::Unknown => {}
            Revocation::Kept(reason) => {
                context.output.warn(&format!("the token of the earlier entry stays valid: {reason}"));
            }
        },
        Ok(false) => {
            context.output.note("the token of the earlier entry stays valid: others may use it, too");
        }
        Err(CliError::Api(error)) if error.code == "unauthorized" => {}
        Err(error) => {
            context.output.warn(&format!("the token of the earlier entry stays valid: {}", error.message()));
        }
    }
}

async fn is_created_here(
    server: &Url,
    token: &Secret,
    client: McpClient,
    context: &Context,
) -> Result<bool, CliError> {
    let data = connect_to(server, token)?.data(Request::get("/api/session")).await?;
    let who: SessionView = view::read(&data)?;
    let Some(id) = who.token_id else { return Ok(false) };
    let data = context.request(Request::get(format!("/api/tokens/{}", segment(&id.to_string())))).await?;
    let record: TokenView = view::read(&data)?;
    Ok(record.name == token_name(client))
}

fn list(arguments: &Arguments, context: &Context) -> Result<(), CliError> {
    let name = arguments.name();
    let mut rows = Vec::new();
    for client in <McpClient as clap::ValueEnum>::value_variants() {
        let file = SettingsFile::read(*client, &context.environment)?;
        let state = match file.entry(&name) {
            Ok(Some(entry)) => match url_of_entry(&entry).0 {
                Some(url) => format!("connected to {url}"),
                None => "connected by `haft mcp`".to_owned(),
            },
            Ok(None) if file.is_client_present() => "not connected".to_owned(),
            Ok(None) => "not installed".to_owned(),
            Err(error) => error.to_string(),
        };
        rows.push((*client, file.path().display().to_string(), state));
    }
    let data: Vec<Value> = rows
        .iter()
        .map(|(client, file, state)| json!({"client": client.name(), "label": client.label(), "file": file, "state": state}))
        .collect();
    context.output.data(&json!({"clients": data}), |output| {
        let cells = rows.iter().map(|(client, file, state)| {
            vec![client.name(), client.label().to_owned(), state.clone(), file.clone()]
        });
        output.list(&["CLIENT", "NAME", "STATE", "FILE"], &[], cells.collect())
    })
}
