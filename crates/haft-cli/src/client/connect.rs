//! Finds a running server, or opens the home folder.

use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use haft_core::secret::Secret;
use url::{Host, Url};

use super::transport::Client;
use crate::context::Context;
use crate::engine::Engine;
use crate::error::CliError;
use crate::logging;
use crate::server_file::ServerFile;

/// How long a server that is there may take to say so.
const GREETING: Duration = Duration::from_secs(2);
/// No call takes longer.
const MAX_LENGTH: Duration = Duration::from_hours(1);

/// Connects to the server that is named or running, else opens the home folder.
pub(crate) async fn connect(context: &Context) -> Result<Client, CliError> {
    match server(context).await? {
        Some((base, token)) => Ok(Client::http(http_client(&base)?, base, token)),
        None => Ok(Client::local(open(context).await?).await),
    }
}

/// Returns the server that is named or running, and the token for it.
pub(crate) async fn server(context: &Context) -> Result<Option<(Url, Secret)>, CliError> {
    if let Some(base) = context.server()? {
        let token = named_server_token(context, &base)?;
        return Ok(Some((base, token)));
    }
    let home = context.home()?;
    let Some(base) = find_server(&home).await else { return Ok(None) };
    let token = context.token().or_else(|| home_token(&home));
    let token = token.ok_or_else(|| CliError::NoToken(base.to_string()))?;
    Ok(Some((base, token)))
}

/// Opens the home folder.
pub(crate) async fn open(context: &Context) -> Result<Engine, CliError> {
    let resolved = context.resolve()?;
    logging::start(&context.quiet(resolved.log), &context.output);
    for warning in &resolved.warnings {
        context.output.warn(warning);
    }
    Engine::open(resolved.settings).await
}

/// Returns the server that `server.json` names, if it answers.
pub(crate) async fn find_server(home: &Path) -> Option<Url> {
    let file = ServerFile::read(home)?;
    let base = Url::parse(&format!("http://{}", file.connect_addr())).ok()?;
    let client = http_client(&base).ok()?;
    let answer = client.get(base.join("/healthz").ok()?).timeout(GREETING).send().await.ok()?;
    answer.status().is_success().then_some(base)
}

fn http_client(base: &Url) -> Result<reqwest::Client, CliError> {
    build(base, reqwest::Client::builder().timeout(MAX_LENGTH))
}

/// Makes a client for a connection that stays open.
pub(crate) fn pipe_client(base: &Url) -> Result<reqwest::Client, CliError> {
    // Only this version lets a connection be taken over.
    build(base, reqwest::Client::builder().http1_only())
}

fn build(base: &Url, builder: reqwest::ClientBuilder) -> Result<reqwest::Client, CliError> {
    let builder = builder.connect_timeout(Duration::from_secs(5)).redirect(reqwest::redirect::Policy::none());
    // A proxy could not reach our loopback, and should not see the token.
    let builder = if is_loopback(base) { builder.no_proxy() } else { builder };
    let failed =
        |error: reqwest::Error| CliError::Unreachable { url: base.to_string(), source: error.into() };
    builder.build().map_err(failed)
}

/// The token of the home folder opens the server of this machine; another machine must not get it.
fn named_server_token(context: &Context, base: &Url) -> Result<Secret, CliError> {
    let own = || is_loopback(base).then(|| context.home().ok().and_then(|home| home_token(&home))).flatten();
    context.token().or_else(own).ok_or_else(|| CliError::NoToken(base.to_string()))
}

fn is_loopback(base: &Url) -> bool {
    match base.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(ip)) => IpAddr::V4(ip).is_loopback(),
        Some(Host::Ipv6(ip)) => IpAddr::V6(ip).is_loopback(),
        None => false,
    }
}

/// Reads the admin token that the server keeps in the home folder.
fn home_token(home: &Path) -> Option<Secret> {
    let text = std::fs::read_to_string(home.join("tokens")).ok()?;
    let line = text.lines().next()?.trim();
    (!line.is_empty()).then(|| Secret::new(line.to_owned()))
}
