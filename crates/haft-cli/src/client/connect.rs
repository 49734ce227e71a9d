//! Connects to a running server, or opens the home folder.

use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use haft_core::secret::Secret;
use url::{Host, Url};

use super::transport::Client;
use crate::config::ConfigError;
use crate::context::Context;
use crate::engine::Engine;
use crate::error::CliError;
use crate::logging;
use crate::server_file::ServerFile;

/// How long to wait for a running server to respond.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a request may take.
const REQUEST_TIMEOUT: Duration = Duration::from_hours(1);

/// Connects to the configured or running server, otherwise opens the home folder.
pub(crate) async fn connect(context: &Context) -> Result<Client, CliError> {
    match server(context).await? {
        Some((base, token)) => Ok(Client::http(http_client(&base)?, base, token)),
        None => Ok(Client::local(open(context).await?).await),
    }
}

/// Returns the configured or running server, and the token for it.
pub(crate) async fn server(context: &Context) -> Result<Option<(Url, Secret)>, CliError> {
    if let Some(base) = context.server()? {
        let token = configured_server_token(context, &base)?;
        return Ok(Some((base, token)));
    }
    let home = context.home()?;
    let Some(base) = find_server(&home).await else { return Ok(None) };
    let token = context.token().or_else(|| home_token(&home));
    let token = token.ok_or_else(|| CliError::NoToken(base.to_string()))?;
    Ok(Some((base, token)))
}

/// Opens the home folder, which must exist: a mistyped path must not become a second, empty installation.
pub(crate) async fn open(context: &Context) -> Result<Engine, CliError> {
    let home = context.home()?;
    if !home.exists() {
        return Err(ConfigError::HomeMissing(home).into());
    }
    let resolved = context.resolve()?;
    logging::start(&context.quiet(resolved.log), &context.output);
    for warning in &resolved.warnings {
        context.output.warn(warning);
    }
    Engine::open(resolved.settings).await
}

/// Returns the server in `server.json`, if it responds.
pub(crate) async fn find_server(home: &Path) -> Option<Url> {
    let file = ServerFile::read(home)?;
    let base = Url::parse(&format!("http://{}", file.connect_addr())).ok()?;
    let client = http_client(&base).ok()?;
    let response = client.get(base.join("/healthz").ok()?).timeout(PROBE_TIMEOUT).send().await.ok()?;
    response.status().is_success().then_some(base)
}

pub(super) fn http_client(base: &Url) -> Result<reqwest::Client, CliError> {
    build(base, reqwest::Client::builder().timeout(REQUEST_TIMEOUT))
}

/// Creates a client for an upgraded connection.
pub(crate) fn pipe_client(base: &Url) -> Result<reqwest::Client, CliError> {
    // Only HTTP/1.1 supports upgrades.
    build(base, reqwest::Client::builder().http1_only())
}

fn build(base: &Url, builder: reqwest::ClientBuilder) -> Result<reqwest::Client, CliError> {
    let builder = builder.connect_timeout(Duration::from_secs(5)).redirect(reqwest::redirect::Policy::none());
    // A proxy cannot reach our loopback address, and must not see the token.
    let builder = if is_loopback(base) { builder.no_proxy() } else { builder };
    builder.build().map_err(|error| CliError::unreachable(base, error.into()))
}

/// Returns the given token, otherwise the local token; that one is sent only to a server on this machine.
fn configured_server_token(context: &Context, base: &Url) -> Result<Secret, CliError> {
    let local =
        || is_loopback(base).then(|| context.home().ok().and_then(|home| home_token(&home))).flatten();
    context.token().or_else(local).ok_or_else(|| CliError::NoToken(base.to_string()))
}

fn is_loopback(base: &Url) -> bool {
    match base.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(ip)) => IpAddr::V4(ip).is_loopback(),
        Some(Host::Ipv6(ip)) => IpAddr::V6(ip).is_loopback(),
        None => false,
    }
}

/// Reads the local admin token in the home folder.
fn home_token(home: &Path) -> Option<Secret> {
    let text = std::fs::read_to_string(home.join("tokens")).ok()?;
    let line = text.lines().next()?.trim();
    (!line.is_empty()).then(|| Secret::new(line.to_owned()))
}
