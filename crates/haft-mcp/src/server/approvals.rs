//! Asks the person at an MCP client to decide about a call that needs approval.
//!
//! The approval is stored before anybody is asked, so an answer that never comes loses nothing: the call waits as any
//! other, and a repeat of it picks up the decision. Clients of versions with sessions get a request of their own; since
//! 2026-07-28 the result asks for input, and the client sends the call again with the answer.

use std::time::{Duration, Instant};

use haft_core::BoxFuture;
use haft_core::approval::{Approval, Remember, RememberScope};
use haft_core::id::{ApprovalId, CallId};
use haft_core::outcome::{CallError, ErrorCode};
use haft_core::principal::Principal;
use haft_core::problem::excerpt;
use haft_runtime::pipeline::CompletedCall;
use rmcp::RoleServer;
use rmcp::model::{
    ClientCapabilities, InputRequest, InputRequests, InputRequiredResult, InputResponses, ServerRequest,
};
use rmcp::service::RequestContext;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::client_context::ClientContext;
use super::handler::McpServer;

/// How long the person may take to answer, and then the call to end.
const ANSWER_TIMEOUT: Duration = Duration::from_mins(10);
/// The start of the key of a question about an account.
const ACCOUNT_KEY: &str = "account-";
/// The longest arguments that are shown, in characters.
const MAX_SHOWN_ARGS: usize = 4000;
/// The longest reason, in characters.
const MAX_REASON: usize = 1000;

/// Where approvals are decided.
pub trait ApprovalDesk: Send + Sync {
    /// Returns an approval that waits, if a principal may decide about it.
    fn decidable<'a>(&'a self, principal: &'a Principal, id: ApprovalId) -> BoxFuture<'a, Option<Approval>>;
    /// Stores a decision. An approved call runs.
    fn decide<'a>(
        &'a self,
        principal: &'a Principal,
        approval: &'a Approval,
        decision: ElicitedDecision,
    ) -> BoxFuture<'a, Result<(), CallError>>;
    /// Notes that the requester has the outcome, so that the same call later is a new one.
    fn collect(&self, approval: ApprovalId) -> BoxFuture<'_, ()>;
}

/// What a person answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ElicitedDecision {
    /// Run the call.
    Approve {
        /// What to remember.
        remember: Option<Remember>,
    },
    /// Do not run it.
    Deny {
        /// Why, for the model.
        reason: Option<String>,
    },
}

/// How the client of a call can be asked.
pub(super) enum Elicitation<'a> {
    /// It cannot.
    Unsupported,
    /// With a request during the call.
    Request(&'a RequestContext<RoleServer>),
    /// With a result that asks for input; these are the answers so far.
    Result(Option<&'a InputResponses>),
}

/// The outcome of an elicitation.
pub(super) enum ElicitationOutcome {
    /// Nobody was asked, or nobody answered.
    Unanswered,
    /// The client has to ask.
    InputRequired(InputRequiredResult),
    /// The call has ended.
    Ended(Result<CompletedCall, CallError>),
}

/// Returns whether a client can show a form.
pub(super) fn shows_forms(capabilities: &ClientCapabilities) -> bool {
    let form = |elicitation: &rmcp::model::ElicitationCapability| {
        // Before there were modes, an empty capability meant forms.
        elicitation.form.is_some() || elicitation.url.is_none()
    };
    capabilities.elicitation.as_ref().is_some_and(form)
}

/// Returns whether a client can open a page.
pub(super) fn opens_pages(capabilities: &ClientCapabilities) -> bool {
    capabilities.elicitation.as_ref().is_some_and(|elicitation| elicitation.url.is_some())
}

/// Returns the wait for an account that a client answers a question about: it sends the same call again.
pub(super) fn answered_wait(elicitation: &Elicitation<'_>) -> Option<ApprovalId> {
    let Elicitation::Result(Some(responses)) = elicitation else { return None };
    responses.keys().find_map(|key| key.strip_prefix(ACCOUNT_KEY)?.split_once('.')?.0.parse().ok())
}

impl McpServer {
    /// Asks the client to open the page on which its person connects an account, and waits for the outcome of the call,
    /// which waits for the account.
    pub(super) async fn ask_to_connect(
        &self,
        client: &ClientContext,
        error: &CallError,
        elicitation: &Elicitation<'_>,
    ) -> ElicitationOutcome {
        let (Some(page), Some(call)) = (ConnectPage::of(error), error.call_id) else {
            return ElicitationOutcome::Unanswered;
        };
        let ask = || {
            input_required(page.key(), page.request())
                .map_or(ElicitationOutcome::Unanswered, ElicitationOutcome::InputRequired)
        };
        let answer = match elicitation {
            Elicitation::Unsupported => None,
            Elicitation::Request(context) => self.request_answer(context, page.request()).await,
            Elicitation::Result(responses) => match responses.and_then(|all| all.get(&page.key())) {
                Some(answer) => Some(answer.clone()),
                None => return ask(),
            },
        };
        match answer.as_ref().and_then(|answer| answer.get("action")).and_then(Value::as_str) {
            Some("accept") => {}
            Some("decline") => return self.decline(client, call, &page).await,
            _ => return ElicitationOutcome::Unanswered,
        }
        // The person is on the page now; when the account is connected, the call runs.
        let wait = match elicitation {
            Elicitation::Result(_) => self.shared.settings.connect_wait,
            _ => ANSWER_TIMEOUT,
        };
        let deadline = Instant::now() + wait;
        let ended =
            self.shared.pipeline.wait_for_account(client.tenant(), call, &page.provider, deadline).await;
        match ended {
            Ok(Some(completed)) => {
                if let Some(desk) = &self.shared.settings.approvals {
                    desk.collect(page.approval).await;
                }
                ElicitationOutcome::Ended(Ok(completed))
            }
            // Clients of this version repeat the call only a limited number of times.
            Ok(None) if matches!(elicitation, Elicitation::Result(_)) => ask(),
            Ok(None) => ElicitationOutcome::Unanswered,
            Err(error) => ElicitationOutcome::Ended(Err(error)),
        }
    }

    /// Cancels a call whose person does not want to connect the account that it needs: it must not run by itself after
    /// the account was connected for another reason.
    async fn decline(&self, client: &ClientContext, call: CallId, page: &ConnectPage) -> ElicitationOutcome {
        let cancelled = self.shared.pipeline.cancel_waiting(client.tenant(), call).await;
        let message = format!(
            "the person declined to connect an account at `{}`; the call was cancelled",
            page.provider
        );
        let error = CallError::new(ErrorCode::CredentialRequired, message);
        ElicitationOutcome::Ended(Err(cancelled.err().unwrap_or(CallError { call_id: Some(call), ..error })))
    }

    /// Asks the client to decide about a call that waits for approval, and waits for the outcome.
    pub(super) async fn ask_client(
        &self,
        client: &ClientContext,
        error: &CallError,
        elicitation: &Elicitation<'_>,
    ) -> ElicitationOutcome {
        let (Some(desk), Some(id)) = (&self.shared.settings.approvals, approval_id(error)) else {
            return ElicitationOutcome::Unanswered;
        };
        if matches!(elicitation, Elicitation::Unsupported) {
            return ElicitationOutcome::Unanswered;
        }
        let Some(approval) = desk.decidable(&client.principal, id).await else {
            return ElicitationOutcome::Unanswered;
        };
        let answer = match elicitation {
            Elicitation::Unsupported => None,
            Elicitation::Request(context) => self.request_answer(context, form(&approval)).await,
            Elicitation::Result(responses) => match responses.and_then(|all| all.get(&key(&approval))) {
                Some(answer) => Some(answer.clone()),
                None => {
                    return input_required(key(&approval), form(&approval))
                        .map_or(ElicitationOutcome::Unanswered, ElicitationOutcome::InputRequired);
                }
            },
        };
        let Some(decision) = answer.and_then(|answer| decision(&answer, &approval)) else {
            return ElicitationOutcome::Unanswered;
        };
        if let Err(error) = desk.decide(&client.principal, &approval, decision).await {
            return ElicitationOutcome::Ended(Err(error));
        }
        let deadline = Instant::now() + ANSWER_TIMEOUT;
        let ended = self.shared.pipeline.wait_for(client.tenant(), approval.call_id, deadline).await;
        ElicitationOutcome::Ended(match ended {
            Ok(Some(record)) => {
                desk.collect(approval.id).await;
                Ok(CompletedCall::uncounted(record, false))
            }
            Ok(None) => Err(CallError::new(
                ErrorCode::Timeout,
                "the approved call is still running; call again with the same arguments to get its result",
            )),
            Err(error) => Err(error),
        })
    }

    /// Sends a request to the client; `None` if it does not answer in time or cannot.
    async fn request_answer(&self, context: &RequestContext<RoleServer>, question: Value) -> Option<Value> {
        let request: ServerRequest = from_json(question)?;
        let response = tokio::select! {
            response = context.peer.send_request(request) => response,
            () = tokio::time::sleep(ANSWER_TIMEOUT) => return None,
            () = self.input_closed.cancelled() => return None,
        };
        match response {
            Ok(response) => serde_json::to_value(response).ok(),
            Err(error) => {
                tracing::debug!(%error, "an MCP client did not answer a question");
                None
            }
        }
    }
}

fn approval_id(error: &CallError) -> Option<ApprovalId> {
    if error.code != ErrorCode::ApprovalRequired {
        return None;
    }
    error.details.as_ref()?.get("approval_id")?.as_str()?.parse().ok()
}

/// Returns the key of the question, so that the answer to one is never taken for another.
fn key(approval: &Approval) -> String {
    format!("approval-{}", approval.id)
}

fn input_required(key: String, question: Value) -> Option<InputRequiredResult> {
    let request: InputRequest = from_json(question)?;
    Some(InputRequiredResult::from_input_requests(InputRequests::from([(key, request)])))
}

/// The page on which a person connects the account that a call waits for.
struct ConnectPage {
    approval: ApprovalId,
    provider: String,
    url: String,
}

impl ConnectPage {
    /// Returns the page that an error names. Clients open only whole addresses.
    fn of(error: &CallError) -> Option<Self> {
        let details = error.details.as_ref().filter(|_| error.code == ErrorCode::CredentialRequired)?;
        let text = |name: &str| details.get(name).and_then(Value::as_str);
        let url = text("url").filter(|url| url.starts_with("https://") || url.starts_with("http://"))?;
        let approval = text("approval_id")?.parse().ok()?;
        Some(Self { approval, provider: text("provider")?.to_owned(), url: url.to_owned() })
    }

    fn key(&self) -> String {
        // A tool may need several accounts, one after the other.
        format!("{ACCOUNT_KEY}{}.{}", self.approval, self.provider)
    }

    fn request(&self) -> Value {
        let message = format!("The tool needs your account at `{}`. Connect it on this page.", self.provider);
        json!({"method": "elicitation/create", "params": {
            "mode": "url", "message": message, "url": self.url, "elicitationId": self.key()}})
    }
}

fn from_json<T: DeserializeOwned>(value: Value) -> Option<T> {
    serde_json::from_value(value)
        .map_err(|error| tracing::error!(%error, "cannot write a question to an MCP client"))
        .ok()
}

/// Returns the question.
fn form(approval: &Approval) -> Value {
    let args = format!("{:#}", approval.args);
    let lines: Vec<String> = args.lines().map(|line| excerpt(line, MAX_SHOWN_ARGS)).collect();
    let mut args = lines.join("\n");
    if args.len() > MAX_SHOWN_ARGS {
        args.truncate(args.floor_char_boundary(MAX_SHOWN_ARGS));
        args.push('…');
    }
    let message = format!(
        "Run `{}`? The call needs approval: {}.\n\nArguments:\n{args}",
        approval.tool,
        approval.cause.reason(&approval.tool)
    );
    let mut properties = json!({
        "decision": {"type": "string", "title": "Decision", "enum": ["approve", "deny"]},
        "reason": {"type": "string", "title": "Reason", "description": "Why not, for the model", "maxLength": MAX_REASON},
    });
    // Without a session there is nothing to remember it for.
    if let (Some(_), Some(fields)) = (&approval.session, properties.as_object_mut()) {
        let remember = json!({
            "type": "boolean", "title": "Remember", "default": false,
            "description": "Approve the same call for the rest of this session",
        });
        fields.insert("remember".to_owned(), remember);
    }
    let schema = json!({"type": "object", "properties": properties, "required": ["decision"]});
    json!({"method": "elicitation/create", "params": {
        "mode": "form", "message": message, "requestedSchema": schema}})
}

/// Reads an answer; `None` if it decides nothing.
fn decision(answer: &Value, approval: &Approval) -> Option<ElicitedDecision> {
    let content = answer.get("content");
    let field = |name: &str| content.and_then(|content| content.get(name));
    let deny = || {
        let reason = field("reason").and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty());
        ElicitedDecision::Deny { reason: reason.map(|text| excerpt(text, MAX_REASON)) }
    };
    match (answer.get("action")?.as_str()?, field("decision").and_then(Value::as_str)) {
        ("accept", Some("approve")) => {
            let remembers = approval.session.is_some() && field("remember") == Some(&Value::Bool(true));
            let remember = remembers.then_some(Remember { scope: RememberScope::Session, any_args: false });
            Some(ElicitedDecision::Approve { remember })
        }
        ("accept", Some("deny")) | ("decline", _) => Some(deny()),
        _ => None,
    }
}
