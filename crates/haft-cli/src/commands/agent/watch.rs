//! Watches a run to its end: prints its events, asks about approvals, stops it at Ctrl-C.

use std::time::Duration;

use haft_api::run::RunView;
use haft_core::id::ApprovalId;
use haft_core::run::RunStatus;
use serde_json::{Value, json};
use tokio::signal::unix::Signal;

use super::approve;
use super::lines::Lines;
use super::printer::{RunEnd, RunPrinter};
use crate::client::{Client, EventStream, Request};
use crate::context::Context;
use crate::error::CliError;
use crate::output::Output;
use crate::view;

/// How long to wait before a stream that ended too early is opened again.
const RETRY_DELAY: Duration = Duration::from_millis(300);
/// How often a stream that ended too early is opened again.
const MAX_RETRIES: u32 = 20;

/// A run that is watched.
pub(in crate::commands) struct Watch<'a> {
    pub(in crate::commands) client: &'a Client,
    pub(in crate::commands) output: &'a Output,
    pub(in crate::commands) lines: &'a mut Lines,
    /// Ctrl-C.
    pub(in crate::commands) interrupt: &'a mut Signal,
}

/// What happened while the stream was read.
enum Step {
    /// The run ended or waits; the stream is closed.
    End(RunEnd),
    /// The connection was lost.
    Lost,
    /// Ctrl-C was pressed.
    Interrupted,
}

impl Watch<'_> {
    /// Prints the events of a run until it has ended, or waits for a person who cannot be asked here. Returns the data of
    /// its last event.
    pub(in crate::commands) async fn run(&mut self, stream: EventStream) -> Result<RunEnd, CliError> {
        // The first stream ends when the run waits; one that is opened later goes on.
        let (mut stream, mut follows, mut retries) = (stream, false, 0);
        let mut printer = RunPrinter::new(self.output);
        loop {
            match self.read(&mut stream, &mut printer).await? {
                Step::End(end) if end.status != RunStatus::AwaitingApproval => return Ok(end),
                Step::End(end) => {
                    if !self.ask(&mut printer).await? {
                        return Ok(end);
                    }
                    if follows {
                        continue;
                    }
                }
                Step::Interrupted => {
                    self.stop(&printer).await?;
                    printer.break_line()?;
                    continue;
                }
                Step::Lost if retries < MAX_RETRIES && printer.run.is_some() => {
                    retries += 1;
                    tokio::time::sleep(RETRY_DELAY).await;
                }
                Step::Lost => {
                    return Err(CliError::InvalidResponse { url: self.client.location(), status: 200 });
                }
            }
            let Some(run) = printer.run else {
                return Err(CliError::InvalidResponse { url: self.client.location(), status: 200 });
            };
            stream = self.client.stream(Request::get(format!("/api/runs/{run}/events"))).await?;
            printer.restart();
            follows = true;
        }
    }

    async fn read(
        &mut self,
        stream: &mut EventStream,
        printer: &mut RunPrinter<'_>,
    ) -> Result<Step, CliError> {
        loop {
            tokio::select! {
                event = stream.next_event() => {
                    let Some(event) = event else { return Ok(Step::Lost) };
                    if let Some(end) = printer.event(&event)? {
                        return Ok(Step::End(end));
                    }
                }
                _ = self.interrupt.recv() => return Ok(Step::Interrupted),
            }
        }
    }

    /// Asks about every call that waits; returns whether all were decided.
    async fn ask(&mut self, printer: &mut RunPrinter<'_>) -> Result<bool, CliError> {
        while let Some(call) = printer.waiting.first().cloned() {
            let approval = call.approval;
            let decision = tokio::select! {
                decision = approve::ask(&call, self.lines, self.output) => decision,
                _ = self.interrupt.recv() => {
                    self.output.note("");
                    self.stop(printer).await?;
                    return Ok(true);
                }
            };
            let Some(approved) = decision else {
                self.output.note(&format!("the run waits; decide with `haft approval approve {approval}`"));
                return Ok(false);
            };
            let sent = approve::decide(self.client, approval, approved).await;
            printer.decide(approval);
            match sent {
                // Somebody else decided first.
                Err(CliError::Api(error)) if error.code == "conflict" => self.output.note(&error.message),
                other => other?,
            }
        }
        Ok(true)
    }

    async fn stop(&self, printer: &RunPrinter<'_>) -> Result<(), CliError> {
        let Some(run) = printer.run else { return Ok(()) };
        let path = format!("/api/runs/{run}/cancel");
        match self.client.data(Request::post(path, json!({}))).await {
            // It has just ended.
            Err(CliError::Api(error)) if error.code == "conflict" => Ok(()),
            other => other.map(drop),
        }
    }
}

/// Returns the error of a run that did not succeed, and prints the approvals that it waits for.
pub(in crate::commands) fn ended(run: &Value, context: &Context) -> Result<(), CliError> {
    let RunView { status, error, waiting, .. } = view::read(run)?;
    for call in waiting {
        let id = ApprovalId(call.approval_id);
        let text = format!("decide with `haft approval approve {id}` or `haft approval deny {id}`");
        context.output.note(&text);
    }
    RunEnd { status, error }.result()
}

impl RunEnd {
    /// Returns the error of a run that did not succeed.
    pub(in crate::commands) fn result(self) -> Result<(), CliError> {
        let (code, message) = match (self.status, self.error) {
            (RunStatus::Success, _) => return Ok(()),
            (RunStatus::AwaitingApproval, _) => {
                ("approval_required".to_owned(), "the run waits for approval".to_owned())
            }
            (_, Some(error)) => (error.code, error.message),
            (RunStatus::Cancelled, None) => ("cancelled".to_owned(), "the run was stopped".to_owned()),
            (status, None) => ("execution_failed".to_owned(), format!("its status is `{status}`")),
        };
        Err(CliError::RunFailed { code, message })
    }
}
