//! The execution itself: attempts within the deadline, never a crash, and no secret in the outcome.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use haft_core::executor::CallContext;
use haft_core::outcome::Outcome;
use haft_core::secret::{Secret, SecretSource, scrub, scrub_text};
use serde_json::{Map, Value};

use crate::clock;
use crate::function::panicked;
use crate::pipeline::Call;
use crate::registry::Plan;
use crate::retry;
use crate::stages::output;

/// Runs the tool.
pub(super) async fn execute(call: &mut Call, secrets: &Arc<dyn SecretSource>) -> Outcome {
    let Call { record, plan, attempt, .. } = call;
    let time = call.started..call.deadline;
    let (tenant, caller) = (record.tenant.clone(), call.caller.clone());
    let mut context = CallContext::of(record.id, tenant, caller, time, Arc::clone(secrets));
    context.mode = record.mode;
    context.events.clone_from(&call.events);
    context.workspace.clone_from(&call.workspace);
    plan.literals.iter().for_each(|secret| context.hide(secret.clone()));
    let empty = Map::new();
    let args = record.args.as_object().unwrap_or(&empty);
    // Also where the call is dropped.
    let ending = context.ending();
    let mut outcome = attempts(plan, attempt, &mut context, args).await;
    drop(ending);
    let exposed = context.exposed();
    keep_secrets_out(&mut outcome, &exposed);
    let mut beside = context.take_content();
    if !beside.is_empty() {
        for block in &mut beside {
            scrub(block, &exposed);
        }
        let beside = output::beside(plan, beside, &mut outcome);
        Arc::make_mut(&mut call.record).content = beside;
    }
    if let Err(error) = &mut outcome {
        output::shorten(plan, error);
    }
    if let Some(mut process) = context.take_process() {
        for text in [&mut process.stdout, &mut process.stderr] {
            scrub_text(text, &exposed);
        }
        Arc::make_mut(&mut call.record).process = Some(process);
    }
    call.exposed.extend(exposed);
    // Innermost, so that every stage sees what the caller will.
    output::check(&call.plan, outcome?)
}

/// Runs the tool until it succeeds or is not to be tried again; `attempt` counts on where stages run it once more.
async fn attempts(
    plan: &Plan,
    attempt: &mut u32,
    context: &mut CallContext,
    args: &Map<String, Value>,
) -> Outcome {
    let policy = retry::policy(&plan.spec);
    let mut repeated = 0;
    loop {
        context.attempt = *attempt;
        // Before the run, which may be dropped.
        *attempt = attempt.saturating_add(1);
        // Inside the block, so that a panic before the first wait is caught as well.
        let run = async { plan.prepared.run(context, args).await };
        let caught = AssertUnwindSafe(run).catch_unwind().await;
        let outcome = caught.unwrap_or_else(|payload| Err(panicked(payload.as_ref())));
        let error = match outcome {
            Ok(value) => return Ok(value),
            Err(error) => error,
        };
        if !retry::may_repeat(&plan.spec, &error) {
            return Err(error);
        }
        let Some(wait) = retry::wait(&policy, &error, repeated, random()) else { return Err(error) };
        // Waiting past the deadline would only replace a clear error by a vague one.
        if clock::now() + wait >= context.deadline {
            return Err(error);
        }
        tokio::time::sleep(wait).await;
        repeated += 1;
    }
}

fn keep_secrets_out(outcome: &mut Outcome, secrets: &[Secret]) {
    if secrets.is_empty() {
        return;
    }
    match outcome {
        Ok(value) => scrub(value, secrets),
        Err(error) => {
            scrub_text(&mut error.message, secrets);
            if let Some(text) = &mut error.for_model {
                scrub_text(text, secrets);
            }
            if let Some(details) = &mut error.details {
                scrub(details, secrets);
            }
        }
    }
}

/// Returns a number in `0.0..1.0`; only the spread of waits depends on it.
pub(super) fn random() -> f64 {
    f64::from(getrandom::u32().unwrap_or(u32::MAX / 2)) / (f64::from(u32::MAX) + 1.0)
}
