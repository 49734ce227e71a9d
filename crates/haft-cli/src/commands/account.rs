//! `haft account`: your accounts at providers, which tools use for you.

use std::time::Duration;

use clap::Subcommand;
use haft_api::account::{
    AccountKind, AccountList, AccountState, ConnectableView, DeviceConnectionStateView,
    DeviceConnectionStatus, DeviceConnectionView, StartedConnection,
};
use http::Method;
use serde_json::json;

use crate::client::{Body, Request, segment};
use crate::context::Context;
use crate::error::{ApiError, CliError};
use crate::input;
use crate::view;

/// How often to ask whether a login has ended.
const POLL_INTERVAL: Duration = Duration::from_secs(2);

/// Manage your accounts at providers, which tools use for you
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List what you have connected and what you can connect
    #[command(visible_alias = "ls", after_help = examples!("haft account list", "haft account list --person ID"))]
    List {
        /// Show what a person has connected, as an admin
        #[arg(long, value_name = "ID")]
        person: Option<String>,
    },
    /// Connect an account; an API key is read from stdin, or prompted for
    #[command(after_help = examples!("haft account connect github", "haft account connect files < key.txt", "haft account connect calendar --device"))]
    Connect {
        /// Name of the provider, e.g. `github` or `mcp:mail`
        provider: String,
        /// Log in with a code on any device, and wait until that is done
        #[arg(long)]
        device: bool,
    },
    /// Revoke an account: tools no longer use it
    #[command(visible_alias = "rm", after_help = examples!("haft account revoke github", "haft account revoke github --person ID"))]
    Revoke {
        /// Name of the provider
        provider: String,
        /// Revoke the account of a person, as an admin
        #[arg(long, value_name = "ID")]
        person: Option<String>,
    },
}

/// Runs the command.
pub(crate) async fn run(command: Command, context: &Context) -> Result<(), CliError> {
    match command {
        Command::List { person } => list(person.as_deref(), context).await,
        Command::Connect { provider, device } => connect(&provider, device, context).await,
        Command::Revoke { provider, person } => revoke(&provider, person.as_deref(), context).await,
    }
}

fn of_person(path: String, person: Option<&str>) -> String {
    match person {
        Some(person) => format!("{path}?person={}", segment(person)),
        None => path,
    }
}

async fn list(person: Option<&str>, context: &Context) -> Result<(), CliError> {
    let data = context.request(Request::get(of_person("/api/accounts".to_owned(), person))).await?;
    context.output.show(&data, |output, list: AccountList| {
        let rows = list.accounts.into_iter().map(row).collect();
        output.list(&["PROVIDER", "NAME", "STATE", "SCOPE", "LAST USED"], &["HELP"], rows)
    })
}

fn row(known: ConnectableView) -> Vec<String> {
    let (state, scope, last_used) = match known.account {
        None if known.has_shared => ("shared".to_owned(), String::new(), String::new()),
        None => ("not connected".to_owned(), String::new(), String::new()),
        Some(account) => {
            let state = match account.state {
                AccountState::Connected => "connected",
                AccountState::Expired => "expired",
            };
            let last_used = account.last_used_at.map(view::moment).unwrap_or_default();
            (state.to_owned(), account.scope.unwrap_or_default(), last_used)
        }
    };
    vec![known.provider, known.display_name, state, scope, last_used, known.help]
}

async fn connect(provider: &str, device: bool, context: &Context) -> Result<(), CliError> {
    let list = context.request(Request::get("/api/accounts")).await?;
    let list: AccountList = serde_json::from_value(list).map_err(|error| unexpected(&error))?;
    let known = list.accounts.into_iter().find(|known| known.provider == provider);
    if !device && known.is_some_and(|known| known.kind == AccountKind::ApiKey) {
        let key = input::read_secret(&format!("API key of {provider}"))?;
        let body = Body::Json(json!({"api_key": key.expose().trim_end_matches(['\r', '\n'])}));
        let path = format!("/api/accounts/{}", segment(provider));
        let data = context.request(Request::new(Method::PUT, path).with_body(body)).await?;
        return context.output.data(&data, |output| {
            output.note(&format!("connected your account at `{provider}`"));
            Ok(())
        });
    }
    let path = format!("/api/accounts/{}/connect", segment(provider));
    let body = if device { json!({"flow": "device"}) } else { json!({}) };
    let data = context.request(Request::new(Method::POST, path).with_body(Body::Json(body))).await?;
    let started: StartedConnection =
        serde_json::from_value(data.clone()).map_err(|error| unexpected(&error))?;
    if let Some(login) = started.device {
        return wait(provider, &login, context).await;
    }
    context.output.data(&data, |output| {
        output.note("open this address in a browser in which you are logged in to haft:");
        output.line(&started.authorization_url)
    })
}

/// Shows the code of a login, and waits for its end.
async fn wait(provider: &str, login: &DeviceConnectionView, context: &Context) -> Result<(), CliError> {
    context
        .output
        .instruct(&format!("open {} and enter the code {}", login.verification_uri, login.user_code));
    context.output.note("waiting for the login; Ctrl-C stops waiting, and the server goes on");
    let path = format!("/api/accounts/{}/logins/{}", segment(provider), segment(&login.id));
    loop {
        tokio::time::sleep(POLL_INTERVAL).await;
        let data = context.request(Request::get(path.as_str())).await?;
        let status: DeviceConnectionStatus =
            serde_json::from_value(data.clone()).map_err(|error| unexpected(&error))?;
        match status.state {
            DeviceConnectionStateView::Pending => {}
            DeviceConnectionStateView::Connected => {
                return context.output.data(&data, |output| {
                    output.note(&format!("connected your account at `{provider}`"));
                    Ok(())
                });
            }
            DeviceConnectionStateView::Failed => {
                let why = status.error.unwrap_or_default();
                let message = format!("the account was not connected: {why}");
                return Err(CliError::Api(Box::new(ApiError::local(403, "forbidden", message))));
            }
        }
    }
}

fn unexpected(error: &serde_json::Error) -> CliError {
    CliError::usage(format!("the server returned an unexpected response: {error}"))
}

async fn revoke(provider: &str, person: Option<&str>, context: &Context) -> Result<(), CliError> {
    let path = of_person(format!("/api/accounts/{}", segment(provider)), person);
    let data = context.request(Request::new(Method::DELETE, path)).await?;
    context.output.data(&data, |output| {
        output.note(&format!("revoked the account at `{provider}`"));
        Ok(())
    })
}
