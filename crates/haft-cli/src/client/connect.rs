//! Connects to a running server, or opens the home folder.

use std::path::Path;
use std::sync::Once;
use std::time::Duration;

use haft_core::secret::Secret;
use url::Url;

use super::transport::Client;
use crate::config::ConfigError;
use crate::context::Context;
use crate::contexts::StoredContext;
use crate::engine::Engine;
use crate::error::CliError;
use crate::logging;
use crate::progress::Progress;
use crate::server_file::ServerFile;
use crate::server_url::{is_loopback, is_readable_by_others, unencrypted};
use crate::target::Target;

/// How long to wait for a running server to respond; a busy machine needs seconds.
const PROBE_TIMEOUT: Duration = Duration::from_secs(15);
/// How long a request may take.
const REQUEST_TIMEOUT: Duration = Duration::from_hours(1);

/// Connects to the configured or running server, otherwise opens the home folder.
pub(crate) async fn connect(context: &Context) -> Result<Client, CliError> {
    let progress = Progress::new(&context.output);
    let client = if let Some((base, token)) = server(context).await? {
        Client::http(http_client(&base)?, base, token)
    } else {
        let opened = async { Ok::<_, CliError>(Client::local(open(context).await?).await) };
        progress.during("opening the home folder", opened).await?
    };
    Ok(client.with_progress(progress))
}

/// Connects to a server with a token that is not stored yet.
pub(crate) fn connect_to(base: &Url, token: &Secret) -> Result<Client, CliError> {
    Ok(Client::http(http_client(base)?, base.clone(), token.clone()))
}

/// Connects to the configured or running server, if there is one. The home folder is never opened: that may migrate its
/// database.
pub(crate) async fn connect_to_server(context: &Context) -> Result<Option<Client>, CliError> {
    let Some((base, token)) = server(context).await? else { return Ok(None) };
    Ok(Some(Client::http(http_client(&base)?, base, token)))
}

/// Returns the configured or running server, and the token for it.
pub(crate) async fn server(context: &Context) -> Result<Option<(Url, Secret)>, CliError> {
    match context.target()? {
        Target::Server(base) => {
            let token = configured_server_token(context, &base)?;
            warn_if_readable(context, &base);
            return Ok(Some((base, token)));
        }
        Target::Context(stored, _) => {
            let StoredContext { server, token, .. } = *stored;
            // `HAFT_TOKEN` may be the admin token of a server on this machine, which is not for others.
            return Ok(Some((server, context.token_option().unwrap_or(token))));
        }
        Target::Home => {}
    }
    let home = context.home()?;
    let Some(base) = find_server(&home, PROBE_TIMEOUT).await? else { return Ok(None) };
    let token = context.token().or_else(|| home_token(&home));
    let token = token.ok_or_else(|| CliError::NoToken(base.to_string()))?;
    Ok(Some((base, token)))
}

/// Warns once if others on the network can read the token. It is no error: the person has named the server and the token
/// for this command, and the network may be trusted.
fn warn_if_readable(context: &Context, base: &Url) {
    static WARNED: Once = Once::new();
    if is_readable_by_others(base) {
        WARNED.call_once(|| context.output.warn(&unencrypted(base)));
    }
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

/// Returns the running server of a home folder.
pub(crate) async fn running_server(home: &Path) -> Result<Option<Url>, CliError> {
    find_server(home, PROBE_TIMEOUT).await
}

/// Returns the server in `server.json`, if it responds. A server that accepts connections but does not respond in time is
/// an error: if the command opened the home folder itself, the server would not see its changes.
async fn find_server(home: &Path, timeout: Duration) -> Result<Option<Url>, CliError> {
    let Some(file) = ServerFile::read(home) else { return Ok(None) };
    let Ok(base) = Url::parse(&format!("http://{}", file.connect_addr())) else { return Ok(None) };
    let Ok(probe) = base.join("healthz") else { return Ok(None) };
    match http_client(&base)?.get(probe).timeout(timeout).send().await {
        Ok(response) => Ok(response.status().is_success().then_some(base)),
        Err(error) if error.is_timeout() && !error.is_connect() => {
            Err(CliError::unreachable(&base, error.into()))
        }
        Err(_) => Ok(None),
    }
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

/// Reads the local admin token in the home folder.
fn home_token(home: &Path) -> Option<Secret> {
    let text = std::fs::read_to_string(home.join("tokens")).ok()?;
    let line = text.lines().next()?.trim();
    (!line.is_empty()).then(|| Secret::new(line.to_owned()))
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;

    use super::*;

    const TIMEOUT: Duration = Duration::from_millis(300);

    /// Returns the result of connecting to the address in `server.json`.
    async fn found(listener: &TcpListener) -> Result<Option<Url>, CliError> {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let home = tempfile::tempdir().unwrap();
        let _file = ServerFile::write(home.path(), listener.local_addr().unwrap()).unwrap();
        find_server(home.path(), TIMEOUT).await
    }

    #[tokio::test]
    async fn a_server_that_is_too_busy_to_respond_is_not_taken_for_none() {
        // The kernel accepts connections, but nothing responds.
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        assert!(matches!(found(&listener).await, Err(CliError::Unreachable { .. })));
    }

    #[tokio::test]
    async fn a_server_that_responds_is_used_and_another_program_is_not() {
        for (status, expected) in [("200 OK", true), ("404 Not Found", false)] {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let program = listener.try_clone().unwrap();
            let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n");
            let serving = std::thread::spawn(move || {
                let (mut connection, _) = program.accept().unwrap();
                assert!(connection.read(&mut [0; 1024]).unwrap() > 0);
                connection.write_all(answer.as_bytes()).unwrap();
            });
            assert_eq!(found(&listener).await.unwrap().is_some(), expected, "{status}");
            serving.join().unwrap();
        }
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let home = tempfile::tempdir().unwrap();
        let _file = ServerFile::write(home.path(), listener.local_addr().unwrap()).unwrap();
        drop(listener);
        assert!(find_server(home.path(), TIMEOUT).await.unwrap().is_none(), "nobody listens");
    }
}
