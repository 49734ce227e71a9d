//! `haft serve`: starts the server.

use std::future::Future;
use std::io::IsTerminal as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use haft_core::runnable::Mode;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;

use crate::config::Flags;
use crate::context::Context;
use crate::engine::Engine;
use crate::error::CliError;
use crate::logging;
use crate::server_file::{ServerFile, connect_addr};

/// How long to wait for a connection to another server.
const PROBE_TIMEOUT: Duration = Duration::from_millis(500);

/// The shortest `HAFT_TOKEN` of a server that other machines can reach: it is an admin's password.
const MIN_TOKEN_LENGTH: usize = 32;

/// Start the server
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Address to listen on [env: `HAFT_ADDR`] [default: 127.0.0.1:18789]
    #[arg(long, value_name = "HOST:PORT", value_parser = parse_addr)]
    addr: Option<SocketAddr>,
    /// Default mode of calls: `debug` or `production` [env: `HAFT_MODE`] [default: debug]
    #[arg(long, value_parser = super::tool::parse_mode)]
    mode: Option<Mode>,
}

fn parse_addr(text: &str) -> Result<SocketAddr, &'static str> {
    crate::config::parse_addr(text).ok_or("expected an IP address with a port, e.g. `127.0.0.1:18789`")
}

/// Runs the command.
pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<(), CliError> {
    let started = Instant::now();
    let flags = Flags { addr: arguments.addr, mode: arguments.mode, ..Flags::default() };
    let resolved = context.resolve_with(&flags)?;
    logging::start(&resolved.log, &context.output);
    for warning in &resolved.warnings {
        tracing::warn!("{warning}");
    }
    let settings = resolved.settings;
    let home = settings.home.clone();
    // A second server would overwrite `server.json`, and commands would no longer find the first.
    if let Some(other) = ServerFile::read(&home)
        && std::net::TcpStream::connect_timeout(&other.connect_addr(), PROBE_TIMEOUT).is_ok()
    {
        return Err(CliError::AlreadyServing { home, addr: other.addr });
    }
    let addr = settings.addr;
    if let Some(token) = settings.token.as_ref().filter(|_| !addr.ip().is_loopback()) {
        let (length, minimum) = (token.expose().chars().count(), MIN_TOKEN_LENGTH);
        if length < minimum {
            return Err(CliError::ShortToken { length, minimum });
        }
    }
    // Binds first, so that an address in use has no side effects.
    let listener = TcpListener::bind(addr).await.map_err(|source| CliError::Listen { addr, source })?;
    let addr = listener.local_addr().map_err(|source| CliError::Listen { addr, source })?;
    let engine = Engine::open_with_free_space(settings).await?;
    let file = ServerFile::write(&home, addr).map_err(CliError::io("write `server.json`"))?;
    let file = Arc::new(file);
    let file_on_exit = Arc::clone(&file);
    let stop = stop_signal(move || file_on_exit.remove()).map_err(CliError::io("listen for signals"))?;
    // `0.0.0.0` is an address to listen on, not one to connect to.
    let connect_addr = connect_addr(addr);
    // The link logs an admin in: print it only to a terminal, not to a log.
    let tokens = home.join("tokens");
    let (login, shown) = if std::io::stdout().is_terminal() {
        let login = engine.login_link(connect_addr).await?.expose().to_owned();
        let shown = format!("{login}\n  token    in `{}`", tokens.display());
        (login, shown)
    } else {
        let page = format!("http://{connect_addr}/login");
        let shown = format!("{page} with the token in `{}`", tokens.display());
        (page, shown)
    };
    let address = format!("http://{connect_addr}");
    let data = json!({"address": address, "login": login, "tokens": tokens, "home": home, "addr": addr});
    context.output.data(&data, |output| {
        output.line(&format!(
            "haft {} is ready after {:.2} s\n\n  address  {address}\n  login    {shown}\n  home     {}\n",
            env!("CARGO_PKG_VERSION"),
            started.elapsed().as_secs_f64(),
            home.display(),
        ))
    })?;
    if let Ok(target) = context.target()
        && target.context().is_some()
        && let Some(remote) = target.remote()
    {
        let hint = "`haft context use local` selects the home folder of this machine";
        context.output.note(&format!("other commands do not use this server, but {remote}; {hint}"));
    }
    if !addr.ip().is_loopback() {
        context.output.warn(&format!(
            "other machines can reach this server at {addr}, over unencrypted http; put a reverse proxy with TLS in \
             front of it, or listen on `127.0.0.1`"
        ));
    }
    let served = engine.serve(listener, stop).await.map_err(CliError::io("serve"));
    file.remove();
    served
}

/// Returns a future that completes at the first stop signal; the second one runs `cleanup` and exits at once.
pub(super) fn stop_signal(
    cleanup: impl FnOnce() + Send + 'static,
) -> std::io::Result<impl Future<Output = ()> + Send + 'static> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let (sender, receiver) = oneshot::channel();
    tokio::spawn(async move {
        either(&mut interrupt, &mut terminate).await;
        tracing::info!("shutting down: waiting for running calls; a second signal stops immediately");
        let _ = sender.send(());
        let code = either(&mut interrupt, &mut terminate).await;
        cleanup();
        exit_now(code);
    });
    Ok(async move {
        let _ = receiver.await;
    })
}

/// Waits for a signal and returns its exit code.
async fn either(interrupt: &mut Signal, terminate: &mut Signal) -> i32 {
    tokio::select! {
        _ = interrupt.recv() => 130,
        _ = terminate.recv() => 143,
    }
}

#[expect(clippy::disallowed_methods, reason = "the second signal; nothing may delay the exit")]
fn exit_now(code: i32) -> ! {
    std::process::exit(code)
}
