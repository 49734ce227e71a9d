//! Probes whether an engine really confines processes on this machine, before the first tool runs.

use std::net::TcpListener;
use std::time::Duration;

use crate::command::{Command, Level, Limits};
use crate::ending::ExitReason;
use crate::error::SandboxError;
use crate::sandbox::Sandbox;
use crate::settings::EngineName;

/// The result of one probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    /// The name of the probe.
    pub name: &'static str,
    /// The failure; `None` where the probe passed.
    pub failure: Option<String>,
}

/// The results of all probes of an engine.
#[derive(Debug, Clone)]
pub struct ProbeReport {
    /// The engine.
    pub engine: EngineName,
    /// The probes.
    pub probes: Vec<Probe>,
}

impl ProbeReport {
    /// Returns whether all probes passed.
    pub fn passed(&self) -> bool {
        self.probes.iter().all(|probe| probe.failure.is_none())
    }

    /// Returns the first failure.
    pub fn reason(&self) -> Option<String> {
        let failed = self.probes.iter().find_map(|probe| Some((probe.name, probe.failure.as_ref()?)));
        failed.map(|(name, failure)| format!("self-test `{name}` failed: {failure}"))
    }

    pub(crate) fn check(&self, engine: EngineName) -> Result<(), SandboxError> {
        match self.reason() {
            Some(reason) => Err(SandboxError::Unavailable { engine, reason }),
            None => Ok(()),
        }
    }
}

/// A probe prints this before its attempt.
const ATTEMPT: &str = "attempt";
/// A probe prints this if the sandbox did not stop it.
const ESCAPED: &str = "escaped";

/// The engine to probe, and its image.
#[derive(Clone, Copy)]
pub(crate) struct ProbeTarget<'a> {
    pub(crate) sandbox: &'a Sandbox,
    pub(crate) engine: EngineName,
    pub(crate) image: Option<&'a str>,
}

/// Runs all probes concurrently.
pub(crate) async fn probe_all(target: ProbeTarget<'_>) -> ProbeReport {
    let engine = target.engine;
    let starts = match run(target, Level::Isolated, "echo started").await {
        Ok((ExitReason::Exited(0), output)) if output.trim() == "started" => None,
        Ok((ExitReason::Exited(code), output)) => {
            Some(format!("exit code {code}, output `{}`", output.trim()))
        }
        Ok((ending, _)) => Some(format!("the program ended early: {ending:?}")),
        Err(error) => Some(error_message(&error)),
    };
    let mut probes = vec![Probe { name: "programs start", failure: starts }];
    if probes.iter().all(|probe| probe.failure.is_none()) {
        probes.extend(Box::pin(attacks(target)).await);
    }
    let report = ProbeReport { engine, probes };
    match report.reason() {
        None => tracing::debug!(%engine, limits = target.sandbox.limiter(), "sandbox probes passed"),
        Some(reason) => {
            tracing::warn!(%engine, reason, "sandbox probes failed; tools that need this engine are rejected");
        }
    }
    report
}

async fn attacks(target: ProbeTarget<'_>) -> Vec<Probe> {
    let scratch = &target.sandbox.settings().scratch;
    let (secret, written) = (scratch.join("self-test"), scratch.join("self-test-written"));
    if let Err(error) = std::fs::write(&secret, ESCAPED) {
        let failure = Some(format!("failed to write the probe file: {error}"));
        return vec![Probe { name: "files outside are hidden", failure }];
    }
    let (listener, network) = network_script();
    let outside = format!("cat {}", quoted(&secret.to_string_lossy()));
    let writing = write_script(&written.to_string_lossy());
    let isolated = |name, script| probe(target, name, Level::Isolated, script);
    let host = |name, script| probe(target, name, Level::Host, script);
    let (network_refused, outside_refused, writing_refused, forks, memory) = tokio::join!(
        isolated("no network", &network),
        isolated("files outside are hidden", &outside),
        isolated("no writing outside", &writing),
        isolated("process limit", FORKS),
        isolated("memory limit", MEMORY),
    );
    let mut probes = vec![network_refused, outside_refused, writing_refused, forks, memory];
    // `Level::Host` never runs in containers.
    if matches!(target.engine, EngineName::Bubblewrap | EngineName::Landlock) {
        let (network_refused, hidden) = tokio::join!(
            host("no network with `sandbox: false`", &network),
            host("home folder hidden with `sandbox: false`", &outside),
        );
        probes.extend([network_refused, hidden]);
    }
    drop(listener);
    if std::fs::remove_file(&written).is_ok() {
        probes.push(Probe {
            name: "no writing outside",
            failure: Some("a file outside was written".to_owned()),
        });
    }
    drop(std::fs::remove_file(&secret));
    probes
}

/// Starts far more processes than the limit of the probe. Where rlimits count all processes of a user, those that end in
/// the meantime make room for others.
const FORKS: &str = "i=0; while [ $i -lt 500 ]; do sleep 2 & i=$((i+1)); done; echo escaped";
/// Allocates more memory than the limit of the probe.
const MEMORY: &str = "dd if=/dev/zero of=/dev/null bs=256M count=1 && echo escaped";

/// Returns a listener on loopback, and a script that connects to it.
fn network_script() -> (Option<TcpListener>, String) {
    let listener = TcpListener::bind("127.0.0.1:0").ok();
    let port =
        listener.as_ref().and_then(|listener| listener.local_addr().ok()).map_or(1, |address| address.port());
    (listener, format!("bash -c 'exec 3<>/dev/tcp/127.0.0.1/{port}' && echo {ESCAPED}"))
}

fn write_script(path: &str) -> String {
    let usr = "/usr/haft-self-test";
    format!("echo x > {usr} && rm {usr} && echo {ESCAPED}; echo x > {}", quoted(path))
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Attempts something that has to fail. A probe fails if it does not reach its attempt.
async fn probe(target: ProbeTarget<'_>, name: &'static str, level: Level, script: &str) -> Probe {
    let script = format!("echo {ATTEMPT}; exec 2>/dev/null; {script}");
    let failure = match run(target, level, &script).await {
        Err(error) => Some(error_message(&error)),
        Ok((_, output)) if output.contains(ESCAPED) => Some("the sandbox did not prevent it".to_owned()),
        Ok((ending, output)) if !output.starts_with(ATTEMPT) => {
            Some(format!("the probe did not run: {ending:?}"))
        }
        Ok(_) => None,
    };
    Probe { name, failure }
}

/// Returns the message of an error with its cause.
fn error_message(error: &SandboxError) -> String {
    use std::error::Error as _;
    match error {
        SandboxError::Unavailable { reason, .. } => reason.clone(),
        SandboxError::Engine { message, .. } => message.clone(),
        other => other.source().map_or(other.to_string(), |source| format!("{other}: {source}")),
    }
}

async fn run(
    target: ProbeTarget<'_>,
    level: Level,
    script: &str,
) -> Result<(ExitReason, String), SandboxError> {
    let place = target.sandbox.place(level, Some(target.engine))?;
    let mut command = Command::new(place, ["sh", "-c", script]).env("PATH", "/usr/bin:/bin");
    command.image = target.image.map(str::to_owned);
    command.limits =
        Limits { wall: Duration::from_secs(10), processes: 16, memory: 64 << 20, ..Limits::default() };
    let finished = target.sandbox.run_unprobed(command, &mut |_, _| {}).await?;
    Ok((finished.ending, finished.stdout.text().into_owned()))
}
