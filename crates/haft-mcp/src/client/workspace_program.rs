//! Calls of stdio servers with `workspace: true`: each runs in a process of its own, in the folder of the workspace.
//!
//! The process ends before the state of the workspace is stored, so that no change is missed, and none is made outside
//! the turn of its call.

use std::sync::Arc;

use haft_core::account::AccountUser;
use haft_core::executor::CallContext;
use haft_core::mcp::{McpServer, Transport};
use haft_core::outcome::{CallError, Outcome};
use haft_core::problem::excerpt;
use haft_core::workspace::WorkspaceFolder;
use serde_json::{Map, Value};
use tokio::sync::Semaphore;

use super::call_timer::{CallTimer, ProgressSink};
use super::clients::{ClientParts, not_connected};
use super::config::{ConfigRenderer, Scrubber};
use super::connection::Link;
use super::executor::call_tool;
use super::handler::NotificationHandler;
use super::message_limit::max_message_bytes;
use super::probe;
use super::stderr::StderrTail;
use super::stdio::{self, Program, StartOptions};
use super::{errors, value};

/// How many of these processes run at once; further calls wait.
const MAX_PROGRAMS: usize = 32;
/// How many lines of standard error an error shows.
const SHOWN_LINES: usize = 3;

/// The processes of servers that work in workspaces.
pub(super) struct WorkspacePrograms(Semaphore);

impl Default for WorkspacePrograms {
    fn default() -> Self {
        Self(Semaphore::new(MAX_PROGRAMS))
    }
}

/// A call in a workspace.
pub(super) struct WorkspaceCall<'a> {
    pub(super) server: &'a McpServer,
    /// Whose accounts the program gets.
    pub(super) user: &'a AccountUser,
    pub(super) workspace: &'a WorkspaceFolder,
    /// The name on the server.
    pub(super) tool: &'a str,
    pub(super) call: &'a CallContext,
    pub(super) args: &'a Map<String, Value>,
}

impl WorkspacePrograms {
    /// Starts the program, makes the call, and waits until the program and its children have ended; `None` where the
    /// time of the call has passed.
    pub(super) async fn call(
        &self,
        parts: &ClientParts,
        job: WorkspaceCall<'_>,
        timer: &Arc<CallTimer>,
    ) -> Option<Outcome> {
        let _permit = timer.limit(self.0.acquire()).await?;
        let tail = StderrTail::default();
        let handler = NotificationHandler::default();
        let started = timer.limit(start(parts, &job, &tail, &handler)).await?;
        let (Program { transport, mut running }, scrubber) = match started {
            Ok(started) => started,
            Err(why) => return Some(Err(not_connected(&job.server.id, &why))),
        };
        // Boxed, because few calls need it.
        let outcome = timer
            .limit(Box::pin(async {
                let service = match probe::serve(handler.clone(), transport).await {
                    Ok(service) => service,
                    Err(error) => {
                        let why = excerpt(&scrubber.clean(errors::connect_message(&error)), 500);
                        return Err(not_connected(&job.server.id, &with_stderr(&job, why, &tail)));
                    }
                };
                let (peer, stateless) = (service.peer().clone(), None);
                let link = Link { peer, stateless, handler: handler.clone(), scrubber: scrubber.clone() };
                make_call(&job, &link, timer).await
            }))
            .await;
        running.kill();
        if let Err(error) = running.wait().await {
            tracing::warn!(server = %job.server.id, %error, "failed to wait for an MCP server in a workspace");
        }
        outcome
    }
}

async fn start(
    parts: &ClientParts,
    job: &WorkspaceCall<'_>,
    tail: &StderrTail,
    handler: &NotificationHandler,
) -> Result<(Program, Scrubber), String> {
    let Transport::Stdio(program) = &job.server.transport else {
        return Err("only a program can run in a workspace".to_owned());
    };
    let program = stdio::confined(program, &job.server.tenant)?;
    let mut renderer = ConfigRenderer::new(job.user.clone(), &parts.secrets);
    renderer.hide_literals(&job.server.transport);
    let max_message_bytes = max_message_bytes(job.server);
    let options = StartOptions { tail, handler, max_message_bytes, workspace: Some(job.workspace) };
    stdio::start(&parts.sandbox, &program, renderer, options).await
}

async fn make_call(job: &WorkspaceCall<'_>, link: &Link, timer: &Arc<CallTimer>) -> Outcome {
    link.scrubber.secrets().into_iter().for_each(|secret| job.call.hide(secret));
    let progress = ProgressSink {
        timer: Arc::clone(timer),
        sink: job.call.events.clone(),
        scrubber: link.scrubber.clone(),
    };
    let response = call_tool(link, job.tool, Arc::new(progress), job.args).await;
    let response: Result<_, CallError> = response.map_err(|error| errors::call_error(&job.server.id, &error));
    let (outcome, attachments) = value::outcome(response?);
    job.call.report_content(attachments);
    outcome
}

/// Adds the last lines of standard error, which often name the cause.
fn with_stderr(job: &WorkspaceCall<'_>, message: String, tail: &StderrTail) -> String {
    let last = tail.last(SHOWN_LINES);
    let Transport::Stdio(program) = &job.server.transport else { return message };
    if let Some(message) = stdio::missing_program(program, &last) {
        return message;
    }
    if last.is_empty() { message } else { format!("{message}; stderr: {}", last.join(" / ")) }
}
