//! Starts the run that answers a request, and reads its answer.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{self, Stream, StreamExt as _};
use haft_agent::model::ModelMessage;
use haft_agent::run::RunEvent;
use haft_core::chat::MessageRole;
use haft_core::id::RunId;
use haft_core::name::TenantId;
use haft_core::outcome::ErrorCode;
use haft_core::run::{Run, RunStatus, StepBody};
use tokio::time::Instant;

use super::answer::{AnswerReader, Piece, TextMode};
use super::error::OpenAiError;
use super::overrides::Overrides;
use haft_platform::Installation;
use haft_platform::agents::visible_agent;
use haft_platform::identity::Identity;
use haft_platform::runs::{self, RunOverrides, StartRun};

/// What is requested of an agent.
pub(super) struct AnswerRequest {
    /// The slug of the agent.
    pub(super) model: String,
    /// The conversation.
    pub(super) messages: Vec<ModelMessage>,
    /// More instructions for this answer.
    pub(super) instructions: Option<String>,
    pub(super) overrides: Overrides,
}

/// Starts the run that answers a request.
pub(super) async fn start(
    app: &Arc<Installation>,
    identity: &Identity,
    request: AnswerRequest,
) -> Result<Run, OpenAiError> {
    let AnswerRequest { model, mut messages, instructions, overrides } = request;
    let mode = app.settings().mode;
    let agent = visible_agent(app, identity, &model).await.map_err(|error| match error.code {
        ErrorCode::NotFound => OpenAiError::no_model(&model),
        _ => error.into(),
    })?;
    let resolved = match agent.runnable(mode) {
        Some((_, definition)) => overrides.resolve(definition)?,
        // The engine says why it cannot run.
        None => RunOverrides::default(),
    };
    let instructions = take_instructions(&mut messages, instructions);
    if messages.is_empty() {
        let message = "expected a message of the user after the instructions";
        return Err(OpenAiError::invalid("messages", message));
    }
    let started = StartRun {
        mode,
        surface: "openai",
        overrides: RunOverrides { instructions, ..resolved },
        ..StartRun::new(agent, identity.principal(), messages)
    };
    Ok(app.runs().start(started).await?)
}

/// Returns the instructions of a request: the messages of the system at the start of the conversation belong to them.
/// Later ones stay where they are.
fn take_instructions(messages: &mut Vec<ModelMessage>, given: Option<String>) -> Option<String> {
    let leading = messages.iter().take_while(|message| message.role == MessageRole::System).count();
    let taken = messages.drain(..leading).map(|message| message.text());
    let all: Vec<String> = given.into_iter().chain(taken).filter(|text| !text.trim().is_empty()).collect();
    (!all.is_empty()).then(|| all.join("\n\n"))
}

/// Returns how the text of a run is passed on.
pub(super) fn text_mode(run: &Run) -> TextMode {
    if run.definition.output_schema.is_some() { TextMode::FinalOnly } else { TextMode::Live }
}

/// Streams the answer of a run. A client that goes away before the end cancels the run; one that waits for an approval
/// stays, and goes on when it is decided.
pub(super) fn pieces(
    app: &Arc<Installation>,
    identity: &Identity,
    run: &Run,
    wait: Option<Duration>,
) -> impl Stream<Item = Piece> + Send + 'static + use<> {
    let tenant = identity.tenant.clone();
    let answer = Answer {
        events: Box::pin(runs::follow(app.runs(), &tenant, run.id)),
        access_end: Box::pin(identity.stream_end(app)),
        reader: AnswerReader::new(text_mode(run)),
        ready: VecDeque::new(),
        wait,
        ended: false,
        guard: CancelOnDrop { app: Arc::clone(app), tenant, run: run.id, armed: true },
    };
    stream::unfold(answer, async |mut answer| answer.next().await.map(|piece| (piece, answer)))
}

/// Reads the answer of a run.
struct Answer {
    events: Pin<Box<dyn Stream<Item = RunEvent> + Send>>,
    /// Completes when the token no longer gives access, or the server stops.
    access_end: Pin<Box<dyn Future<Output = ()> + Send>>,
    reader: AnswerReader,
    ready: VecDeque<Piece>,
    /// How long to wait for a decision about a call.
    wait: Option<Duration>,
    ended: bool,
    guard: CancelOnDrop,
}

impl Answer {
    async fn next(&mut self) -> Option<Piece> {
        loop {
            if let Some(piece) = self.ready.pop_front() {
                return Some(piece);
            }
            if self.ended {
                return None;
            }
            let event = self.event(None).await?;
            let event = match event {
                RunEvent::End { status: RunStatus::AwaitingApproval, .. } => self.decided(event).await?,
                other => other,
            };
            self.read(event).await;
        }
    }

    /// Returns the event after the decision, or the given one if nobody decides in time.
    async fn decided(&mut self, paused: RunEvent) -> Option<RunEvent> {
        let Some(wait) = self.wait else { return Some(paused) };
        let deadline = Instant::now() + wait;
        match self.event(Some(deadline)).await {
            Some(event) => Some(event),
            None if Instant::now() >= deadline => Some(paused),
            None => None,
        }
    }

    /// Returns the next event; `None` after the deadline, or if the caller has lost access.
    async fn event(&mut self, deadline: Option<Instant>) -> Option<RunEvent> {
        let timeout = async {
            match deadline {
                Some(deadline) => tokio::time::sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            event = self.events.next() => event,
            () = &mut self.access_end => None,
            () = timeout => None,
        }
    }

    async fn read(&mut self, event: RunEvent) {
        for mut piece in self.reader.read(event) {
            if let Piece::End(end) = &mut piece {
                // The run has ended, or waits for people: nothing is cancelled any more.
                (self.ended, self.guard.armed) = (true, false);
                let CancelOnDrop { app, tenant, run, .. } = &self.guard;
                end.finish_reason = finish_reason(app, tenant, *run, end.last_answer).await;
            }
            self.ready.push_back(piece);
        }
    }
}

/// Returns why the model ended its last answer.
pub(super) async fn finish_reason(app: &Installation, tenant: &TenantId, run: RunId, step: u32) -> String {
    let steps = match app.store().runs().steps(tenant, run, step.saturating_sub(1), 1).await {
        Ok(steps) => steps,
        Err(error) => {
            tracing::warn!(run = %run, error = &error as &dyn std::error::Error, "cannot read a step");
            Vec::new()
        }
    };
    steps.into_iter().next().map_or_else(String::new, |step| match step.body {
        StepBody::Answer(answer) => answer.finish_reason,
        _ => String::new(),
    })
}

/// Cancels a run whose client is gone.
struct CancelOnDrop {
    app: Arc<Installation>,
    tenant: TenantId,
    run: RunId,
    armed: bool,
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        if !self.armed {
            return;
        }
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let (app, tenant, run) = (Arc::clone(&self.app), self.tenant.clone(), self.run);
        runtime.spawn(async move {
            if let Err(error) = app.runs().cancel(&tenant, run).await {
                tracing::warn!(run = %run, error = error.message, "cannot cancel a run whose client is gone");
            }
        });
    }
}
