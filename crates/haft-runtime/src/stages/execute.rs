//! The execution itself: attempts within the deadline, stoppable from outside, never a crash.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

use futures_util::FutureExt;
use haft_core::executor::CallContext;
use haft_core::outcome::{CallError, ErrorCode, Outcome};
use haft_core::secret::{SecretSource, scrub, scrub_text};
use serde_json::{Map, Value};

use crate::function::panicked;
use crate::pipeline::Call;
use crate::retry;

/// Runs the tool.
pub(super) async fn execute(call: &mut Call, secrets: &Arc<dyn SecretSource>) -> Outcome {
    let record = &call.record;
    let mut context = CallContext::new(record.id, record.tenant.clone(), call.deadline, Arc::clone(secrets));
    context.events = call.events.take();
    let empty = Map::new();
    let args = record.args.as_object().unwrap_or(&empty);

    let attempts = attempts(call, &mut context, args);
    let in_time = tokio::time::timeout_at(call.deadline.into(), attempts);
    let outcome = match &call.cancel {
        None => in_time.await,
        Some(cancel) => tokio::select! {
            biased;
            () = cancel.cancelled() => Ok(Err(CallError::new(ErrorCode::Cancelled, "the call was cancelled"))),
            outcome = in_time => outcome,
        },
    };
    let mut outcome = outcome.unwrap_or_else(|_| Err(too_late(call)));
    keep_secrets_out(&mut outcome, &context);
    outcome
}

async fn attempts(call: &Call, context: &mut CallContext, args: &Map<String, Value>) -> Outcome {
    let policy = retry::policy(&call.plan.spec);
    loop {
        let attempt = AssertUnwindSafe(call.plan.prepared.run(context, args)).catch_unwind().await;
        let outcome = attempt.unwrap_or_else(|payload| Err(panicked(payload.as_ref())));
        let error = match outcome {
            Ok(value) => return Ok(value),
            Err(error) => error,
        };
        let Some(wait) = retry::wait(&policy, &error, context.attempt, random()) else { return Err(error) };
        // Waiting past the deadline would only replace a clear error by a vague one.
        if Instant::now() + wait >= call.deadline {
            return Err(error);
        }
        tokio::time::sleep(wait).await;
        context.attempt += 1;
    }
}

fn too_late(call: &Call) -> CallError {
    let took = call.deadline.saturating_duration_since(call.started);
    let message =
        format!("`{}` took longer than {}", call.entry.tool.spec.name, haft_core::duration::format(took));
    CallError::new(ErrorCode::Timeout, message)
}

fn keep_secrets_out(outcome: &mut Outcome, context: &CallContext) {
    let secrets = context.exposed();
    if secrets.is_empty() {
        return;
    }
    match outcome {
        Ok(value) => scrub(value, &secrets),
        Err(error) => {
            scrub_text(&mut error.message, &secrets);
            if let Some(text) = &mut error.for_model {
                scrub_text(text, &secrets);
            }
            if let Some(details) = &mut error.details {
                scrub(details, &secrets);
            }
        }
    }
}

/// Returns a number in `0.0..1.0`; only the spread of waits depends on it.
fn random() -> f64 {
    f64::from(getrandom::u32().unwrap_or(u32::MAX / 2)) / (f64::from(u32::MAX) + 1.0)
}
