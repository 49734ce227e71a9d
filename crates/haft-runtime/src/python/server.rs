//! One warm interpreter in its sandbox.

use std::io;
use std::time::Duration;

use haft_sandbox::{
    Capture, Captured, Ended, Ending, Limit, Running, Sandbox, SandboxError, StdinOf, Stream,
};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::time::{Instant, timeout, timeout_at};

use super::recipe::{Mode, Recipe};
use super::request::Request;
use super::wire::{Descriptors, Ends, Wire};

/// How long an interpreter may take to start, with all that a script imports.
const STARTS_WITHIN: Duration = Duration::from_secs(20);
/// How long it may take to put its sandbox in order before it takes a call.
const TAKES_WITHIN: Duration = Duration::from_secs(1);
/// The signal that ends a process whatever it does.
const KILLED: i32 = 9;
/// How much is kept of what an interpreter says when it does not start.
const KEPT: u64 = 4096;

/// A warm interpreter. Dropping it ends it, with everything in its sandbox.
#[derive(Debug)]
pub(super) struct Server {
    running: Running,
    wire: Wire,
}

/// What a call may take of time and room.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    pub(super) until: Instant,
    pub(super) cpu: Duration,
    /// Bytes of each stream, and of a result.
    pub(super) output: usize,
}

/// One call, and what it may take.
#[derive(Clone, Copy)]
pub(super) struct Order<'a> {
    pub(super) request: &'a Request,
    pub(super) bounds: Bounds,
}

/// What a call came to.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) ending: Ending,
    pub(super) stdout: Captured,
    pub(super) stderr: Captured,
    /// What a function returned, or what is wrong with a body, as JSON.
    pub(super) result: Vec<u8>,
    /// Whether the interpreter takes a further call.
    pub(super) again: bool,
}

/// What keeps a call from being run.
#[derive(Debug, thiserror::Error)]
pub(super) enum ServerError {
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    #[error("python did not start: {0}")]
    Start(String),
    #[error("failed to reach the interpreter")]
    Wire(#[from] io::Error),
    /// The interpreter ended before it took the call, which can be given to another one.
    #[error("the interpreter ended before it took the call")]
    NotTaken,
}

impl Server {
    /// Starts an interpreter and waits until it is warm.
    pub(super) async fn start(sandbox: &Sandbox, recipe: &Recipe) -> Result<Self, ServerError> {
        let place = sandbox.place(recipe.level, None)?;
        let mut running = sandbox.start(recipe.command(place, Mode::Serve)).await?;
        let Some(StdinOf::Socket(socket)) = running.stdin.take() else {
            return Err(io::Error::other("the sandbox gave no socket").into());
        };
        let mut wire = Wire::new(socket)?;
        match timeout(STARTS_WITHIN, wire.line()).await {
            Ok(Ok(Some(line))) if line.get("ready").is_some() => {
                // Nothing is said here any more.
                drop((running.stdout.take(), running.stderr.take()));
                Ok(Self { running, wire })
            }
            Err(_) => {
                Err(ServerError::Start(format!("it took longer than {} seconds", STARTS_WITHIN.as_secs())))
            }
            Ok(_) => Err(why_not(running).await),
        }
    }

    /// Runs one call. Where this is dropped before its end, the interpreter must be dropped, too.
    pub(super) async fn call(
        &mut self,
        order: Order<'_>,
        watch: &mut (dyn FnMut(Stream, &[u8]) + Send),
    ) -> Result<Done, ServerError> {
        let Order { request, bounds } = order;
        let (theirs, ours) = Descriptors::make(request.json(Some(bounds.cpu)).to_string().as_bytes())?;
        if self.wire.send(&theirs).await.is_err() {
            return Err(ServerError::NotTaken);
        }
        drop(theirs);
        self.taken().await?;
        let mut heard = Heard { capture: Capture::new(bounds.output), result: Vec::new() };
        let work = self.follow(ours, &mut heard, bounds.output, watch);
        let told = timeout_at(bounds.until, work).await.unwrap_or(Err(Limit::Wall));
        let Heard { mut capture, result } = heard;
        capture.finish();
        let (ending, again) = match told {
            Ok(Some(line)) => self.ended(&line).await?,
            Ok(None) => (self.gone().await, false),
            Err(limit) => (self.stop(limit).await, false),
        };
        Ok(Done { ending, stdout: capture.stdout, stderr: capture.stderr, result, again })
    }

    /// Waits until the interpreter has taken the call. One that does not is ended first, so that the call cannot
    /// run here as well as elsewhere.
    async fn taken(&mut self) -> Result<(), ServerError> {
        if let Ok(line) = timeout(TAKES_WITHIN, self.wire.line()).await {
            return if is_started(line) { Ok(()) } else { Err(ServerError::NotTaken) };
        }
        self.running.kill();
        drop(self.running.wait().await);
        // What it said before its end is still there. A call that was begun is over, and is not begun again.
        if is_started(self.wire.line().await) { Ok(()) } else { Err(ServerError::NotTaken) }
    }

    /// Reads everything that a call says, until the interpreter tells its end; `None` where that is gone.
    async fn follow(
        &mut self,
        ends: Ends,
        heard: &mut Heard,
        most: usize,
        watch: &mut (dyn FnMut(Stream, &[u8]) + Send),
    ) -> Result<Option<Value>, Limit> {
        let output = async {
            match heard.capture.read(ends.stdout, ends.stderr, watch).await {
                Ok(Ended::Flooded) => Err(Limit::Output),
                Ok(Ended::Closed) | Err(_) => Ok(()),
            }
        };
        let returned = read_at_most(ends.result, &mut heard.result, most);
        let end = async { Ok(self.wire.line().await.ok().flatten()) };
        tokio::try_join!(output, returned, end).map(|((), (), line)| line)
    }

    /// Reads how a call ended. One that was killed may have met the limit of memory, which the end of the sandbox
    /// tells.
    async fn ended(&mut self, line: &Value) -> Result<(Ending, bool), ServerError> {
        let code = line.get("ended").and_then(Value::as_i64).and_then(|code| i32::try_from(code).ok());
        let Some(code) = code else { return Err(io::Error::other("the interpreter told no end").into()) };
        let ending = Ending::from_code(code);
        if ending == Ending::Signalled(KILLED) {
            self.running.kill();
            return Ok((self.gone().await, false));
        }
        let again = line.get("again").and_then(Value::as_bool).unwrap_or(false);
        Ok((ending, again))
    }

    async fn stop(&mut self, limit: Limit) -> Ending {
        self.running.kill();
        self.gone().await;
        Ending::Stopped(limit)
    }

    /// Waits for the end of the sandbox, and so of the call in it.
    async fn gone(&mut self) -> Ending {
        self.running.wait().await.unwrap_or_else(|error| {
            tracing::debug!(%error, "an interpreter was ended");
            Ending::Signalled(KILLED)
        })
    }
}

/// What a call has said so far.
struct Heard {
    capture: Capture,
    result: Vec<u8>,
}

fn is_started(line: io::Result<Option<Value>>) -> bool {
    line.ok().flatten().is_some_and(|line| line.get("started").is_some())
}

async fn read_at_most(pipe: impl AsyncRead + Unpin, into: &mut Vec<u8>, most: usize) -> Result<(), Limit> {
    let most = most as u64;
    // A pipe that breaks has told what it had to tell.
    drop(pipe.take(most.saturating_add(1)).read_to_end(into).await);
    if into.len() as u64 > most { Err(Limit::Output) } else { Ok(()) }
}

/// Says why an interpreter did not become warm.
async fn why_not(mut running: Running) -> ServerError {
    let mut said = Vec::new();
    if let Some(stderr) = running.stderr.take() {
        drop(timeout(STARTS_WITHIN, stderr.take(KEPT).read_to_end(&mut said)).await);
    }
    running.kill();
    let said = String::from_utf8_lossy(&said);
    let ending = match running.wait().await {
        Ok(ending) => ending,
        Err(error) => return error.explained(&said).into(),
    };
    let last = said.lines().rev().find(|line| !line.trim().is_empty());
    let why = match (ending, last) {
        (Ending::Stopped(limit), _) => format!("it met the limit `{}`", limit.as_str()),
        (_, Some(line)) => line.strip_prefix("haft: ").unwrap_or(line).chars().take(500).collect(),
        (ending, None) => format!("it ended at once ({ending:?})"),
    };
    ServerError::Start(why)
}
