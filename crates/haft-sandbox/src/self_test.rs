//! Whether an engine confines on this machine: real probes, before the first tool runs.

use std::net::TcpListener;
use std::time::Duration;

use crate::command::{Command, Level, Limits};
use crate::ending::Ending;
use crate::error::SandboxError;
use crate::sandbox::Sandbox;
use crate::settings::EngineName;

/// What one probe found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    /// What was tried.
    pub name: &'static str,
    /// `None` where the engine held; else what happened.
    pub failure: Option<String>,
}

/// What all probes found about an engine.
#[derive(Debug, Clone)]
pub struct Verdict {
    /// The engine.
    pub engine: EngineName,
    /// Each probe.
    pub probes: Vec<Probe>,
}

impl Verdict {
    /// Tells whether the engine may serve.
    pub fn holds(&self) -> bool {
        self.probes.iter().all(|probe| probe.failure.is_none())
    }

    /// Says why the engine may not serve.
    pub fn reason(&self) -> Option<String> {
        let failed = self.probes.iter().find_map(|probe| Some((probe.name, probe.failure.as_ref()?)));
        failed.map(|(name, failure)| format!("{name}: {failure}"))
    }

    pub(crate) fn check(&self, engine: EngineName) -> Result<(), SandboxError> {
        match self.reason() {
            Some(reason) => Err(SandboxError::Unavailable { engine, reason }),
            None => Ok(()),
        }
    }
}

/// What a probe prints when it got through.
const THROUGH: &str = "got through";

/// Runs the probes at once.
pub(crate) async fn examine(sandbox: &Sandbox, engine: EngineName) -> Verdict {
    let starts =
        probe(sandbox, engine, "starts a program", "echo started", Expected::Output("started")).await;
    let probes = if starts.failure.is_some() {
        vec![starts]
    } else {
        let (network, outside, writes) = (network_script(), outside_script(sandbox), write_script(sandbox));
        let refused = Expected::Refusal;
        let (network, outside, writes, forks, memory) = tokio::join!(
            probe(sandbox, engine, "network refused", &network.1, refused),
            probe(sandbox, engine, "file outside refused", &outside, refused),
            probe(sandbox, engine, "writing outside refused", &writes, refused),
            probe(sandbox, engine, "fork bomb stopped", FORKS, refused),
            probe(sandbox, engine, "memory stopped", MEMORY, refused),
        );
        vec![starts, network, outside, writes, forks, memory]
    };
    let verdict = Verdict { engine, probes };
    match verdict.reason() {
        None => tracing::info!(%engine, limits = sandbox.limiter(), "the sandbox holds"),
        Some(reason) => {
            tracing::warn!(%engine, reason, "the sandbox does not hold: tools that need it are refused");
        }
    }
    verdict
}

#[derive(Clone, Copy)]
enum Expected {
    Output(&'static str),
    Refusal,
}

/// A fork bomb with an end: far more processes than the probe is given. Where only all processes of a user can be
/// counted, those that end meanwhile make room for as many.
const FORKS: &str = "i=0; while [ $i -lt 500 ]; do sleep 2 & i=$((i+1)); done; echo got through";
/// A buffer larger than the probe's memory.
const MEMORY: &str = "dd if=/dev/zero of=/dev/null bs=256M count=1 2>/dev/null && echo got through";

/// A listener that a process with network would reach.
fn network_script() -> (Option<TcpListener>, String) {
    let listener = TcpListener::bind("127.0.0.1:0").ok();
    let port =
        listener.as_ref().and_then(|listener| listener.local_addr().ok()).map_or(1, |address| address.port());
    (listener, format!("exec 2>/dev/null; bash -c 'exec 3<>/dev/tcp/127.0.0.1/{port}' && echo {THROUGH}"))
}

/// The server's own folder, from which nothing may be read.
fn outside_script(sandbox: &Sandbox) -> String {
    let folder = sandbox.settings().scratch.join("self-test");
    drop(std::fs::write(&folder, THROUGH));
    format!("cat {} 2>/dev/null", quoted(&folder.to_string_lossy()))
}

fn write_script(sandbox: &Sandbox) -> String {
    let folder = sandbox.settings().scratch.join("self-test-written");
    let path = quoted(&folder.to_string_lossy());
    format!(
        "exec 2>/dev/null; echo x > {path}; echo x > /usr/haft-self-test && rm /usr/haft-self-test && echo {THROUGH}"
    )
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

async fn probe(
    sandbox: &Sandbox,
    engine: EngineName,
    name: &'static str,
    script: &str,
    expected: Expected,
) -> Probe {
    let failure = match (run(sandbox, engine, script).await, expected) {
        (Err(error), _) => Some(said(&error)),
        (Ok((_, output)), Expected::Output(wanted)) if output.trim() == wanted => None,
        (Ok((ending, output)), Expected::Output(_)) => Some(format!("{ending:?} {}", output.trim())),
        (Ok((_, output)), Expected::Refusal) => {
            output.contains(THROUGH).then(|| "it was not refused".to_owned())
        }
    };
    Probe { name, failure }
}

/// Returns an error with its cause.
fn said(error: &SandboxError) -> String {
    use std::error::Error as _;
    match error {
        SandboxError::Unavailable { reason, .. } => reason.clone(),
        SandboxError::Engine { message, .. } => message.clone(),
        other => other.source().map_or(other.to_string(), |source| format!("{other}: {source}")),
    }
}

async fn run(sandbox: &Sandbox, engine: EngineName, script: &str) -> Result<(Ending, String), SandboxError> {
    let place = sandbox.place(Level::Isolated, Some(engine))?;
    let mut command = Command::new(place, ["sh", "-c", script]).env("PATH", "/usr/bin:/bin");
    command.limits =
        Limits { wall: Duration::from_secs(10), processes: 16, memory: 64 << 20, ..Limits::default() };
    let finished = sandbox.run_unexamined(command, &mut |_, _| {}).await?;
    Ok((finished.ending, finished.stdout.text().into_owned()))
}
