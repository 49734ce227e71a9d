//! One warm interpreter in its sandbox.

use std::io;
use std::time::Duration;

use haft_sandbox::{
    Capture, CaptureEnd, CapturedOutput, ExitReason, Limit, Running, Sandbox, SandboxError, StdinHandle,
    Stream,
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
/// How long the process of a call that has told its end may take to be gone.
const GOES_WITHIN: Duration = Duration::from_secs(3);
/// What the word for an exit code takes at most.
const EXIT_WORD: usize = 16;
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
    pub(super) ending: ExitReason,
    pub(super) stdout: CapturedOutput,
    pub(super) stderr: CapturedOutput,
    /// What a function returned, or what is wrong with a body, as JSON.
    pub(super) result: Vec<u8>,
    /// What becomes of the interpreter.
    pub(super) next: Next,
}

/// What becomes of an interpreter after a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// It takes a further call.
    Ready,
    /// The call is done, but its process is not gone yet: [`Server::settle`].
    Settling,
    /// It is over.
    Over,
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
        let Some(StdinHandle::Socket(socket)) = running.stdin.take() else {
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
        let (ending, next) = match told {
            Ok(Told::Exit(code)) => (ExitReason::Exited(code), Next::Settling),
            Ok(Told::Line(line)) => self.ended(&line).await?,
            Ok(Told::Gone) => (self.gone().await, Next::Over),
            Err(limit) => (self.stop(limit).await, Next::Over),
        };
        Ok(Done { ending, stdout: capture.stdout, stderr: capture.stderr, result, next })
    }

    /// Waits until the process of a call that has told its end is gone; tells whether a further call is taken. A
    /// tool can tell an end and go on: then the interpreter is to be dropped, and ends with it.
    pub(super) async fn settle(&mut self) -> bool {
        let line = timeout(GOES_WITHIN, self.wire.line()).await;
        line.is_ok_and(|line| line.ok().flatten().is_some_and(|line| is_again(&line)))
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

    /// Reads everything that a call says, until its end is told.
    async fn follow(
        &mut self,
        mut ends: Ends,
        heard: &mut Heard,
        most: usize,
        watch: &mut (dyn FnMut(Stream, &[u8]) + Send),
    ) -> Result<Told, Limit> {
        let Heard { capture, result } = heard;
        let output = async {
            match capture.read(&mut ends.stdout, &mut ends.stderr, watch).await {
                Ok(CaptureEnd::Flooded) => Err(Cut::Limit(Limit::Output)),
                Ok(CaptureEnd::Closed) | Err(_) => Ok(()),
            }
        };
        let returned = read_result(ends.result, result, most);
        let line = async { Ok(self.wire.line().await.ok().flatten()) };
        match tokio::try_join!(output, returned, line) {
            Ok(((), (), line)) => Ok(line.map_or(Told::Gone, Told::Line)),
            Err(Cut::Limit(limit)) => Err(limit),
            // Whatever was printed before that is in the pipes by now.
            Err(Cut::Exit(code)) => match capture.drain(&ends.stdout, &ends.stderr, watch) {
                CaptureEnd::Flooded => Err(Limit::Output),
                CaptureEnd::Closed => Ok(Told::Exit(code)),
            },
        }
    }

    /// Reads how a call ended. One that was killed may have met the limit of memory, which the end of the sandbox
    /// tells.
    async fn ended(&mut self, line: &Value) -> Result<(ExitReason, Next), ServerError> {
        let code = line.get("ended").and_then(Value::as_i64).and_then(|code| i32::try_from(code).ok());
        let ending = match code {
            Some(code @ 0..) => ExitReason::Exited(code),
            Some(signal) => ExitReason::from_signal(signal.saturating_neg()),
            None => return Err(io::Error::other("the interpreter told no end").into()),
        };
        if ending == ExitReason::Signalled(KILLED) {
            self.running.kill();
            return Ok((self.gone().await, Next::Over));
        }
        Ok((ending, if is_again(line) { Next::Ready } else { Next::Over }))
    }

    async fn stop(&mut self, limit: Limit) -> ExitReason {
        self.running.kill();
        self.gone().await;
        ExitReason::Stopped(limit)
    }

    /// Waits for the end of the sandbox, and so of the call in it.
    async fn gone(&mut self) -> ExitReason {
        self.running.wait().await.unwrap_or_else(|error| {
            tracing::debug!(%error, "an interpreter was ended");
            ExitReason::Signalled(KILLED)
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

fn is_again(line: &Value) -> bool {
    line.get("again").and_then(Value::as_bool).unwrap_or(false)
}

/// How the end of a call is told.
enum Told {
    /// By the process of the call, which has this code and nothing more to do.
    Exit(i32),
    /// By the interpreter: the process is gone.
    Line(Value),
    /// By the end of the interpreter.
    Gone,
}

/// What ends the reading of a call before its pipes end.
enum Cut {
    /// It has told its exit code, and has nothing more to do.
    Exit(i32),
    /// It met a limit.
    Limit(Limit),
}

/// Reads a result, to its end or to the exit code that a process tells behind it.
async fn read_result(mut pipe: impl AsyncRead + Unpin, into: &mut Vec<u8>, most: usize) -> Result<(), Cut> {
    // A pipe that breaks has told what it had to tell.
    while let Ok(1..) = pipe.read_buf(into).await {
        if let Some((length, code)) = exit_told(into) {
            into.truncate(length);
            if length <= most {
                return Err(Cut::Exit(code));
            }
        }
        if into.len() > most.saturating_add(EXIT_WORD) {
            break;
        }
    }
    if into.len() > most { Err(Cut::Limit(Limit::Output)) } else { Ok(()) }
}

/// Reads `exit 0` in a line of its own at the end; returns what stands before it, too. JSON has no such line.
fn exit_told(bytes: &[u8]) -> Option<(usize, i32)> {
    let start = bytes.len().saturating_sub(EXIT_WORD);
    let end = bytes.get(start..)?.strip_suffix(b"\n")?;
    let line = end.iter().rposition(|byte| *byte == b'\n')?;
    let code = std::str::from_utf8(end.get(line + 1..)?).ok()?.strip_prefix("exit ")?;
    Some((start + line, code.parse::<u8>().ok()?.into()))
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
        (ExitReason::Stopped(limit), _) => format!("it met the limit `{}`", limit.as_str()),
        (_, Some(line)) => line.strip_prefix("haft: ").unwrap_or(line).chars().take(500).collect(),
        (ending, None) => format!("it ended at once ({ending:?})"),
    };
    ServerError::Start(why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exit_is_told_behind_the_result() {
        for (bytes, expected) in [
            ("\nexit 0\n", Some((0, 0))),
            ("{\"value\":1}\nexit 255\n", Some((11, 255))),
            ("", None),
            ("exit 0\n", None),
            ("\nexit 0", None),
            ("\nexit 256\n", None),
            ("\nexit -1\n", None),
            ("\nexit 0\n\n", None),
            ("{\"value\":\"\\nexit 0\\n\"}", None),
        ] {
            assert_eq!(exit_told(bytes.as_bytes()), expected, "{bytes}");
        }
    }
}
