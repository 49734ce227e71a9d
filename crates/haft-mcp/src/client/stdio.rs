//! Stdio servers: programs that run in the sandbox and exchange messages over standard input and output.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use haft_core::mcp::Stdio;
use haft_core::name::TenantId;
use haft_core::workspace::WorkspaceFolder;
use haft_sandbox::{
    Bind, Command, EngineName, Input, Level, Limits, Running, Sandbox, SandboxError, StdinHandle,
};
use haft_template::EscapeContext;
use rmcp::RoleClient;
use rmcp::transport::async_rw::AsyncRwTransport;
use tokio::process::{ChildStdin, ChildStdout};

use super::config::{ConfigRenderer, Scrubber};
use super::handler::NotificationHandler;
use super::line_limit::{LineLimiter, UnexpectedLineHandler};
use super::rate_limit::RateLimited;
use super::stderr::StderrTail;

/// The search path of programs.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Where a sandboxed program sees its workspace, and the variable with the path, as for other tools.
const WORKSPACE: &str = "/workspace";
const WORKSPACE_VARIABLE: &str = "HAFT_WORKSPACE";

/// Resource limits of a server. CPU time is unlimited, because a server runs for long.
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

/// A running server. Dropping it kills the program and its children.
pub(super) struct Program {
    pub(super) transport: RateLimited<AsyncRwTransport<RoleClient, LineLimiter<ChildStdout>, ChildStdin>>,
    pub(super) running: Running,
}

/// Returns how a program of a tenant runs. Host files belong to the default tenant: the programs of others are always
/// sandboxed, and have no folder of the host.
pub(super) fn confined(program: &Stdio, tenant: &TenantId) -> Result<Stdio, String> {
    if tenant.is_default() {
        return Ok(program.clone());
    }
    if program.cwd.is_some() {
        return Err(format!("`cwd` is not available to the tenant `{tenant}`; remove it"));
    }
    Ok(Stdio { sandbox: true, ..program.clone() })
}

/// How a server is started.
pub(super) struct StartOptions<'a> {
    /// Collects its standard error.
    pub(super) tail: &'a StderrTail,
    /// Handles its notifications.
    pub(super) handler: &'a NotificationHandler,
    /// The largest message.
    pub(super) max_message_bytes: usize,
    /// The workspace that it works in.
    pub(super) workspace: Option<&'a WorkspaceFolder>,
}

/// Starts a server.
pub(super) async fn start(
    sandbox: &Sandbox,
    program: &Stdio,
    mut renderer: ConfigRenderer<'_>,
    options: StartOptions<'_>,
) -> Result<(Program, Scrubber), String> {
    let StartOptions { tail, handler, max_message_bytes, workspace } = options;
    let mut argv = vec![renderer.render("command", &program.command, EscapeContext::Text).await?];
    for (number, text) in program.args.iter().enumerate() {
        argv.push(renderer.render(&format!("args[{number}]"), text, EscapeContext::Text).await?);
    }
    let level = if program.sandbox { Level::Isolated } else { Level::Host };
    let root = sandbox.place(level, None).map_err(|error| sandbox_message(&error))?;
    let home = root.work().to_owned();
    let bind = workspace.map(workspace_bind);
    let folder = bind.as_ref().map(|bind| root.seen_at(bind).to_owned());
    let mut command = Command::new(root, argv).env("PATH", PATH).env("LANG", "C.UTF-8").env("HOME", home);
    for (name, text) in &program.env {
        let value = renderer.render(&format!("env.{name}"), text, EscapeContext::Text).await?;
        command.env.retain(|(known, _)| known != name.as_str());
        command = command.env(name, value);
    }
    if let Some(cwd) = &program.cwd {
        let cwd = renderer.render("cwd", cwd, EscapeContext::Text).await?;
        if program.sandbox {
            command.binds.push(Bind::writable(&cwd, &cwd));
        }
        command.directory = Some(cwd.into());
    }
    command.binds.extend(bind);
    if let Some(folder) = folder {
        command = command.env(WORKSPACE_VARIABLE, &folder);
        command.directory = Some(folder);
    }
    command.network = program.network;
    command.limits = limits();
    command.input = Input::Pipe;
    let scrubber = renderer.scrubber();
    let mut running = sandbox.start(command).await.map_err(|error| match error {
        SandboxError::MissingProgram(name) => scrubber.clean(program_not_found(program, &name)),
        error => scrubber.clean(sandbox_message(&error)),
    })?;
    let (Some(StdinHandle::Pipe(stdin)), Some(stdout), Some(stderr)) =
        (running.stdin.take(), running.stdout.take(), running.stderr.take())
    else {
        return Err("the sandbox returned no pipes".to_owned());
    };
    tokio::spawn(tail.clone().follow(stderr, scrubber.clone()));
    let stdout = LineLimiter::new(stdout, max_message_bytes)
        .with_handler(unexpected_lines(tail.clone(), scrubber.clone()));
    let bytes = Arc::clone(&stdout.bytes);
    let transport = AsyncRwTransport::new_client(stdout, stdin).with_max_line_length(max_message_bytes);
    let transport = RateLimited::new(transport, bytes, handler.clone());
    Ok((Program { transport, running }, scrubber))
}

fn workspace_bind(workspace: &WorkspaceFolder) -> Bind {
    if workspace.read_only {
        Bind::read_only(&workspace.path, WORKSPACE)
    } else {
        Bind::writable(&workspace.path, WORKSPACE)
    }
}

/// Collects lines of standard output that are not messages with those of standard error.
fn unexpected_lines(tail: StderrTail, scrubber: Scrubber) -> UnexpectedLineHandler {
    let is_logged = AtomicBool::new(false);
    Box::new(move |line| {
        if !is_logged.swap(true, Ordering::Relaxed) {
            tracing::warn!("an MCP server writes lines to stdout that are not messages; they are ignored");
        }
        tail.push(&[b"(stdout) ", line.trim_ascii()].concat(), &scrubber);
    })
}

/// Returns the message for a program that does not exist, which bubblewrap reports only on standard error.
pub(super) fn missing_program(program: &Stdio, stderr: &[String]) -> Option<String> {
    let line = stderr.iter().rev().find(|line| line.starts_with("bwrap: execvp "))?;
    let unexplained = SandboxError::Engine { engine: EngineName::Bubblewrap, message: String::new() };
    match unexplained.explained(line) {
        SandboxError::MissingProgram(name) => Some(program_not_found(program, &name)),
        _ => None,
    }
}

fn program_not_found(program: &Stdio, name: &str) -> String {
    if name.contains('/') {
        let visible =
            if program.sandbox { "; its sandbox contains only system folders and `cwd`" } else { "" };
        return format!("program `{name}` not found{visible}");
    }
    let path = program.env.get("PATH").map_or(PATH, String::as_str);
    format!(
        "program `{name}` not found in `{path}`; install it, pass its absolute path, or set `PATH` in `env`"
    )
}

fn sandbox_message(error: &SandboxError) -> String {
    use std::error::Error as _;
    error.source().map_or(error.to_string(), |source| format!("{error}: {source}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_of_other_tenants_are_sandboxed_without_host_folders() {
        let [default, acme] = ["default", "acme"].map(|id| TenantId::new(id).unwrap());
        let program = Stdio { cwd: Some("/srv".to_owned()), ..Stdio::default() };
        assert_eq!(confined(&program, &default).as_ref(), Ok(&program));
        assert!(confined(&program, &acme).is_err());
        let program = Stdio::default();
        assert!(!program.sandbox && confined(&program, &acme).unwrap().sandbox);
    }
}
