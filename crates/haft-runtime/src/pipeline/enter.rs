//! How a call comes in: the tool is found, and the checks that need no waiting are made.

use std::sync::Arc;
use std::time::Duration;

use haft_core::executor::CallContext;
use haft_core::outcome::CallError;
use haft_core::runnable::Mode;
use serde_json::Value;

use super::Pipeline;
use super::call::{Asked, Call};
use super::checks::{authorise, plan, unrecordable, validate};
use super::request::{Request, Wanted};
use crate::registry::{Entry, Found};
use crate::{clock, depth};

/// The longest time that a caller may ask for.
const LONGEST_CALL: Duration = Duration::from_mins(10);

/// A call that may not run.
pub(super) struct Refused {
    pub(super) error: CallError,
    pub(super) asked: Asked,
}

impl Pipeline {
    /// Finds the tool, and compiles it where nobody has yet. Nothing is recorded of one that is not there.
    pub(super) async fn find(&self, tool: Wanted, request: &Request) -> Result<Found, CallError> {
        let found = match tool {
            Wanted::Found(found) => found,
            Wanted::Named(tool) => {
                let snapshot = self.registry.current();
                snapshot.found(snapshot.resolve_in(&request.principal.tenant, &tool, request.mode)?)
            }
        };
        if let Some(ledger) = &self.ledger
            && ledger.is_failing()
        {
            ledger.probe().await.map_err(unrecordable)?;
        }
        if !found.entry.is_compiled(request.mode.into()) {
            Box::pin(self.compile(&found, request.mode)).await;
        }
        Ok(found)
    }

    /// Compiles a tool that nobody has called yet. A module takes its time, which the checks may not.
    pub async fn compile(&self, found: &Found, mode: Mode) {
        let (entry, which) = (&found.entry, mode.into());
        if entry.is_due(which) || entry.runnable(found.open, mode).is_ok() {
            entry.compile(which, &self.registry).await;
        }
    }

    /// Makes the checks of a call that nobody records; [`Pipeline::outcome`] runs it.
    pub fn begin(&self, found: Found, request: Request) -> Result<Box<Call>, CallError> {
        if self.ledger.is_some() {
            return Err(CallError::internal("this server records its calls"));
        }
        self.admit(request, found).map_err(|refused| refused.error)
    }

    /// Makes the checks that need no waiting.
    pub(super) fn admit(&self, request: Request, found: Found) -> Result<Box<Call>, Box<Refused>> {
        let Found { entry, open } = found;
        let (mode, timeout) = (request.mode, request.timeout);
        let planned = entry
            .runnable(open, mode)
            .map_err(|refusal| refusal.to_error(&entry.qualified, entry.fault().as_deref()))
            .and_then(|()| plan(&entry, mode, &self.registry))
            .and_then(|plan| authorise(&plan, request.principal.caller.elevated).map(|()| plan));
        let mut asked = self.asked(request, entry);
        let admitted = planned.and_then(|plan| {
            validate(&plan, &mut asked.args)?;
            depth::check(plan.spec.name.as_str())?;
            Ok((self.limits.admit(&asked.entry, &plan)?, plan))
        });
        match admitted {
            Ok((admission, plan)) => {
                let time = timeout.unwrap_or(plan.deadline).min(LONGEST_CALL.max(plan.deadline));
                asked.context.deadline = asked.context.started + time;
                Ok(Box::new(Call { plan, asked, cancel: None, attempt: 0, admission, left: None }))
            }
            Err(error) => Err(Box::new(Refused { error: asked.entry.for_model(error), asked })),
        }
    }

    fn asked(&self, request: Request, entry: Arc<Entry>) -> Asked {
        let Request { principal, args, mode, surface, events, labels, .. } = request;
        let started = clock::now();
        let started_at = self.ledger.as_ref().map(|_| self.clock.now());
        let id = started_at.map_or_else(clock::passing_id, clock::call_id);
        let mut context = CallContext::of(id, principal, started..started);
        context.mode = mode;
        context.events = events;
        context.workspace.clone_from(&self.workspace);
        let args = Value::Object(args);
        Asked {
            revision: entry.definition(mode.into()).map_or(entry.tool.revision, |(number, _)| number),
            entry,
            context,
            args_digest: labels
                .as_ref()
                .and_then(|labels| labels.idempotency_key.as_ref())
                .map(|_| haft_core::hash::of_args(&args)),
            args,
            surface,
            labels,
            started_at,
        }
    }
}
