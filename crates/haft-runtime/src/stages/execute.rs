//! The execution of the tool: retries within the deadline, panics caught, secrets redacted in the outcome.

use std::future::poll_fn;

use haft_core::BoxFuture;
use haft_core::executor::{CallArtifacts, CallContext, Prepared};
use haft_core::implementation::Kind;
use haft_core::outcome::{ErrorCode, Outcome};
use haft_core::secret::{Secret, scrub, scrub_text};
use serde_json::{Map, Value};

use crate::clock;
use crate::function::catch_panic;
use crate::pipeline::{Call, CallParts};
use crate::registry::CompiledTool;
use crate::retry;
use crate::stages::output;

/// The prepared tool, with the arguments of a call.
struct Runnable<'a> {
    plan: &'a CompiledTool,
    prepared: &'a dyn Prepared,
    args: &'a Map<String, Value>,
}

/// Runs the tool.
pub(crate) async fn execute(call: &mut Call) -> Outcome {
    // Only the secrets of an earlier run are kept, even if this run is dropped.
    if let Some(artifacts) = &mut call.artifacts {
        (artifacts.process, artifacts.content) = (None, Vec::new());
    }
    let CallParts { plan, prepared, context, attempt, args } = call.parts();
    // An earlier run may still be active on a thread; it must not share its artifacts with this one.
    context.reset();
    context.attempt = *attempt;
    // Before the run, because that may be dropped.
    *attempt = attempt.saturating_add(1);
    plan.literals.iter().for_each(|secret| context.hide(secret.clone()));
    let empty = Map::new();
    let args = args.as_object().unwrap_or(&empty);
    let tool = Runnable { plan, prepared, args };
    // Dropped with the future if the call is cancelled.
    let end_guard = context.end_guard();
    let mut outcome = run(&tool, context).await;
    if let Err(error) = &outcome
        && retry::may_retry(&plan.spec, error)
    {
        outcome = Box::pin(retry_run(&tool, context, attempt, outcome)).await;
    }
    drop(end_guard);
    if let Some(mut artifacts) = context.take_artifacts() {
        redact(plan, &mut artifacts, &mut outcome);
        if let Some(earlier) = call.artifacts.take() {
            artifacts.exposed.extend(earlier.exposed);
            artifacts.preparation = artifacts.preparation.saturating_add(earlier.preparation);
        }
        call.artifacts = Some(Box::new(artifacts));
    }
    if let Err(error) = &mut outcome
        && error.code == ErrorCode::Timeout
        && call.plan.spec.implementation.kind() != Kind::Http
    {
        // The `http` executor knows how far a request got; of other tools the effects are unknown.
        error.retryable &= retry::is_repeatable(&call.plan.spec);
    }
    // Innermost, so that every stage sees the outcome that the caller will see.
    output::check(&call.plan, &mut outcome);
    outcome
}

/// Runs the tool once. It is started by the first poll, so that a panic in `Prepared::run` itself is caught too.
fn run<'a>(
    tool: &'a Runnable<'a>,
    context: &'a CallContext,
) -> impl Future<Output = Outcome> + Send + use<'a> {
    let Runnable { prepared, args, .. } = *tool;
    let mut work: Option<BoxFuture<'a, Outcome>> = None;
    poll_fn(move |task| {
        catch_panic(|| work.get_or_insert_with(|| prepared.run(context, args)).as_mut().poll(task))
    })
}

/// Runs the tool again until it succeeds or may not be retried; `attempt` continues to count.
async fn retry_run(
    tool: &Runnable<'_>,
    context: &CallContext,
    attempt: &mut u32,
    mut outcome: Outcome,
) -> Outcome {
    let plan = tool.plan;
    let policy = retry::policy(&plan.spec);
    let mut context = context.clone();
    for retries in 0.. {
        let Err(error) = &outcome else { break };
        if !retry::may_retry(&plan.spec, error) {
            break;
        }
        let Some(wait) = retry::wait(&policy, error, retries, retry::random()) else { break };
        // Waiting past the deadline would replace this error by a timeout, which says less.
        if clock::now() + wait >= context.deadline {
            break;
        }
        tokio::time::sleep(wait).await;
        context.attempt = *attempt;
        *attempt = attempt.saturating_add(1);
        outcome = run(tool, &context).await;
    }
    outcome
}

/// Redacts the secrets that the call has seen, and limits the size of its content.
fn redact(plan: &CompiledTool, artifacts: &mut CallArtifacts, outcome: &mut Outcome) {
    let CallArtifacts { exposed, process, content, .. } = artifacts;
    redact_outcome(outcome, exposed);
    if !content.is_empty() {
        for block in &mut *content {
            scrub(block, exposed);
        }
        *content = output::check_content(plan, std::mem::take(content), outcome);
    }
    for text in process.iter_mut().flat_map(|process| [&mut process.stdout, &mut process.stderr]) {
        scrub_text(text, exposed);
    }
}

fn redact_outcome(outcome: &mut Outcome, secrets: &[Secret]) {
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
