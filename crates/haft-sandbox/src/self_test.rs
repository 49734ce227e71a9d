//! Whether an engine confines on this machine: real probes, before the first tool runs.

use std::net::TcpListener;
use std::time::Duration;

use crate::command::{Command, Level, Limits};
use crate::ending::ExitReason;
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
pub struct ProbeReport {
    /// The engine.
    pub engine: EngineName,
    /// Each probe.
    pub probes: Vec<Probe>,
}

impl ProbeReport {
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

/// What a probe prints before it tries, and when it got through.
const TRIES: &str = "tries";
const THROUGH: &str = "got through";

/// What is examined: an engine, and the image it runs.
#[derive(Clone, Copy)]
pub(crate) struct Subject<'a> {
    pub(crate) sandbox: &'a Sandbox,
    pub(crate) engine: EngineName,
    pub(crate) image: Option<&'a str>,
}

/// Runs the probes at once.
pub(crate) async fn examine(subject: Subject<'_>) -> ProbeReport {
    let engine = subject.engine;
    let starts = match run(subject, Level::Isolated, "echo started").await {
        Ok((ExitReason::Exited(0), output)) if output.trim() == "started" => None,
        Ok((ending, output)) => Some(format!("{ending:?} {}", output.trim())),
        Err(error) => Some(said(&error)),
    };
    let mut probes = vec![Probe { name: "starts a program", failure: starts }];
    if probes.iter().all(|probe| probe.failure.is_none()) {
        probes.extend(Box::pin(attacks(subject)).await);
    }
    let verdict = ProbeReport { engine, probes };
    match verdict.reason() {
        None => tracing::info!(%engine, limits = subject.sandbox.limiter(), "the sandbox holds"),
        Some(reason) => {
            tracing::warn!(%engine, reason, "the sandbox does not hold: tools that need it are refused");
        }
    }
    verdict
}

async fn attacks(subject: Subject<'_>) -> Vec<Probe> {
    let scratch = &subject.sandbox.settings().scratch;
    let (secret, written) = (scratch.join("self-test"), scratch.join("self-test-written"));
    if let Err(error) = std::fs::write(&secret, THROUGH) {
        let failure = Some(format!("the probe's file could not be written: {error}"));
        return vec![Probe { name: "file outside refused", failure }];
    }
    let (listener, network) = network_script();
    let outside = format!("cat {}", quoted(&secret.to_string_lossy()));
    let writing = write_script(&written.to_string_lossy());
    let isolated = |name, script| probe(subject, name, Level::Isolated, script);
    let host = |name, script| probe(subject, name, Level::Host, script);
    let (network_refused, outside_refused, writing_refused, forks, memory) = tokio::join!(
        isolated("network refused", &network),
        isolated("file outside refused", &outside),
        isolated("writing outside refused", &writing),
        isolated("fork bomb stopped", FORKS),
        isolated("memory stopped", MEMORY),
    );
    let mut probes = vec![network_refused, outside_refused, writing_refused, forks, memory];
    // Containers do not show the machine's files: another engine does that, and has a verdict of its own.
    if matches!(subject.engine, EngineName::Bubblewrap | EngineName::Landlock) {
        let (network_refused, hidden) = tokio::join!(
            host("network refused with `sandbox: false`", &network),
            host("the server's folder hidden with `sandbox: false`", &outside),
        );
        probes.extend([network_refused, hidden]);
    }
    drop(listener);
    if std::fs::remove_file(&written).is_ok() {
        probes
            .push(Probe { name: "writing outside refused", failure: Some("a file was written".to_owned()) });
    }
    drop(std::fs::remove_file(&secret));
    probes
}

/// A fork bomb with an end: far more processes than the probe is given. Where only all processes of a user can be
/// counted, those that end meanwhile make room for as many.
const FORKS: &str = "i=0; while [ $i -lt 500 ]; do sleep 2 & i=$((i+1)); done; echo got through";
/// A buffer larger than the probe's memory.
const MEMORY: &str = "dd if=/dev/zero of=/dev/null bs=256M count=1 && echo got through";

/// A listener that a process with network would reach.
fn network_script() -> (Option<TcpListener>, String) {
    let listener = TcpListener::bind("127.0.0.1:0").ok();
    let port =
        listener.as_ref().and_then(|listener| listener.local_addr().ok()).map_or(1, |address| address.port());
    (listener, format!("bash -c 'exec 3<>/dev/tcp/127.0.0.1/{port}' && echo {THROUGH}"))
}

fn write_script(path: &str) -> String {
    let usr = "/usr/haft-self-test";
    format!("echo x > {usr} && rm {usr} && echo {THROUGH}; echo x > {}", quoted(path))
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Tries something that has to fail. What did not come to try has shown nothing.
async fn probe(subject: Subject<'_>, name: &'static str, level: Level, script: &str) -> Probe {
    let script = format!("echo {TRIES}; exec 2>/dev/null; {script}");
    let failure = match run(subject, level, &script).await {
        Err(error) => Some(said(&error)),
        Ok((_, output)) if output.contains(THROUGH) => Some("it was not refused".to_owned()),
        Ok((ending, output)) if !output.starts_with(TRIES) => {
            Some(format!("the probe did not run: {ending:?}"))
        }
        Ok(_) => None,
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

async fn run(subject: Subject<'_>, level: Level, script: &str) -> Result<(ExitReason, String), SandboxError> {
    let place = subject.sandbox.place(level, Some(subject.engine))?;
    let mut command = Command::new(place, ["sh", "-c", script]).env("PATH", "/usr/bin:/bin");
    command.image = subject.image.map(str::to_owned);
    command.limits =
        Limits { wall: Duration::from_secs(10), processes: 16, memory: 64 << 20, ..Limits::default() };
    let finished = subject.sandbox.run_unexamined(command, &mut |_, _| {}).await?;
    Ok((finished.ending, finished.stdout.text().into_owned()))
}
