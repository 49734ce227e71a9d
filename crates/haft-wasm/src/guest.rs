//! One call of a program.

use std::io::{self, Write};
use std::sync::Arc;

use bytes::Bytes;
use haft_core::call::ProcessRecord;
use haft_core::executor::EventSink;
use haft_core::outcome::{CallError, ErrorCode, Outcome};
use haft_core::output::StreamOutput;
use haft_core::secret::Secret;
use haft_core::spec::Limits;
use serde_json::{Map, Value};
use tokio::sync::OwnedSemaphorePermit;
use wasmtime::component::Val;
use wasmtime::{Engine, Store};
use wasmtime_wasi::I32Exit;

use crate::capture::Capture;
use crate::entry::{Program, Signature};
use crate::failure::{self, StopContext};
use crate::grants::CallGrants;
use crate::memory::Budget;
use crate::shape::Shape;
use crate::state::{Determinism, GuestIo, State};
use crate::ticker::Running;
use crate::{lift, lower};

/// The memory that a guest can use to pass data to the host: a value needs more than its JSON.
const FUEL_PER_BYTE: u64 = 8;
const MIN_FUEL: usize = 1024 * 1024;
const MAX_FUEL: usize = 512 * 1024 * 1024;
/// How many component handles a guest can have.
const MAX_HANDLES: usize = 10_000;

/// The arguments, as the program takes them.
pub(crate) enum Input {
    Values(Vec<Val>),
    Stdin(Bytes),
}

/// The limits of a call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallLimits {
    pub(crate) input: u64,
    pub(crate) output: u64,
    pub(crate) memory: usize,
}

impl CallLimits {
    pub(crate) fn new(limits: &Limits, memory: usize) -> Self {
        Self { input: limits.max_request_bytes, output: limits.max_response_bytes, memory }
    }

    fn fuel(&self) -> usize {
        let fuel = usize::try_from(self.output.saturating_mul(FUEL_PER_BYTE)).unwrap_or(MAX_FUEL);
        fuel.clamp(MIN_FUEL, MAX_FUEL)
    }
}

/// Converts the arguments for the program.
pub(crate) fn input(program: &Program, args: &Map<String, Value>, limit: u64) -> Result<Input, CallError> {
    match program {
        Program::Function { signature: Signature::Typed { params, .. }, .. } => {
            measure(args, limit).map_err(|_| failure::too_much_input(limit))?;
            lower::arguments(params, args).map(Input::Values).map_err(|mismatch| {
                let message = format!("invalid argument: {mismatch}");
                CallError::new(ErrorCode::InvalidArguments, message)
            })
        }
        Program::Function { signature: Signature::Text, .. } => {
            Ok(Input::Values(vec![Val::String(text(args, limit)?)]))
        }
        Program::Command { .. } | Program::Module { .. } => Ok(Input::Stdin(text(args, limit)?.into())),
    }
}

fn text(args: &Map<String, Value>, limit: u64) -> Result<String, CallError> {
    let text = serde_json::to_string(args).map_err(|error| CallError::internal(error.to_string()))?;
    if text.len() as u64 > limit {
        return Err(failure::too_much_input(limit));
    }
    Ok(text)
}

/// Checks the size of the JSON of a value, without storing it.
fn measure<T: serde::Serialize>(value: &T, limit: u64) -> Result<(), serde_json::Error> {
    struct Count(u64);
    impl Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 = self.0.checked_sub(bytes.len() as u64).ok_or_else(|| io::Error::other("too large"))?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    serde_json::to_writer(Count(limit), value)
}

/// One call of a program; dropping the future of [`Guest::run`] stops it.
pub(crate) struct Guest {
    pub(crate) engine: Engine,
    pub(crate) program: Arc<Program>,
    pub(crate) input: Input,
    pub(crate) limits: CallLimits,
    pub(crate) determinism: Determinism,
    pub(crate) grants: CallGrants,
    /// The secrets in its environment.
    pub(crate) secrets: Vec<Secret>,
    pub(crate) budget: Arc<Budget>,
    pub(crate) events: Option<Arc<dyn EventSink>>,
    pub(crate) running: Running,
    pub(crate) permit: OwnedSemaphorePermit,
}

impl Guest {
    /// Runs the program in its own store.
    pub(crate) async fn run(self) -> GuestResult {
        let Self {
            engine,
            program,
            input,
            limits,
            determinism,
            grants,
            secrets,
            budget,
            events,
            running,
            permit,
        } = self;
        let stdout = Capture::value(output_limit(&limits));
        let stderr = Capture::messages(events, secrets.clone());
        let (values, stdin) = match input {
            Input::Values(values) => (values, Bytes::new()),
            Input::Stdin(stdin) => (Vec::new(), stdin),
        };
        let io = GuestIo { determinism, grants, stdin, stdout: stdout.clone(), stderr: stderr.clone() };
        let state = match State::new(io, limits.memory, budget) {
            Ok(state) => state,
            Err(error) => return GuestResult { process: None, outcome: Err(error) },
        };
        let mut store = Store::new(&engine, state);
        store.limiter(|state| &mut state.limiter);
        store.set_hostcall_fuel(limits.fuel());
        store.set_max_component_handles(MAX_HANDLES);
        // At each tick the guest yields, and is dropped if its call was cancelled.
        store.set_epoch_deadline(1);
        store.epoch_deadline_async_yield_and_update(1);

        let ended = enter(&program, &mut store, values).await;
        let denied = store.data().limiter.denied;
        drop(store);
        drop((running, permit));
        let (left_out, stderr) = (u64::from(stderr.overflowed()), stderr.take());
        let stderr = StreamOutput { bytes: &stderr, left_out }.redacted(&secrets);
        let stop = StopContext {
            stderr: &stderr,
            stdout_overflowed: stdout.overflowed(),
            denied,
            max_memory: limits.memory,
            max_output: limits.output,
        };
        let value = || {
            let stdout = stdout.take();
            StreamOutput { bytes: &stdout, left_out: 0 }.value(u64::MAX, &secrets)
        };
        let outcome = outcome(&program, ended, value, &stop);
        GuestResult { process: process(&program, &outcome, stderr), outcome }
    }
}

/// The outcome of a call, and the record of a program.
pub(crate) struct GuestResult {
    pub(crate) outcome: Outcome,
    pub(crate) process: Option<ProcessRecord>,
}

fn process(program: &Program, outcome: &Outcome, stderr: String) -> Option<ProcessRecord> {
    let is_function = matches!(program, Program::Function { .. });
    if is_function && stderr.is_empty() {
        return None;
    }
    let detail = |name: &str| outcome.as_ref().err()?.details.as_ref()?.get(name).cloned();
    let failed = detail("exit_code").and_then(|code| i32::try_from(code.as_i64()?).ok());
    let exit_code = if outcome.is_ok() && !is_function { Some(0) } else { failed };
    let limit = detail("limit").and_then(|limit| limit.as_str().map(str::to_owned));
    Some(ProcessRecord { exit_code, limit, stderr, ..ProcessRecord::default() })
}

fn output_limit(limits: &CallLimits) -> usize {
    usize::try_from(limits.output).unwrap_or(usize::MAX)
}

/// Instantiates and calls the program; returns the result of the function, if any.
async fn enter(
    program: &Program,
    store: &mut Store<State>,
    values: Vec<Val>,
) -> wasmtime::Result<Option<Val>> {
    match program {
        Program::Function { linked, index, signature } => {
            let instance = linked.instantiate_async(&mut *store).await?;
            let function = exported(instance.get_func(&mut *store, index))?;
            let has_result = !matches!(signature, Signature::Typed { result: None, .. });
            let mut results = vec![Val::Bool(false); usize::from(has_result)];
            function.call_async(&mut *store, &values, &mut results).await?;
            Ok(results.pop())
        }
        Program::Command { linked, index } => {
            let instance = linked.instantiate_async(&mut *store).await?;
            let function = exported(instance.get_func(&mut *store, index))?;
            let mut results = [Val::Bool(false)];
            function.call_async(&mut *store, &[], &mut results).await?;
            let [result] = results;
            Ok(Some(result))
        }
        Program::Module { linked } => {
            let instance = linked.instantiate_async(&mut *store).await?;
            let start = exported(instance.get_func(&mut *store, "_start"))?;
            start.call_async(&mut *store, &[], &mut []).await?;
            Ok(None)
        }
    }
}

fn exported<T>(function: Option<T>) -> wasmtime::Result<T> {
    function.ok_or_else(|| wasmtime::Error::msg("an exported function is missing"))
}

fn outcome(
    program: &Program,
    ended: wasmtime::Result<Option<Val>>,
    printed: impl FnOnce() -> Value,
    context: &StopContext<'_>,
) -> Outcome {
    let exit = ended.as_ref().err().and_then(|error| error.downcast_ref::<I32Exit>()).map(|exit| exit.0);
    match (program, ended, exit) {
        (Program::Command { .. } | Program::Module { .. }, _, Some(0)) => Ok(printed()),
        (_, _, Some(status)) => Err(failure::exited(status, context.stderr)),
        (_, Err(error), None) => Err(failure::stopped(&error, context)),
        (Program::Command { .. }, Ok(Some(Val::Result(Err(_)))), None) => {
            Err(failure::exited(1, context.stderr))
        }
        (Program::Command { .. } | Program::Module { .. }, Ok(_), None) => Ok(printed()),
        (Program::Function { signature, .. }, Ok(value), None) => {
            returned(signature, value, context.max_output)
        }
    }
}

/// Converts the result of a function; the `err` of a result is a failed call.
fn returned(signature: &Signature, value: Option<Val>, limit: u64) -> Outcome {
    match (signature, value) {
        (Signature::Text, Some(Val::String(text))) => bounded_text(text, limit),
        (Signature::Text, Some(Val::Result(Ok(Some(text))))) => match *text {
            Val::String(text) => bounded_text(text, limit),
            _ => Ok(Value::Null),
        },
        (Signature::Text, Some(Val::Result(Err(error)))) => {
            let error = error.map_or(Value::Null, |error| lift::value(&Shape::String, *error));
            Err(failure::returned(&error))
        }
        (Signature::Typed { result: Some(Shape::Result(ok, err)), .. }, Some(Val::Result(result))) => {
            let (shape, payload, failed) = match result {
                Ok(payload) => (ok, payload, false),
                Err(payload) => (err, payload, true),
            };
            let json = match (shape, payload) {
                (Some(shape), Some(payload)) => lift::value(shape, *payload),
                _ => Value::Null,
            };
            let json = bounded(json, limit)?;
            if failed { Err(failure::returned(&json)) } else { Ok(json) }
        }
        (Signature::Typed { result: Some(shape), .. }, Some(value)) => {
            bounded(lift::value(shape, value), limit)
        }
        _ => Ok(Value::Null),
    }
}

fn bounded(json: Value, limit: u64) -> Outcome {
    match measure(&json, limit) {
        Ok(()) => Ok(json),
        Err(_) => Err(failure::too_much_output(limit)),
    }
}

fn bounded_text(text: String, limit: u64) -> Outcome {
    if text.len() as u64 > limit {
        return Err(failure::too_much_output(limit));
    }
    Ok(serde_json::from_str(&text).unwrap_or(Value::String(text)))
}
