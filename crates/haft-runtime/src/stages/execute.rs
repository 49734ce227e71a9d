//! The execution itself: attempts within the deadline, never a crash, and no secret in the outcome.

use std::future::poll_fn;

use haft_core::BoxFuture;
use haft_core::executor::{CallArtifacts, CallContext};
use haft_core::outcome::Outcome;
use haft_core::secret::{Secret, scrub, scrub_text};
use serde_json::{Map, Value};

use crate::clock;
use crate::function::guarded;
use crate::pipeline::Call;
use crate::registry::CompiledTool;
use crate::retry;
use crate::stages::output;

/// Runs the tool.
pub(crate) async fn execute(call: &mut Call) -> Outcome {
    // Of an earlier run only the secrets count, also where this one is dropped.
    if let Some(left) = &mut call.left {
        (left.process, left.content) = (None, Vec::new());
    }
    let (plan, context, attempt, args) = call.parts();
    // What an earlier run left belongs to that one, which may still be at work on a thread.
    context.reset();
    context.attempt = *attempt;
    // Before the run, which may be dropped.
    *attempt = attempt.saturating_add(1);
    plan.literals.iter().for_each(|secret| context.hide(secret.clone()));
    let empty = Map::new();
    let args = args.as_object().unwrap_or(&empty);
    // Also where the call is dropped.
    let end_guard = context.end_guard();
    let mut outcome = run(plan, context, args).await;
    if let Err(error) = &outcome
        && retry::may_repeat(&plan.spec, error)
    {
        outcome = Box::pin(again(plan, context, args, attempt, outcome)).await;
    }
    drop(end_guard);
    if let Some(mut left) = context.take_artifacts() {
        clean(plan, &mut left, &mut outcome);
        let earlier = call.left.take().map(|left| left.exposed);
        left.exposed.extend(earlier.into_iter().flatten());
        call.left = Some(Box::new(left));
    }
    // Innermost, so that every stage sees what the caller will.
    output::check(&call.plan, &mut outcome);
    outcome
}

/// Runs the tool once. It is begun inside, so that a panic before the first wait is caught as well.
fn run<'a>(
    plan: &'a CompiledTool,
    context: &'a CallContext,
    args: &'a Map<String, Value>,
) -> impl Future<Output = Outcome> + Send {
    let mut work: Option<BoxFuture<'a, Outcome>> = None;
    poll_fn(move |task| {
        guarded(|| work.get_or_insert_with(|| plan.prepared.run(context, args)).as_mut().poll(task))
    })
}

/// Runs the tool again until it succeeds or is not to be tried again; `attempt` counts on.
async fn again(
    plan: &CompiledTool,
    context: &CallContext,
    args: &Map<String, Value>,
    attempt: &mut u32,
    mut outcome: Outcome,
) -> Outcome {
    let policy = retry::policy(&plan.spec);
    let mut context = context.clone();
    for repeated in 0.. {
        let Err(error) = &outcome else { break };
        if !retry::may_repeat(&plan.spec, error) {
            break;
        }
        let Some(wait) = retry::wait(&policy, error, repeated, random()) else { break };
        // Waiting past the deadline would only replace a clear error by a vague one.
        if clock::now() + wait >= context.deadline {
            break;
        }
        tokio::time::sleep(wait).await;
        context.attempt = *attempt;
        *attempt = attempt.saturating_add(1);
        outcome = run(plan, &context, args).await;
    }
    outcome
}

/// Keeps the secrets that the call has seen out of what it came to, and what came beside it within bounds.
fn clean(plan: &CompiledTool, left: &mut CallArtifacts, outcome: &mut Outcome) {
    let CallArtifacts { exposed, process, content } = left;
    keep_secrets_out(outcome, exposed);
    if !content.is_empty() {
        for block in &mut *content {
            scrub(block, exposed);
        }
        *content = output::beside(plan, std::mem::take(content), outcome);
    }
    for text in process.iter_mut().flat_map(|process| [&mut process.stdout, &mut process.stderr]) {
        scrub_text(text, exposed);
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
