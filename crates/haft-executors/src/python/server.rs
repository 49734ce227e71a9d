//! One warm interpreter in its sandbox.

use std::io;
use std::time::Duration;

use haft_sandbox::{
    Capture, CaptureEnd, CapturedOutput, ChildHandle, ExitReason, Limit, Running, Sandbox, SandboxError,
    StdinHandle, Stream,
};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::time::{Instant, timeout, timeout_at};

use super::recipe::{Mode, Recipe};
use super::request::Request;
use super::wire::{Descriptors, ReadEnds, Wire};

/// The timeout for the start of an interpreter, with the imports of the script.
const START_TIMEOUT: Duration = Duration::from_secs(20);
/// The timeout for an interpreter to clean its sandbox and accept a call.
const ACCEPT_TIMEOUT: Duration = Duration::from_secs(1);
/// The timeout for the process of a finished call to end.
const EXIT_TIMEOUT: Duration = Duration::from_secs(3);
/// The maximum length of the line with the exit code.
const EXIT_LINE_BYTES: usize = 16;
/// The signal that ends a process unconditionally.
const SIGKILL: i32 = 9;
/// How much output of an interpreter that does not start is read.
const MAX_START_OUTPUT: u64 = 4096;

/// A warm interpreter. Dropping it ends it, with everything in its sandbox.
#[derive(Debug)]
pub(super) struct Server {
    running: Running,
    wire: Wire,
}

/// The limits of a call.
#[derive(Debug, Clone, Copy)]
pub(super) struct CallLimits {
    pub(super) deadline: Instant,
    pub(super) cpu: Duration,
    /// The maximum size of each stream and of the result.
    pub(super) output: usize,
}

/// One call with its limits.
#[derive(Clone, Copy)]
pub(super) struct PythonCall<'a> {
    pub(super) request: &'a Request,
    pub(super) limits: CallLimits,
}

/// The result of a call.
#[derive(Debug)]
pub(super) struct PythonResult {
    pub(super) ending: ExitReason,
    pub(super) stdout: CapturedOutput,
    pub(super) stderr: CapturedOutput,
    /// The value of a function, or the syntax error of a script, as JSON.
    pub(super) result: Vec<u8>,
    /// The state of the interpreter.
    pub(super) after: AfterCall,
}

/// The state of an interpreter after a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AfterCall {
    /// It accepts another call.
    Ready,
    /// The call is finished, but its process has not ended yet: see [`Server::settle`].
    Settling,
    /// It has ended.
    Ended,
}

/// Why a call could not be run.
#[derive(Debug, thiserror::Error)]
pub(super) enum ServerError {
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    #[error("python failed to start: {0}")]
    Start(String),
    #[error("the connection to the interpreter failed")]
    Wire(#[from] io::Error),
    /// The interpreter ended before it accepted the call; another one can run it.
    #[error("the interpreter ended before it accepted the call")]
    NotAccepted,
}

impl Server {
    /// Starts an interpreter and waits until it is warm.
    pub(super) async fn start(sandbox: &Sandbox, recipe: &Recipe) -> Result<Self, ServerError> {
        let place = sandbox.place(recipe.level, None)?;
        let mut running = sandbox.start(recipe.command(place, Mode::Serve)).await?;
        let Some(StdinHandle::Socket(socket)) = running.stdin.take() else {
            return Err(io::Error::other("the sandbox returned no socket").into());
        };
        let mut wire = Wire::new(socket)?;
        match timeout(START_TIMEOUT, wire.line()).await {
            Ok(Ok(Some(line))) if line.get("ready").is_some() => {
                // These pipes are not used any more.
                drop((running.stdout.take(), running.stderr.take()));
                Ok(Self { running, wire })
            }
            Err(_) => Err(ServerError::Start(format!("timed out after {} s", START_TIMEOUT.as_secs()))),
            Ok(_) => Err(start_error(running).await),
        }
    }

    /// Runs one call. If the future is dropped before its end, the interpreter must be dropped too.
    pub(super) async fn call(
        &mut self,
        call: PythonCall<'_>,
        watch: &mut (dyn FnMut(Stream, &[u8]) + Send),
    ) -> Result<PythonResult, ServerError> {
        let PythonCall { request, limits } = call;
        let (theirs, ours) = Descriptors::new(request.json(Some(limits.cpu)).to_string().as_bytes())?;
        if self.wire.send(&theirs).await.is_err() {
            return Err(ServerError::NotAccepted);
        }
        drop(theirs);
        self.accepted().await?;
        let mut received = Received { capture: Capture::new(limits.output), result: Vec::new() };
        let work = self.follow(ours, &mut received, limits.output, watch);
        let end = timeout_at(limits.deadline, work).await.unwrap_or(Err(Limit::Wall));
        let Received { mut capture, result } = received;
        capture.finish();
        let (ending, after) = match end {
            Ok(CallEnd::Exit(code)) => (ExitReason::Exited(code), self.end_processes().await),
            Ok(CallEnd::ExitedAndEnded(code, line)) => (ExitReason::Exited(code), after(&line)),
            Ok(CallEnd::Line(line)) => self.ended(&line).await?,
            Ok(CallEnd::Disconnected) => (self.wait().await, AfterCall::Ended),
            Err(limit) => (self.stop(limit).await, AfterCall::Ended),
        };
        Ok(PythonResult { ending, stdout: capture.stdout, stderr: capture.stderr, result, after })
    }

    /// Ends the processes of a call that has reported its end. A tool can report that itself, and would go on.
    async fn end_processes(&mut self) -> AfterCall {
        let processes = self.running.children();
        // The interpreter reports the end of a process before it forks the next one: without that report, the processes
        // are those of this call.
        if let Ok(line) = timeout(Duration::ZERO, self.wire.line()).await {
            return line.ok().flatten().map_or(AfterCall::Ended, |line| after(&line));
        }
        if let Ok(processes) = processes {
            processes.iter().for_each(ChildHandle::kill);
            return AfterCall::Settling;
        }
        if self.settle().await {
            return AfterCall::Ready;
        }
        self.running.kill();
        self.wait().await;
        AfterCall::Ended
    }

    /// Waits until the process of a finished call has ended; returns whether the interpreter accepts another call. If
    /// not, it must be dropped, which ends both.
    pub(super) async fn settle(&mut self) -> bool {
        let line = timeout(EXIT_TIMEOUT, self.wire.line()).await;
        line.is_ok_and(|line| line.ok().flatten().is_some_and(|line| accepts_more(&line)))
    }

    /// Waits until the interpreter has accepted the call. One that does not is ended, so that the call cannot run both
    /// here and elsewhere.
    async fn accepted(&mut self) -> Result<(), ServerError> {
        if let Ok(line) = timeout(ACCEPT_TIMEOUT, self.wire.line()).await {
            return if is_started(line) { Ok(()) } else { Err(ServerError::NotAccepted) };
        }
        self.running.kill();
        drop(self.running.wait().await);
        // What it sent before its end can still be read. A call that has started is not started again.
        if is_started(self.wire.line().await) { Ok(()) } else { Err(ServerError::NotAccepted) }
    }

    /// Reads the output of a call until its end.
    async fn follow(
        &mut self,
        mut ends: ReadEnds,
        received: &mut Received,
        max_result: usize,
        watch: &mut (dyn FnMut(Stream, &[u8]) + Send),
    ) -> Result<CallEnd, Limit> {
        let Received { capture, result } = received;
        let output = async {
            match capture.read(&mut ends.stdout, &mut ends.stderr, watch).await {
                Ok(CaptureEnd::Flooded) => Err(Interrupt::Limit(Limit::Output)),
                Ok(CaptureEnd::Closed) | Err(_) => Ok(()),
            }
        };
        let returned = read_result(ends.result, result, max_result);
        let mut ended = None;
        let line = async {
            ended = self.wire.line().await.ok().flatten();
            Ok(())
        };
        let joined = tokio::try_join!(output, returned, line);
        match joined {
            Ok(((), (), ())) => Ok(ended.map_or(CallEnd::Disconnected, CallEnd::Line)),
            Err(Interrupt::Limit(limit)) => Err(limit),
            // Everything that was printed before is in the pipes by now.
            Err(Interrupt::Exit(code)) => match capture.drain(&ends.stdout, &ends.stderr, watch) {
                CaptureEnd::Flooded => Err(Limit::Output),
                CaptureEnd::Closed => Ok(match ended {
                    Some(line) => CallEnd::ExitedAndEnded(code, line),
                    None => CallEnd::Exit(code),
                }),
            },
        }
    }

    /// Parses how a call ended. One that was killed may have exceeded the memory limit; the exit reason of the sandbox
    /// shows that.
    async fn ended(&mut self, line: &Value) -> Result<(ExitReason, AfterCall), ServerError> {
        let code = line.get("ended").and_then(Value::as_i64).and_then(|code| i32::try_from(code).ok());
        let ending = match code {
            Some(code @ 0..) => ExitReason::Exited(code),
            Some(signal) => ExitReason::from_signal(signal.saturating_neg()),
            None => return Err(io::Error::other("the interpreter sent no exit code").into()),
        };
        if ending == ExitReason::Signalled(SIGKILL) {
            self.running.kill();
            return Ok((self.wait().await, AfterCall::Ended));
        }
        Ok((ending, after(line)))
    }

    async fn stop(&mut self, limit: Limit) -> ExitReason {
        self.running.kill();
        self.wait().await;
        ExitReason::Stopped(limit)
    }

    /// Waits for the end of the sandbox, and so of the call in it.
    async fn wait(&mut self) -> ExitReason {
        self.running.wait().await.unwrap_or_else(|error| {
            tracing::debug!(%error, "interpreter killed");
            ExitReason::Signalled(SIGKILL)
        })
    }
}

/// The output of a call so far.
struct Received {
    capture: Capture,
    result: Vec<u8>,
}

fn is_started(line: io::Result<Option<Value>>) -> bool {
    line.ok().flatten().is_some_and(|line| line.get("started").is_some())
}

/// Returns the state of an interpreter that has reported the end of a call's process.
fn after(line: &Value) -> AfterCall {
    if accepts_more(line) { AfterCall::Ready } else { AfterCall::Ended }
}

fn accepts_more(line: &Value) -> bool {
    line.get("again").and_then(Value::as_bool).unwrap_or(false)
}

/// How the end of a call was reported.
enum CallEnd {
    /// By the process of the call, which has finished with this code.
    Exit(i32),
    /// By both.
    ExitedAndEnded(i32, Value),
    /// By the interpreter: the process has ended.
    Line(Value),
    /// The interpreter has ended.
    Disconnected,
}

/// Why reading stopped before the pipes were closed.
enum Interrupt {
    /// The process reported its exit code.
    Exit(i32),
    /// A limit was exceeded.
    Limit(Limit),
}

/// Reads a result up to the end of the pipe, or up to the exit code that follows it.
async fn read_result(
    mut pipe: impl AsyncRead + Unpin,
    into: &mut Vec<u8>,
    max: usize,
) -> Result<(), Interrupt> {
    // A broken pipe ends the result as well.
    while let Ok(1..) = pipe.read_buf(into).await {
        if let Some((length, code)) = parse_exit(into) {
            into.truncate(length);
            if length <= max {
                return Err(Interrupt::Exit(code));
            }
        }
        if into.len() > max.saturating_add(EXIT_LINE_BYTES) {
            break;
        }
    }
    if into.len() > max { Err(Interrupt::Limit(Limit::Output)) } else { Ok(()) }
}

/// Parses a last line `exit 0`; returns the length of what precedes it, and the code. JSON contains no such line.
fn parse_exit(bytes: &[u8]) -> Option<(usize, i32)> {
    let start = bytes.len().saturating_sub(EXIT_LINE_BYTES);
    let end = bytes.get(start..)?.strip_suffix(b"\n")?;
    let line = end.iter().rposition(|byte| *byte == b'\n')?;
    let code = std::str::from_utf8(end.get(line + 1..)?).ok()?.strip_prefix("exit ")?;
    Some((start + line, code.parse::<u8>().ok()?.into()))
}

/// Returns why an interpreter did not start.
async fn start_error(mut running: Running) -> ServerError {
    let mut output = Vec::new();
    if let Some(stderr) = running.stderr.take() {
        drop(timeout(START_TIMEOUT, stderr.take(MAX_START_OUTPUT).read_to_end(&mut output)).await);
    }
    running.kill();
    let output = String::from_utf8_lossy(&output);
    let ending = match running.wait().await {
        Ok(ending) => ending,
        Err(error) => return error.explained(&output).into(),
    };
    let last = output.lines().rev().find(|line| !line.trim().is_empty());
    let reason = match (ending, last) {
        (ExitReason::Stopped(limit), _) => format!("limit `{}` exceeded", limit.as_str()),
        (_, Some(line)) => line.strip_prefix("haft: ").unwrap_or(line).chars().take(500).collect(),
        (ending, None) => format!("it ended during the start ({ending:?})"),
    };
    ServerError::Start(reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exit_code_follows_the_result() {
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
            assert_eq!(parse_exit(bytes.as_bytes()), expected, "{bytes}");
        }
    }
}
