//! A tool call: resolving the name that a client sends, running it through the pipeline, and writing its result.
#![expect(deprecated, reason = "clients of older versions request log messages with `logging/setLevel`")]

use std::sync::Arc;
use std::sync::atomic::Ordering;

use haft_core::implementation::Implementation;
use haft_core::name::BundleSlug;
use haft_core::outcome::{CallError, ErrorCode, Outcome};
use haft_core::reference::ToolRef;
use haft_runtime::pipeline::{CallTarget, CompletedCall, Request};
use haft_runtime::registry::{Entry, Snapshot};
use rmcp::model::{
    CallToolRequestMethod, CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities,
    ConstString as _, InputRequiredResult, InputResponses, LoggingLevel, ProtocolVersion,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::{Map, Value};

use super::approvals::{Elicitation, ElicitationOutcome, answered_wait, opens_pages, shows_forms};
use super::client_context::{ClientContext, View};
use super::compact;
use super::handler::McpServer;
use super::notifier::CallNotifier;
use super::{apps, content, extension};

/// The metadata of a result that holds warnings, for example that the tool is deprecated.
const WARNINGS: &str = "haft/warnings";

/// How often a client is asked during one call: for the accounts that the tool needs, and for approval.
const MAX_QUESTIONS: usize = 4;

impl McpServer {
    /// Handles `tools/call`.
    pub(super) async fn handle_call(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if let Some(result) = extension::handle(self, CallToolRequestMethod::VALUE, &request, &context).await
        {
            return extension::response::<CallToolResult, _>(result?);
        }
        let (name, arguments) = (request.name, request.arguments.unwrap_or_default());
        let responses = request.input_responses.as_ref();
        if name != compact::CALL || !self.is_call_tool(&context)? {
            return self.call_by_name(&name, arguments, responses, &context).await;
        }
        // An error is a result here, because clients do not show protocol errors to the model.
        let called = match compact::parse_call(arguments) {
            Ok((name, arguments)) => self.call_by_name(&name, arguments, responses, &context).await,
            Err(error) => Err(error),
        };
        Ok(called.unwrap_or_else(|error| {
            let error = CallError::new(ErrorCode::InvalidArguments, error.message.to_string());
            CallToolResponse::Complete(content::failure(&error))
        }))
    }

    /// Resolves a name and calls its tool.
    async fn call_by_name(
        &self,
        name: &str,
        mut arguments: Map<String, Value>,
        responses: Option<&InputResponses>,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let client = self.client(&context.extensions)?;
        let entry = self.resolve(client, name, &mut arguments)?;
        let shows_pages = context.client_capabilities().as_ref().is_some_and(apps::shows_pages);
        let capabilities = context.client_capabilities();
        let asks = |can: fn(&ClientCapabilities) -> bool| {
            let is_able = capabilities.as_ref().is_some_and(can);
            if is_able { elicitation(context, responses) } else { Elicitation::Unsupported }
        };
        let (elicitation, connection) = (asks(shows_forms), asks(opens_pages));
        let source = CallSource { elicitation, connection, context: Some(context), shows_pages };
        let called = self.call_entry(client, &entry, arguments, source).await;
        let response = called.ok_or_else(|| ErrorData::internal_error("the call was cancelled", None))?;
        Ok(match response {
            CallToolResponse::Complete(result) => {
                content::for_version(result, context.protocol_version().as_ref()).into()
            }
            other => other,
        })
    }

    /// Calls a resolved tool; `None` where the call was cancelled.
    pub(super) async fn call_entry(
        &self,
        client: &ClientContext,
        entry: &Arc<Entry>,
        arguments: Map<String, Value>,
        source: CallSource<'_>,
    ) -> Option<CallToolResponse> {
        let shown = entry
            .definition(client.mode.into())
            .filter(|(_, spec)| source.shows_pages && apps::has_page(spec))
            .map(|(_, spec)| (Arc::clone(spec), arguments.clone()));
        let (outcome, attachments, whole) = match self.outcome(client, entry, arguments, source).await? {
            Called::Ended(outcome, attachments, whole) => (outcome, attachments, whole),
            Called::InputRequired(result) => return Some(result.into()),
        };
        if entry.tool.spec.name.as_str() == compact::SEARCH
            && let Ok(value) = &outcome
            && self.shared.found.remember(client, value)
        {
            // An error means that no client is listening.
            let _ = self.shared.list_changed.send(client.session_key());
        }
        let compiled = entry.plan(client.mode.into(), self.shared.registry.executors());
        let declares_object = compiled.is_ok_and(|compiled| compiled.returns_object);
        let is_forwarded = matches!(entry.tool.spec.implementation, Implementation::Mcp(_));
        let details = outcome.as_ref().err().filter(|_| is_forwarded).and_then(upstream_details);
        let data = shown
            .zip(outcome.as_ref().ok())
            .and_then(|((spec, args), value)| apps::page_data(&spec, &args, value, whole));
        let mut result = content::result(outcome, &attachments, declares_object);
        if let Some(data) = data {
            result.meta.get_or_insert_default().0.insert(apps::DATA.to_owned(), data);
        }
        if details.is_some() {
            result.structured_content = details;
        }
        if let Some(notice) = self.shared.registry.snapshot().deprecation_notice(entry, client.audience()) {
            let meta = result.meta.get_or_insert_default();
            meta.0.insert(WARNINGS.to_owned(), vec![notice].into());
        }
        Some(result.into())
    }

    /// Resolves the name that a client sends. The helpers of a bundle view see that bundle only.
    pub(super) fn resolve(
        &self,
        client: &ClientContext,
        name: &str,
        arguments: &mut Map<String, Value>,
    ) -> Result<Arc<Entry>, ErrorData> {
        let snapshot = self.shared.registry.snapshot();
        let found = find(&snapshot, client, name);
        let is_helper = compact::HELPERS.contains(&name);
        let (View::Bundle(slug), Err(_), true) = (&client.view, &found, is_helper) else {
            return found;
        };
        let Some(entry) = self.compact_helper(&snapshot, client, name) else { return found };
        arguments.insert("bundle".to_owned(), slug.as_str().into());
        Ok(entry)
    }

    /// Runs the call; `None` where the client cancelled it or disconnected. Dropping the future records the call as
    /// cancelled.
    async fn outcome(
        &self,
        client: &ClientContext,
        entry: &Arc<Entry>,
        arguments: Map<String, Value>,
        CallSource { elicitation, connection, context, shows_pages }: CallSource<'_>,
    ) -> Option<Called> {
        let notifier = context.and_then(|context| {
            let by_request = context.meta.log_level().is_some_and(includes_output);
            let sends_logs = by_request || self.sends_logs.load(Ordering::Relaxed);
            CallNotifier::new(context, sends_logs, entry.tool.spec.name.as_str(), &self.input_closed)
        });
        let (notifier, events) =
            notifier.map_or((None, None), |(notifier, sink)| (Some(notifier), Some(sink)));
        let resumes = answered_wait(&connection);
        let request = Request {
            mode: client.mode,
            events,
            waits_for_account: !matches!(connection, Elicitation::Unsupported),
            resumes,
            options: client.options(),
            ..Request::new(Arc::clone(&client.principal), super::client_context::SURFACE, arguments)
        };
        let tool = CallTarget::Resolved(self.shared.registry.current().resolved(entry));
        // Boxed, because the large future is moved to where it is awaited.
        let call = Box::pin(self.shared.pipeline.call(tool, request));
        let call = async {
            let answer = call.await;
            if let (Some(wait), Ok(completed), Some(desk)) =
                (resumes, &answer, &self.shared.settings.approvals)
                && completed.replayed
            {
                desk.collect(wait).await;
            }
            self.after_questions(client, answer, (&elicitation, &connection)).await
        };
        let call = async {
            match notifier {
                Some(notifier) => notifier.during(call).await,
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
            Answer::Ended(Ok(answer)) => {
                let WholeValue { declared, page } =
                    self.whole_value(client, entry, &answer, shows_pages).await;
                let record = Arc::unwrap_or_clone(answer.record);
                let value = |value: Option<Value>| Ok(declared.or(value).unwrap_or_default());
                let outcome = record.error.map_or_else(|| value(record.value), Err);
                Called::Ended(outcome, record.content, page)
            }
            Answer::Ended(Err(error)) => Called::Ended(Err(error), Vec::new(), None),
            Answer::InputRequired(result) => Called::InputRequired(result),
        })
    }
}

impl McpServer {
    /// Asks the client for what a call waits for: to connect accounts, and then to decide.
    async fn after_questions(
        &self,
        client: &ClientContext,
        mut answer: Result<CompletedCall, CallError>,
        (elicitation, connection): (&Elicitation<'_>, &Elicitation<'_>),
    ) -> Answer {
        for _ in 0..MAX_QUESTIONS {
            let Err(error) = &answer else { break };
            // Boxed, because few calls need it.
            let asked = match error.code {
                ErrorCode::ApprovalRequired => Box::pin(self.ask_client(client, error, elicitation)).await,
                ErrorCode::CredentialRequired => {
                    Box::pin(self.ask_to_connect(client, error, connection)).await
                }
                _ => break,
            };
            match asked {
                ElicitationOutcome::Unanswered => break,
                ElicitationOutcome::InputRequired(result) => return Answer::InputRequired(result),
                ElicitationOutcome::Ended(ended) => answer = ended,
            }
        }
        Answer::Ended(answer)
    }

    /// Returns the whole value where it is stored apart and needed.
    async fn whole_value(
        &self,
        client: &ClientContext,
        entry: &Entry,
        answer: &CompletedCall,
        shows_pages: bool,
    ) -> WholeValue {
        let compiled = entry.plan(client.mode.into(), self.shared.registry.executors());
        let is_declared = compiled.is_ok_and(|compiled| compiled.returns_object);
        let definition = entry.definition(client.mode.into());
        let is_shown = shows_pages && definition.is_some_and(|(_, spec)| apps::has_page(spec));
        if answer.record.stored_bytes.is_none() || !(is_declared || is_shown) {
            return WholeValue::default();
        }
        let whole = match self.shared.pipeline.whole_value(&client.principal, answer).await {
            Ok(whole) => whole,
            Err(error) => {
                tracing::warn!(call = %answer.record.id(), error = error.message, "a large result was not sent whole");
                None
            }
        };
        if is_declared {
            WholeValue { declared: whole, page: None }
        } else {
            WholeValue { declared: None, page: whole }
        }
    }
}

/// The whole value of a call whose record has only the start of it.
#[derive(Default)]
struct WholeValue {
    /// If the tool declares what it returns: clients check structured content against the output schema, so that a
    /// handle would be an error.
    declared: Option<Value>,
    /// If a page shows it, which the model does not read.
    page: Option<Value>,
}

/// Where a call comes from.
pub(super) struct CallSource<'a> {
    /// How the client can be asked.
    pub(super) elicitation: Elicitation<'a>,
    /// How the client can be asked to open a page.
    pub(super) connection: Elicitation<'a>,
    /// The request. Without it the client gets no notifications, and only dropping the future cancels the call.
    pub(super) context: Option<&'a RequestContext<RoleServer>>,
    /// Whether the client shows pages, which may need more data than the value.
    pub(super) shows_pages: bool,
}

/// What the pipeline, or the person at the client, answered.
enum Answer {
    Ended(Result<CompletedCall, CallError>),
    InputRequired(InputRequiredResult),
}

/// What became of a call.
enum Called {
    /// Its outcome, the content blocks of an upstream server, and the whole value for a page, if the outcome has only a
    /// part of it.
    Ended(Outcome, Vec<Value>, Option<Value>),
    /// The client has to ask a person, and to send the call again.
    InputRequired(InputRequiredResult),
}

/// Returns how the client of a request can be asked.
fn elicitation<'a>(
    context: &'a RequestContext<RoleServer>,
    responses: Option<&'a InputResponses>,
) -> Elicitation<'a> {
    let is_newer = context.protocol_version().is_some_and(|own| own >= ProtocolVersion::V_2026_07_28);
    if is_newer { Elicitation::Result(responses) } else { Elicitation::Request(context) }
}

/// Returns the details of a failure that an MCP server reported itself. Other details are haft's own, for operators.
fn upstream_details(error: &CallError) -> Option<Value> {
    error.details.as_deref().filter(|_| error.code == ErrorCode::ExecutionFailed).cloned()
}

/// Returns whether a log level includes the output of tools, which has the level `info`.
pub(super) fn includes_output(level: LoggingLevel) -> bool {
    matches!(level, LoggingLevel::Debug | LoggingLevel::Info)
}

/// Finds a tool by the name that a client sends, among the tools in its view.
pub(super) fn find(snapshot: &Snapshot, client: &ClientContext, name: &str) -> Result<Arc<Entry>, ErrorData> {
    let unknown = |why: String| ErrorData::invalid_params(why, None);
    let reference: ToolRef = name.parse().map_err(|_| unknown(format!("tool `{name}` not found")))?;
    let entry = match snapshot.resolve_called(name, &reference, client.audience()) {
        Ok(entry) if client.sees(&entry.tool) => entry,
        resolved => {
            let in_bundle = find_in_bundle(snapshot, client, name);
            in_bundle.filter(|entry| client.sees(&entry.tool)).ok_or_else(|| {
                unknown(resolved.map_or_else(
                    |error| error.to_string(),
                    |_| format!("tool `{name}` not found in this bundle"),
                ))
            })?
        }
    };
    Ok(Arc::clone(entry))
}

/// Finds a helper of the compact list: one in the client's view or, for the view of a bundle, the built-in one.
pub(super) fn helper(snapshot: &Snapshot, client: &ClientContext, name: &str) -> Option<Arc<Entry>> {
    let own = find(snapshot, client, name).ok();
    own.or_else(|| {
        let reference: ToolRef = format!("{}:{name}", BundleSlug::built_in()).parse().ok()?;
        let entry = snapshot.resolve_in(client.tenant(), &reference, client.mode).ok()?;
        snapshot.is_runnable(entry, client.mode).then(|| Arc::clone(entry))
    })
}

/// Finds a tool by its bare name in the bundle of the view, for names that resolve to another bundle otherwise.
fn find_in_bundle<'a>(
    snapshot: &'a Snapshot,
    client: &'a ClientContext,
    name: &str,
) -> Option<&'a Arc<Entry>> {
    let View::Bundle(slug) = &client.view else { return None };
    let reference: ToolRef = format!("{slug}:{name}").parse().ok()?;
    snapshot.resolve_in(client.tenant(), &reference, client.mode).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_details_of_the_upstream_server_are_forwarded() {
        let details = json!({"n": 1});
        for (code, expected) in [
            (ErrorCode::ExecutionFailed, Some(details.clone())),
            (ErrorCode::InvalidOutput, None),
            (ErrorCode::InvalidArguments, None),
        ] {
            let error = CallError::new(code, "no").with_details(details.clone());
            assert_eq!(upstream_details(&error), expected, "{code:?}");
        }
    }
}
