//! Servers that are programs: started confined, spoken to by their standard input and output.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use haft_core::mcp::Stdio;
use haft_sandbox::{Bind, Command, Input, Level, Limits, Running, Sandbox, SandboxError, StdinHandle};
use haft_template::EscapeContext as TextPlace;
use rmcp::RoleClient;
use rmcp::transport::async_rw::AsyncRwTransport;
use tokio::process::{ChildStdin, ChildStdout};

use super::filled::{Filler, Scrubber};
use super::overlong::{Overlong, Strange};
use super::pace::Paced;
use super::patient::Patient;
use super::stderr::Tail;

/// The longest message that is taken from a server.
pub(super) const MAX_MESSAGE: usize = 16 << 20;

/// Where programs are found.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// What a server may use. It lives long, so its time on processors is not bounded; its memory is.
fn limits() -> Limits {
    Limits {
        cpu: Duration::from_hours(24 * 365),
        memory: 2 << 30,
        processes: 256,
        file_size: 1 << 30,
        open_files: 4096,
        ..Limits::default()
    }
}

/// A server that runs. Dropping it ends it, with all that it started.
pub(super) struct Program {
    pub(super) transport: Paced<Patient<AsyncRwTransport<RoleClient, Overlong<ChildStdout>, ChildStdin>>>,
    pub(super) running: Running,
}

/// Starts a server.
pub(super) async fn start(
    sandbox: &Sandbox,
    program: &Stdio,
    mut filler: Filler<'_>,
    tail: &Tail,
) -> Result<(Program, Scrubber), String> {
    let mut argv = vec![filler.fill("command", &program.command, TextPlace::Text).await?];
    for (number, text) in program.args.iter().enumerate() {
        argv.push(filler.fill(&format!("args[{number}]"), text, TextPlace::Text).await?);
    }
    let level = if program.sandbox { Level::Isolated } else { Level::Host };
    let place = sandbox.place(level, None).map_err(|error| told(&error))?;
    let home = place.work().to_owned();
    let mut command = Command::new(place, argv).env("PATH", PATH).env("LANG", "C.UTF-8").env("HOME", home);
    for (name, text) in &program.env {
        let value = filler.fill(&format!("env.{name}"), text, TextPlace::Text).await?;
        command.env.retain(|(known, _)| known != name.as_str());
        command = command.env(name, value);
    }
    if let Some(cwd) = &program.cwd {
        let cwd = filler.fill("cwd", cwd, TextPlace::Text).await?;
        if program.sandbox {
            command.binds.push(Bind::writable(&cwd, &cwd));
        }
        command.directory = Some(cwd.into());
    }
    command.network = program.network;
    command.limits = limits();
    command.input = Input::Pipe;
    let scrubber = filler.scrubber();
    let mut running = sandbox.start(command).await.map_err(|error| scrubber.clean(told(&error)))?;
    let (Some(StdinHandle::Pipe(stdin)), Some(stdout), Some(stderr)) =
        (running.stdin.take(), running.stdout.take(), running.stderr.take())
    else {
        return Err("the sandbox gave no pipes".to_owned());
    };
    tokio::spawn(tail.clone().follow(stderr, scrubber.clone()));
    let stdout = Overlong::new(stdout, MAX_MESSAGE).telling(strange(tail.clone(), scrubber.clone()));
    let bytes = Arc::clone(&stdout.bytes);
    let transport = AsyncRwTransport::new_client(stdout, stdin).with_max_line_length(MAX_MESSAGE);
    let transport = Paced::new(Patient::new(transport), bytes);
    Ok((Program { transport, running }, scrubber))
}

/// Keeps lines of the standard output that are no messages with those of the standard error: there people look.
fn strange(tail: Tail, scrubber: Scrubber) -> Strange {
    let is_told = AtomicBool::new(false);
    Box::new(move |line| {
        if !is_told.swap(true, Ordering::Relaxed) {
            tracing::warn!("an MCP server writes to its standard output what is no message; it is left out");
        }
        tail.push(&[b"(no message) ", line.trim_ascii()].concat(), &scrubber);
    })
}

fn told(error: &SandboxError) -> String {
    use std::error::Error as _;
    error.source().map_or(error.to_string(), |source| format!("{error}: {source}"))
}
