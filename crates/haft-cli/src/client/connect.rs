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
const LONGEST: Duration = Duration::from_hours(1);

/// A server that answers.
pub(crate) struct Reach {
    /// Its address.
    pub(crate) base: Url,
    client: reqwest::Client,
}

/// Connects to the server that is named or running, else opens the home folder.
pub(crate) async fn connect(context: &Context) -> Result<Client, CliError> {
    if let Some(base) = context.server()? {
        let token = named_server_token(context, &base)?;
        return Ok(Client::http(http_client(&base)?, base, token));
    }
    let home = context.home()?;
    if let Some(reach) = find_server(&home).await {
        let token = context.token().or_else(|| home_token(&home));
        let token = token.ok_or_else(|| CliError::NoToken(reach.base.to_string()))?;
        return Ok(Client::http(reach.client, reach.base, token));
    }
    let resolved = context.resolve()?;
    logging::start(&context.quiet(resolved.log), &context.output);
    for warning in &resolved.warnings {
        context.output.warn(warning);
    }
    Ok(Client::local(Engine::open(resolved.settings).await?).await)
}

/// Returns the server that `server.json` names, if it answers.
pub(crate) async fn find_server(home: &Path) -> Option<Reach> {
    let file = ServerFile::read(home)?;
    let base = Url::parse(&format!("http://{}", file.connect_addr())).ok()?;
    let client = http_client(&base).ok()?;
    let answer = client.get(base.join("/healthz").ok()?).timeout(GREETING).send().await.ok()?;
    answer.status().is_success().then_some(Reach { base, client })
}

fn http_client(base: &Url) -> Result<reqwest::Client, CliError> {
    let builder = reqwest::Client::builder()
        .connect_timeout(Duration::from_secs(5))
        .timeout(LONGEST)
        .redirect(reqwest::redirect::Policy::none());
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
