//! `haft login`: stores a token for a server, which a person approves in a browser, or which is read from the terminal.

use std::time::Duration;

use clap::Args;
use haft_api::token::SessionView;
use haft_core::secret::Secret;
use serde_json::json;
use url::Url;

use super::context::warn_if_overridden;
use super::logout::{Revocation, revoke};
use crate::client::{Client, DeviceLogin, Request, connect_to};
use crate::context::Context;
use crate::contexts::{ContextName, Contexts, StoredContext};
use crate::error::{ApiError, CliError};
use crate::progress::Progress;
use crate::server_url::{self, PlainHttp, shown};
use crate::{input, view};

/// The value of `--token` without one.
const FROM_INPUT: &str = "-";
/// What the tokens of haft start with.
const TOKEN_PREFIX: &str = "haft_";
/// How often a new token is tried: other nodes learn of it within a second.
const ATTEMPTS: u32 = 6;
const RETRY_DELAY: Duration = Duration::from_millis(500);

/// Log in to a server
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// URL of the server [default: that of the context]
    url: Option<String>,
    /// Name of the context [default: the host of the server]
    #[arg(long, value_name = "NAME")]
    name: Option<ContextName>,
    /// Read a token from the terminal or from stdin; without it, the login is approved in a browser
    // The global option of this name has a value; this one has the same type, and none.
    #[arg(long, num_args = 0, default_missing_value = FROM_INPUT, value_parser = crate::cli::parse_token)]
    token: Option<Secret>,
    /// Allow `http` to another machine, which sends the token unencrypted
    #[arg(long)]
    insecure_http: bool,
}

/// The server to log in to.
struct Destination {
    server: Url,
    http: PlainHttp,
    /// The context that the login renews.
    name: Option<ContextName>,
}

/// Runs the command.
pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<(), CliError> {
    let Arguments { url, name, token, insecure_http } = arguments;
    if token.as_ref().is_some_and(|given| given.expose() != FROM_INPUT) {
        return Err(token_in_arguments());
    }
    let is_approved = token.is_none();
    if !is_approved && url.as_deref().is_some_and(|url| !url.contains("://")) {
        return Err(not_a_url());
    }
    let http = if insecure_http { PlainHttp::Allowed } else { PlainHttp::Rejected };
    let mut destination = destination(url.as_deref(), http, context)?;
    destination.name = name.or(destination.name);
    let server = &destination.server;
    Contexts::check_writable(&context.environment)?;
    if let Some(name) = &destination.name {
        check_name(name, server, &Contexts::load(&context.environment)?)?;
    }
    let (token, who) = if is_approved {
        approved(server, context).await?
    } else {
        let token = read_token(server)?;
        let who = who(server, &token, context).await?;
        (token, who)
    };
    let name = match store(&destination, &token, &who, context) {
        Ok(name) => name,
        Err(error) => {
            if is_approved {
                give_back(server, &token, Some(&who), context).await;
            }
            return Err(error);
        }
    };
    let data = json!({
        "context": name.as_str(),
        "server": shown(server),
        "tenant": who.tenant,
        "name": who.name,
        "role": who.role,
        "expires_at": who.expires_at,
    });
    context.output.data(&data, |output| {
        let (url, role) = (shown(server), who.role.as_str());
        output.note(&format!(
            "logged in to {url} as `{}`: role `{role}` in tenant `{}`\ncommands use the context `{name}` now",
            who.name, who.tenant
        ));
        Ok(())
    })?;
    warn_if_overridden(context);
    Ok(())
}

/// Returns the server to log in to, the given one or that of the context, which the login then renews.
fn destination(url: Option<&str>, http: PlainHttp, context: &Context) -> Result<Destination, CliError> {
    if url.is_some_and(|url| url.starts_with(TOKEN_PREFIX)) {
        return Err(token_in_arguments());
    }
    if let Some(url) = url {
        return Ok(Destination { server: server_url::parse_for_token(url, http)?, http, name: None });
    }
    let target = context.target()?;
    let Some(url) = target.url() else {
        return Err(CliError::Usage {
            message: "missing the URL of the server".to_owned(),
            hint: Some("haft login https://haft.example.com".to_owned()),
        });
    };
    // A person has allowed it when the context was stored.
    let http = target.context().map_or(http, |stored| stored.http);
    let name = target.context().map(|stored| stored.name.clone());
    Ok(Destination { server: server_url::parse_for_token(url.as_str(), http)?, http, name })
}

/// Stores the login; returns the name of its context.
fn store(
    destination: &Destination,
    token: &Secret,
    who: &SessionView,
    context: &Context,
) -> Result<ContextName, CliError> {
    let Destination { server, http, name } = destination;
    // Again: another login may have been stored meanwhile.
    let mut contexts = Contexts::load_for_change(&context.environment)?;
    let name = match name {
        Some(name) => {
            check_name(name, server, &contexts)?;
            name.clone()
        }
        None => default_name(server, who, &contexts)?,
    };
    contexts.put(StoredContext {
        name: name.clone(),
        server: server.clone(),
        token: token.clone(),
        tenant: Some(who.tenant.clone()),
        http: *http,
    })?;
    Ok(name)
}

/// Revokes an approved token that is not stored, and says what became of it.
async fn give_back(server: &Url, token: &Secret, who: Option<&SessionView>, context: &Context) {
    let reason = match revoke(server, token).await {
        Revocation::Done => {
            context.output.warn("the login failed after the approval; its token was revoked");
            return;
        }
        // The token is new: the node that responded has not learned of it.
        Revocation::Unknown => "it could not be revoked: the server does not know it yet".to_owned(),
        Revocation::Kept(reason) => reason,
    };
    let step = match who.and_then(|who| who.token_id) {
        Some(id) => format!("revoke it with `haft token revoke {id}`"),
        None => "revoke the newest token `haft-cli on ...` with `haft token revoke`".to_owned(),
    };
    let message = format!("the login failed after the approval, and its token stays valid: {reason}; {step}");
    context.output.warn(&message);
}

/// The value is not repeated: it is secret.
fn token_in_arguments() -> CliError {
    CliError::Usage {
        message: "unexpected value: the token is read from the terminal or from standard input".to_owned(),
        hint: Some("haft login URL --token < token.txt".to_owned()),
    }
}

/// The value is not repeated: it may be a token.
fn not_a_url() -> CliError {
    CliError::Usage {
        message:
            "expected a URL such as `https://haft.example.com`; the token is read from the terminal or from \
                  standard input"
                .to_owned(),
        hint: Some("haft login URL --token < token.txt".to_owned()),
    }
}

/// Rejects the name of a context that is for another server.
fn check_name(name: &ContextName, server: &Url, contexts: &Contexts) -> Result<(), CliError> {
    match contexts.get(name.as_str()) {
        Ok(other) if other.server != *server => Err(CliError::Usage {
            message: format!("the context `{name}` is for {}", shown(&other.server)),
            hint: Some(format!("choose another name with `--name`, or remove it with `haft logout {name}`")),
        }),
        _ => Ok(()),
    }
}

/// Returns the name of an earlier login to the same tenant, otherwise one that is free: the host, with the port or the
/// tenant if the host is taken.
fn default_name(server: &Url, who: &SessionView, contexts: &Contexts) -> Result<ContextName, CliError> {
    let is_earlier =
        |other: &&StoredContext| other.server == *server && other.tenant.as_ref() == Some(&who.tenant);
    let current = contexts.current().ok().flatten().filter(is_earlier);
    if let Some(earlier) = current.or_else(|| contexts.all().iter().find(is_earlier)) {
        return Ok(earlier.name.clone());
    }
    let host = server.host_str().unwrap_or_default();
    let port = server.port().map(|port| format!("{host}-{port}"));
    let tenant = format!("{host}-{}", who.tenant);
    let names = [Some(host.to_owned()), port, Some(tenant)];
    let is_free = |name: &ContextName| contexts.get(name.as_str()).is_err();
    let mut names = names.into_iter().flatten().filter_map(|name| ContextName::of_text(&name));
    names.find(is_free).ok_or_else(|| {
        CliError::usage(format!("contexts for `{host}` exist already; choose a name with `--name NAME`"))
    })
}

fn read_token(server: &Url) -> Result<Secret, CliError> {
    let text = input::read_secret(&format!("Token for {}", shown(server)))?;
    let token = text.expose().trim();
    if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(CliError::usage("the input is not a token: expected one line without spaces"));
    }
    Ok(Secret::new(token.to_owned()))
}

/// Waits until a person has approved the login; returns the token and whose it is.
async fn approved(server: &Url, context: &Context) -> Result<(Secret, SessionView), CliError> {
    let login = DeviceLogin::start(server, &device_name()).await?;
    let minutes = login.lifetime.as_secs().div_ceil(60);
    let (page, code) = (&login.page, &login.user_code);
    warn_of_other_host(login.page_to_open(), server, context);
    let step = match &login.complete_page {
        Some(complete) => {
            format!("Open this page in a browser, compare the code, and approve:\n\n  {complete}")
        }
        None => format!("Open this page in a browser, enter the code, and approve:\n\n  {page}"),
    };
    context.output.instruct(&format!("{step}\n\n  Code: {code} (for {minutes} minutes)\n"));
    let progress = Progress::new(&context.output);
    let token = progress.during("waiting for the approval in the browser", login.token()).await?;
    match who_with_new_token(server, &token, context).await {
        Ok(who) => Ok((token, who)),
        Err(error) => {
            give_back(server, &token, None, context).await;
            Err(error)
        }
    }
}

/// Warns of a page on another host: the person approves there, and may enter a token.
fn warn_of_other_host(page: &Url, server: &Url, context: &Context) {
    let (page, server) = (page.host_str().unwrap_or_default(), server.host_str().unwrap_or_default());
    if page != server {
        context.output.warn(&format!(
            "the page is on `{page}`, but you log in to `{server}`; open it only if both belong to the same server"
        ));
    }
}

/// Asks the server whose token it is; the node that responds may not know a new token yet.
async fn who_with_new_token(
    server: &Url,
    token: &Secret,
    context: &Context,
) -> Result<SessionView, CliError> {
    let mut attempt = 1;
    loop {
        match who(server, token, context).await {
            Err(CliError::Api(error)) if error.code == "unauthorized" && attempt < ATTEMPTS => {
                attempt += 1;
                tokio::time::sleep(RETRY_DELAY).await;
            }
            found => return found,
        }
    }
}

/// Asks the server whose token it is.
async fn who(server: &Url, token: &Secret, context: &Context) -> Result<SessionView, CliError> {
    let client: Client = connect_to(server, token)?;
    let progress = Progress::new(&context.output);
    let answer = progress.during("waiting for the server", client.data(Request::get("/api/session"))).await;
    let who = answer.and_then(|data| view::read(&data));
    who.map_err(|error| match error {
        CliError::Api(error) if error.code == "unauthorized" => {
            let message = format!("{} does not accept the token: {}", shown(server), error.message);
            CliError::Api(Box::new(ApiError { message, ..*error }))
        }
        other => other,
    })
}

/// Returns the name of this computer, which the person who approves the login sees.
fn device_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}
