//! A tool call: from the name that a client says to the outcome that it reads.
#![expect(deprecated, reason = "older clients still ask for log lines")]

use std::sync::Arc;
use std::sync::atomic::Ordering;

use haft_core::implementation::Implementation;
use haft_core::name::{BundleSlug, ToolName};
use haft_core::outcome::{CallError, ErrorCode, Outcome};
use haft_core::reference::ToolRef;
use haft_runtime::pipeline::{CallTarget, Labels, Request};
use haft_runtime::registry::{Entry, Snapshot};
use rmcp::model::{CallToolRequestParams, CallToolResponse, CallToolResult, LoggingLevel};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::{Map, Value};

use super::compact;
use super::handler::McpServer;
use super::seat::{ClientContext, View};
use super::watcher::Watcher;
use super::{content, listing};

impl McpServer {
    /// Answers a call of a client.
    pub(super) async fn answer_call(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if let Some(fixtures) = &self.shared.fixtures {
            if let Some(answered) = Box::pin(fixtures.call(&request, &context)).await {
                return answered;
            }
            if request.name.starts_with("test_trigger_") {
                // Nobody may be listening.
                let _ = self.shared.grown.send(self.seat(&context.extensions)?.owner());
            }
        }
        let (name, arguments) = (request.name, request.arguments.unwrap_or_default());
        if name != compact::CALL || !self.means_ours(&context)? {
            return self.run(&name, arguments, &context).await.map(CallToolResponse::Complete);
        }
        // A model reads what went wrong in the result; errors of the protocol are not shown to it.
        let called = match compact::meant(arguments) {
            Ok((meant, inner)) => self.run(&meant, inner, &context).await,
            Err(error) => Err(error),
        };
        let result = called.unwrap_or_else(|error| {
            content::failure(&CallError::new(ErrorCode::InvalidArguments, error.message.to_string()))
        });
        Ok(CallToolResponse::Complete(result))
    }

    /// Calls the tool that a client names.
    async fn run(
        &self,
        name: &str,
        mut arguments: Map<String, Value>,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResult, ErrorData> {
        let seat = self.seat(&context.extensions)?;
        let entry = self.meant(seat, name, &mut arguments)?;
        let called = self.called(seat, &entry, arguments, Some(context)).await;
        let result = called.ok_or_else(|| ErrorData::internal_error("the call was cancelled", None))?;
        Ok(content::for_version(result, context.protocol_version().as_ref()))
    }

    /// Calls a tool that was found; `None` where the call was cancelled. Without a context nothing is told meanwhile,
    /// and dropping the future is the only way to cancel it.
    pub(super) async fn called(
        &self,
        seat: &ClientContext,
        entry: &Arc<Entry>,
        arguments: Map<String, Value>,
        context: Option<&RequestContext<RoleServer>>,
    ) -> Option<CallToolResult> {
        if !seat.may_call {
            let error = CallError::new(
                ErrorCode::Forbidden,
                "this token may see tools, but not call them; use one with the role `caller`",
            );
            return Some(content::failure(&error));
        }
        let (outcome, beside) = self.outcome(seat, entry, arguments, context).await?;
        if entry.tool.spec.name.as_str() == compact::SEARCH
            && let Ok(value) = &outcome
            && self.shared.found.keep(seat, value)
        {
            // Nobody may be listening.
            let _ = self.shared.grown.send(seat.owner());
        }
        let definition = entry.definition(seat.mode.into());
        let declared = definition.is_some_and(|(_, spec)| listing::describes_object(&spec.output_schema));
        let is_passed_on = matches!(entry.tool.spec.implementation, Implementation::Mcp(_));
        let details = outcome.as_ref().err().filter(|_| is_passed_on).and_then(said_by_server);
        let mut result = content::result(outcome, &beside, declared);
        if details.is_some() {
            result.structured_content = details;
        }
        Some(result)
    }

    /// Finds the tool that a client means. The search of a view finds only what is in it.
    pub(super) fn meant(
        &self,
        seat: &ClientContext,
        name: &str,
        arguments: &mut Map<String, Value>,
    ) -> Result<Arc<Entry>, ErrorData> {
        let snapshot = self.shared.registry.snapshot();
        let found = find(&snapshot, seat, name);
        let (View::Bundle(slug), Err(_), true) = (&seat.view, &found, name == compact::SEARCH) else {
            return found;
        };
        let Some(search) = self.search_of(&snapshot, seat) else { return found };
        arguments.insert("bundle".to_owned(), slug.as_str().into());
        Ok(search)
    }

    /// Runs the call; `None` where the client cancelled it or went away. Dropping it makes its record say so.
    async fn outcome(
        &self,
        seat: &ClientContext,
        entry: &Arc<Entry>,
        arguments: Map<String, Value>,
        context: Option<&RequestContext<RoleServer>>,
    ) -> Option<(Outcome, Vec<Value>)> {
        let watching = context.and_then(|context| {
            let asked = context.meta.log_level().is_some_and(wants_lines);
            let lines = asked || self.lines.load(Ordering::Relaxed);
            Watcher::of(context, lines, entry.tool.spec.name.as_str(), &self.gone)
        });
        let (watcher, events) = watching.map_or((None, None), |(watcher, sink)| (Some(watcher), Some(sink)));
        let request = Request {
            principal: self.shared.pipeline.principal(seat.tenant.clone(), seat.caller.clone()),
            args: arguments,
            mode: seat.mode,
            surface: "mcp",
            timeout: None,
            events,
            labels: Labels::of_request(seat.request_id.clone()),
        };
        let tool = CallTarget::Resolved(self.shared.registry.current().resolved(entry));
        // Boxed, as it is moved on to where it is awaited.
        let call = Box::pin(self.shared.pipeline.call(tool, request));
        let call = async {
            match watcher {
                Some(watcher) => watcher.during(call).await,
                None => call.await,
            }
        };
        let answer = match context {
            Some(context) => tokio::select! {
                biased;
                answer = call => answer,
                () = context.ct.cancelled() => return None,
            },
            None => call.await,
        };
        Some(match answer {
            Ok(answer) => {
                let record = Arc::unwrap_or_clone(answer.record);
                (record.error.map_or_else(|| Ok(record.value.unwrap_or_default()), Err), record.content)
            }
            Err(error) => (Err(unapproved(error, &entry.tool.spec.name)), Vec::new()),
        })
    }
}

/// Returns what a server of tools said of a failure, which is said again. Other details are haft's own, for operators.
fn said_by_server(error: &CallError) -> Option<Value> {
    error.details.as_deref().filter(|_| error.code == ErrorCode::ExecutionFailed).cloned()
}

/// Says what to do about a call that needs an approval: nobody can be asked for one yet.
fn unapproved(error: CallError, name: &ToolName) -> CallError {
    if error.code != ErrorCode::ApprovalRequired {
        return error;
    }
    error.for_model(format!(
        "`{name}` needs an approval, which cannot be given here yet: a person has to call it, or an elevated token"
    ))
}

/// The output of a tool is worth no more than the level of information.
pub(super) fn wants_lines(level: LoggingLevel) -> bool {
    matches!(level, LoggingLevel::Debug | LoggingLevel::Info)
}

/// Finds the tool that a client means. What is not in view is not there.
pub(super) fn find(snapshot: &Snapshot, seat: &ClientContext, name: &str) -> Result<Arc<Entry>, ErrorData> {
    let unknown = |why: String| ErrorData::invalid_params(why, None);
    let reference: ToolRef = name.parse().map_err(|_| unknown(format!("there is no tool `{name}`")))?;
    let entry = match snapshot.resolve_called(&seat.tenant, name, &reference, seat.mode) {
        Ok(entry) if seat.sees(&entry.tool.bundle) => entry,
        resolved => {
            let within = in_view(snapshot, seat, name);
            within.filter(|entry| seat.sees(&entry.tool.bundle)).ok_or_else(|| {
                unknown(resolved.map_or_else(
                    |error| error.to_string(),
                    |_| format!("there is no tool `{name}` in this view"),
                ))
            })?
        }
    };
    Ok(Arc::clone(entry))
}

/// Finds what searches for a client: a tool in view or, for the view of a bundle, the one that comes with haft.
pub(super) fn search(snapshot: &Snapshot, seat: &ClientContext) -> Option<Arc<Entry>> {
    let own = find(snapshot, seat, compact::SEARCH).ok();
    own.or_else(|| {
        let reference: ToolRef = format!("{}:{}", BundleSlug::built_in(), compact::SEARCH).parse().ok()?;
        let entry = snapshot.resolve_in(&seat.tenant, &reference, seat.mode).ok()?;
        snapshot.is_runnable(entry, seat.mode).then(|| Arc::clone(entry))
    })
}

/// Finds a tool by its bare name in the view of one bundle, where that name means another one elsewhere.
fn in_view<'a>(snapshot: &'a Snapshot, seat: &'a ClientContext, name: &str) -> Option<&'a Arc<Entry>> {
    let View::Bundle(slug) = &seat.view else { return None };
    let reference: ToolRef = format!("{slug}:{name}").parse().ok()?;
    snapshot.resolve_in(&seat.tenant, &reference, seat.mode).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_a_server_said_itself_is_passed_on() {
        let details = json!({"n": 1});
        for (code, expected) in [
            (ErrorCode::ExecutionFailed, Some(details.clone())),
            (ErrorCode::InvalidOutput, None),
            (ErrorCode::InvalidArguments, None),
        ] {
            let error = CallError::new(code, "no").with_details(details.clone());
            assert_eq!(said_by_server(&error), expected, "{code:?}");
        }
    }
}
