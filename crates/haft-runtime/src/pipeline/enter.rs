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
use super::request::{CallTarget, Request};
use crate::limits::Admission;
use crate::registry::{CompiledTool, Entry, ResolvedTool};
use crate::{clock, depth};

/// The longest time that a caller may ask for.
const MAX_CALL: Duration = Duration::from_mins(10);

/// A call that may not run.
pub(super) struct Refused {
    pub(super) error: CallError,
    pub(super) asked: Box<Asked>,
}

impl Pipeline {
    /// Finds the tool, and compiles it where nobody has yet. Nothing is recorded of one that is not there.
    pub(super) async fn find(&self, tool: CallTarget, request: &Request) -> Result<ResolvedTool, CallError> {
        let found = match tool {
            CallTarget::Found(found) => found,
            CallTarget::Named(tool) => {
                let snapshot = self.registry.current();
                snapshot.found(snapshot.resolve_in(&request.principal.tenant, &tool, request.mode)?)
            }
        };
        if let Some(ledger) = &self.ledger
            && ledger.is_failing()
        {
            ledger.probe().await.map_err(|error| unrecordable(&error))?;
        }
        if !found.entry.is_compiled(request.mode.into()) {
            Box::pin(self.compile(&found, request.mode)).await;
        }
        Ok(found)
    }

    /// Compiles a tool that nobody has called yet. A module takes its time, which the checks may not.
    pub async fn compile(&self, found: &ResolvedTool, mode: Mode) {
        let (entry, which) = (&found.entry, mode.into());
        if entry.is_due(which) || entry.runnable(found.open, mode).is_ok() {
            entry.compile(which, &self.registry).await;
        }
    }

    /// Makes the checks of a call that nobody records; [`Pipeline::outcome`] runs it.
    ///
    /// This and what it calls is made anew in the caller: between them there would be little but moves.
    #[inline]
    pub fn begin(&self, found: ResolvedTool, request: Request) -> Result<Call, CallError> {
        if self.ledger.is_some() {
            return Err(CallError::internal("this server records its calls"));
        }
        self.admit(request, found).map_err(|refused| refused.error)
    }

    /// Makes the checks that need no waiting.
    #[inline]
    pub(super) fn admit(&self, request: Request, found: ResolvedTool) -> Result<Call, Box<Refused>> {
        let ResolvedTool { entry, open } = found;
        let timeout = request.timeout;
        let mut asked = Box::new(self.asked(request, entry));
        match self.check(&mut asked, open, timeout) {
            Ok((plan, admission)) => {
                Ok(Call { plan, asked, cancel: None, attempt: 0, admission, left: None })
            }
            Err(error) => Err(Box::new(Refused { error: asked.entry.for_model(error), asked })),
        }
    }

    #[inline]
    fn check(
        &self,
        asked: &mut Asked,
        open: bool,
        timeout: Option<Duration>,
    ) -> Result<(Arc<CompiledTool>, Admission), CallError> {
        let Asked { entry, context, args, .. } = asked;
        entry
            .runnable(open, context.mode)
            .map_err(|refusal| refusal.to_error(&entry.qualified, entry.fault().as_deref()))?;
        let plan = plan(entry, context.mode, &self.registry)?;
        authorise(&plan, context.caller().elevated)?;
        validate(&plan, args)?;
        depth::check(plan.spec.name.as_str())?;
        let admission = self.limits.admit(entry, &plan)?;
        context.deadline =
            context.started + timeout.unwrap_or(plan.deadline).min(MAX_CALL.max(plan.deadline));
        Ok((plan, admission))
    }

    #[inline]
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
