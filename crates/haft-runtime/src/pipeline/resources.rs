//! Calls of agents and retrieval pipelines. They pass the same steps as calls of tools.
//!
//! role → allow-list → validate (by the surface) → authorise (policy rules) → admit (rate, concurrency) → execute (within
//! deadline and cancellation) → record → answer.
//!
//! A call of an agent starts a run; its record ends when the run is stored, which has its own rows. Such calls cannot
//! wait for approval: a rule that asks for one rejects them.

use std::sync::Arc;

use haft_core::call::CallRecord;
use haft_core::callable::{CallableKind, CallableResource};
use haft_core::id::ToolId;
use haft_core::outcome::{CallError, ErrorCode, Outcome};
use haft_core::policy::Effect;
use haft_core::principal::Principal;
use serde_json::Value;

use super::admission::Admission;
use super::call::CallDraft;
use super::checks::{check_role, not_recorded, policy_denied};
use super::record_guard::{RecordGuard, Running};
use super::{Callee, MAX_REQUEST_TIMEOUT, Pipeline, RejectedCall, Request};
use crate::depth;
use crate::limits::LimitedSubject;
use crate::policy::Subject;

/// A call of an agent or a retrieval pipeline that was admitted.
struct ResourceCall {
    draft: CallDraft,
    admission: Admission,
}

impl Running for ResourceCall {
    fn finish(self, outcome: Outcome) -> (CallRecord, Admission) {
        let Self { mut draft, admission } = self;
        draft.steps.execute_ms = draft.step();
        (draft.finished_record(outcome), admission)
    }
}

impl Pipeline {
    /// Calls an agent or a retrieval pipeline, and records the call.
    ///
    /// `input` is what the surface has read of the request, or why that is invalid. `work` starts the run or makes the
    /// query; it returns its answer, and the value for the record. Dropping the future cancels the call.
    pub async fn call_resource<I, T, W>(
        self: &Arc<Self>,
        resource: &CallableResource,
        request: Request,
        input: Result<I, CallError>,
        work: impl FnOnce(I) -> W,
    ) -> Result<T, CallError>
    where
        W: Future<Output = Result<(T, Value), CallError>>,
    {
        check_role(&request.principal)?;
        self.check_ledger().await?;
        let callee = Callee {
            id: ToolId(resource.id),
            name: resource.qualified().into(),
            revision: resource.revision,
        };
        let mut draft = self.draft(request, callee);
        let admitted = match self.check_resource(resource, &mut draft, input) {
            Ok(input) => self.admit_resource(resource, &draft).await.map(|admission| (input, admission)),
            Err(error) => Err(error),
        };
        match admitted {
            Ok((input, admission)) => self.run_resource(ResourceCall { draft, admission }, work(input)).await,
            Err(error) => Err(self.record_rejection(Box::new(RejectedCall { error, draft })).await),
        }
    }

    /// Allow-list, validate, authorise.
    fn check_resource<I>(
        &self,
        resource: &CallableResource,
        draft: &mut CallDraft,
        input: Result<I, CallError>,
    ) -> Result<I, CallError> {
        check_allow_list(resource, draft.context.principal())?;
        let subject = Subject::from(resource);
        let depth = draft.context.lineage.depth.max(depth::current());
        let input = depth::check(&resource.qualified(), depth)
            .and(input)
            .map_err(|error| self.certain_denial(draft, subject).unwrap_or(error))?;
        let decision = self.authorise(draft, subject);
        match (decision.effect, decision.rule.as_deref()) {
            (Effect::Allow, _) => {}
            (Effect::Deny, rule) => return Err(policy_denied(rule, decision.reason.as_deref())),
            (Effect::Approve, rule) => return Err(cannot_wait(resource, rule)),
        }
        let timeout = draft.invocation.timeout_ms.map(std::time::Duration::from_millis);
        let timeout = timeout.map_or(MAX_REQUEST_TIMEOUT, |timeout| timeout.min(MAX_REQUEST_TIMEOUT));
        draft.context.deadline = draft.context.started + timeout;
        draft.steps.check_ms = draft.step();
        Ok(input)
    }

    async fn admit_resource(
        &self,
        resource: &CallableResource,
        draft: &CallDraft,
    ) -> Result<Admission, CallError> {
        let (admission, rates) = self.admit_uncounted(LimitedSubject::Resource(resource), draft)?;
        if self.limits.is_shared() && !rates.is_empty() {
            return Box::pin(self.count_shared(admission, &rates)).await;
        }
        self.count(admission, &rates)
    }

    async fn run_resource<T>(
        &self,
        call: ResourceCall,
        work: impl Future<Output = Result<(T, Value), CallError>>,
    ) -> Result<T, CallError> {
        let mut guard = RecordGuard::new(call, self.ledger.as_ref(), self.observer.as_ref());
        let done = match guard.call() {
            Some(call) => self.execute_resource(call, work).await,
            None => Err(CallError::internal("the call has already ended")),
        };
        let (answer, outcome) = match done {
            Ok((answer, value)) => (Ok(answer), Ok(value)),
            Err(error) => (Err(error.clone()), Err(error)),
        };
        let record = guard.finish(outcome)?;
        let recorded = self.record(record).await;
        guard.disarm();
        recorded.map_err(not_recorded)?;
        answer
    }

    async fn execute_resource<T>(
        &self,
        call: &mut ResourceCall,
        work: impl Future<Output = Result<T, CallError>>,
    ) -> Result<T, CallError> {
        let ResourceCall { draft, admission } = call;
        let deadline = draft.context.deadline;
        let cancel = self.call_stops.token(draft.context.principal());
        let work = async {
            if admission.may_wait() {
                admission.acquire().await?;
                draft.steps.admit_ms = draft.step();
            }
            work.await
        };
        tokio::select! {
            biased;
            done = work => done,
            () = tokio::time::sleep_until(deadline.into()) => {
                Err(CallError::new(ErrorCode::Timeout, "the call timed out").retryable(true))
            }
            () = cancel.cancelled() => Err(CallError::new(ErrorCode::Cancelled, "the call was cancelled")),
        }
    }
}

/// Checks that the allow-list of the principal contains the agent or the pipeline.
fn check_allow_list(resource: &CallableResource, principal: &Principal) -> Result<(), CallError> {
    let CallableResource { kind, slug, .. } = resource;
    if principal.allows_resource(*kind, slug) {
        return Ok(());
    }
    let tools = match kind {
        CallableKind::Agent => ", and the tools that it needs",
        CallableKind::Pipeline => "",
    };
    let (kind, name) = (kind.as_str(), resource.qualified());
    let message =
        format!("the allow-list of the token does not contain {kind} `{slug}`; add `{name}`{tools}");
    Err(CallError::new(ErrorCode::Forbidden, message)
        .for_model(format!("{kind} `{slug}` is not among what may be called here")))
}

/// Returns the error of a call that a rule holds back although it cannot wait.
fn cannot_wait(resource: &CallableResource, rule: Option<&str>) -> CallError {
    let rule = rule.unwrap_or_default();
    let what = match resource.kind {
        CallableKind::Agent => "the start of an agent",
        CallableKind::Pipeline => "a query of a pipeline",
    };
    let message = format!(
        "the policy rule `{rule}` requires approval, but {what} cannot wait for approval; \
         limit the rule to tools (`match.tools`), or deny `{}`",
        resource.qualified()
    );
    CallError::new(ErrorCode::PolicyDenied, message).for_model("the call is not allowed")
}
