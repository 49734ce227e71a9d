//! `GET /audit`: who changed and called what.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse as _, Response};
use futures_util::stream;
use haft_api::audit::AuditList;
use haft_core::Timestamp;
use haft_core::audit::{AuditDecision, AuditEntry, AuditQuery};
use haft_core::call::CallStatus;
use haft_core::catalog::StoreError;
use haft_core::id::CallId;
use haft_core::ledger::CallQuery;
use haft_core::name::TenantId;
use haft_core::outcome::ErrorCode;
use haft_core::token::Role;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::authentication::Caller;
use crate::error::ApiError;
use crate::params::{Page, PageParams, Params};
use crate::reply::{Success, success};
use haft_platform::Installation;
use haft_platform::identity::Identity;

/// The number of records that an export reads at a time.
const EXPORT_PAGE: u32 = 500;
/// The media type of JSON Lines.
const JSON_LINES: &str = "application/x-ndjson";
/// The action of calls.
const CALL: &str = "call";

/// The format of the response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Page,
    Lines,
}

/// The kinds of records that a query selects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ToSchema)]
#[schema(rename_all = "snake_case")]
pub(crate) enum AuditKinds {
    /// Changes.
    Changes,
    /// Calls.
    Calls,
    /// Both.
    All,
}

/// List recorded changes and calls, newest first; with `format=jsonl` or `Accept: application/x-ndjson`, all of them as
/// JSON Lines. Records of calls have the hash of the arguments, never the arguments or the result.
#[utoipa::path(
    get, path = "/audit", tag = "audit",
    params(("kind" = inline(Option<AuditKinds>), Query, description = "`changes` (default), `calls` or `all`"),
        ("action" = Option<String>, Query, description = "An action, for example `tool.update`; calls have the action `call`"),
        ("target" = Option<String>, Query, description = "A part of the target of a change"),
        ("tool" = Option<String>, Query, description = "Reference to a tool: its calls, and changes whose target contains it", example = "greet"),
        ("actor" = Option<String>, Query, description = "Name or id of a token"),
        ("outcome" = Option<String>, Query, description = "`success` or an error code"),
        ("status" = Option<CallStatus>, Query, description = "The state of a call"),
        ("decision" = Option<AuditDecision>, Query, description = "How a call was authorised"),
        ("rule" = Option<String>, Query, description = "The policy rule that decided about a call"),
        ("since" = Option<String>, Query, description = "A time such as `2026-01-31T12:00:00Z`, or a period before now such as `24h` or `7d`"),
        ("until" = Option<String>, Query, description = "Records before this time, in the same forms"),
        ("format" = Option<String>, Query, description = "`json` (a page) or `jsonl` (all records from `page_token` on, one per line)"),
        PageParams),
    responses((status = 200, body = Success<AuditList>), (status = 404, body = crate::error::ErrorBody))
)]
pub(crate) async fn list(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    headers: HeaderMap,
    params: Params,
) -> Result<Response, ApiError> {
    identity.require(Role::Admin)?;
    let page = params.page("audit")?;
    let query = Sources::parse(&app, &identity, &params, &page)?;
    if format(&params, &headers)? == Format::Lines {
        return export(app, query.with_limit(EXPORT_PAGE)).await;
    }
    let records = query.read(&app).await?;
    let total = query.count(&app).await?;
    let next_page_token = page.token_after(&records, page.size, |entry| entry.id().to_string());
    Ok(success(AuditList { records, total, next_page_token }).into_response())
}

fn format(params: &Params, headers: &HeaderMap) -> Result<Format, ApiError> {
    let parse = |text: &str| match text {
        "json" => Some(Format::Page),
        "jsonl" => Some(Format::Lines),
        _ => None,
    };
    let accepts_lines = || {
        let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
        accept.split(',').any(|range| range.split(';').next().is_some_and(|kind| kind.trim() == JSON_LINES))
    };
    let requested = params.choice("format", parse, "`json`, `jsonl`")?;
    Ok(requested.unwrap_or_else(|| if accepts_lines() { Format::Lines } else { Format::Page }))
}

/// The queries for the records; one that cannot match anything is missing.
#[derive(Clone)]
struct Sources {
    changes: Option<AuditQuery>,
    calls: Option<CallQuery>,
    /// How many records to skip, where both have to be read for that.
    skip: u32,
    limit: u32,
}

impl Sources {
    fn parse(
        app: &Installation,
        identity: &Identity,
        params: &Params,
        page: &Page,
    ) -> Result<Self, ApiError> {
        let parse_kind = |text: &str| match text {
            "changes" => Some(AuditKinds::Changes),
            "calls" => Some(AuditKinds::Calls),
            "all" => Some(AuditKinds::All),
            _ => None,
        };
        let kind = params.choice("kind", parse_kind, "`changes`, `calls`, `all`")?;
        let action = params.get("action");
        let kind = kind.unwrap_or(if action == Some(CALL) { AuditKinds::Calls } else { AuditKinds::Changes });
        let of_calls = ["status", "decision", "rule"].into_iter().find(|name| params.get(name).is_some());
        let of_changes = if action.is_some_and(|action| action != CALL) {
            Some("action")
        } else {
            params.get("target").map(|_| "target")
        };
        match (kind, of_calls, of_changes) {
            (AuditKinds::Changes, Some(name), _) => {
                return Err(ApiError::bad_request(format!("`{name}` selects calls; use `kind=calls`")));
            }
            (AuditKinds::Calls, _, Some(name)) => {
                return Err(ApiError::bad_request(format!(
                    "`{name}` selects changes; use `kind=changes`, or `tool` for calls"
                )));
            }
            _ => {}
        }
        let wants_changes = kind != AuditKinds::Calls && of_calls.is_none() && action != Some(CALL);
        let wants_calls = kind != AuditKinds::Changes && of_changes.is_none();
        let is_merged = wants_changes && wants_calls;
        let skip = if is_merged { 0 } else { page.skip };
        let mut changes = wants_changes.then(|| changes_query(app, identity, params, page)).transpose()?;
        let mut calls = if wants_calls { calls_query(app, identity, params, page)? } else { None };
        if let Some(changes) = &mut changes {
            changes.skip = skip;
        }
        if let Some(calls) = &mut calls {
            calls.skip = skip;
        }
        let skip = if is_merged { page.skip } else { 0 };
        Ok(Self { changes, calls, skip, limit: page.size }.with_limit(page.size))
    }

    fn with_limit(mut self, limit: u32) -> Self {
        self.limit = limit;
        // With two sources, what is skipped may come from either.
        let read = limit.saturating_add(self.skip);
        if let Some(changes) = &mut self.changes {
            changes.limit = read;
        }
        if let Some(calls) = &mut self.calls {
            calls.limit = read;
        }
        self
    }

    /// Restricts the queries to what is older than a record.
    fn before(mut self, id: Uuid) -> Self {
        if let Some(changes) = &mut self.changes {
            (changes.before, changes.skip) = (Some(id), 0);
        }
        if let Some(calls) = &mut self.calls {
            (calls.before, calls.skip) = (Some(CallId(id)), 0);
        }
        self.skip = 0;
        let limit = self.limit;
        self.with_limit(limit)
    }

    /// Reads a page, newest first: ids begin with the time.
    async fn read(&self, app: &Installation) -> Result<Vec<AuditEntry>, StoreError> {
        let mut entries = Vec::new();
        if let Some(query) = &self.changes {
            entries.extend(app.store().audit().records(query).await?.into_iter().map(AuditEntry::of_change));
        }
        if let Some(query) = &self.calls {
            entries.extend(app.store().calls().audited(query).await?);
        }
        entries.sort_by_key(|entry| std::cmp::Reverse(entry.id()));
        let skip = usize::try_from(self.skip).unwrap_or(usize::MAX);
        entries.drain(..skip.min(entries.len()));
        entries.truncate(usize::try_from(self.limit).unwrap_or(usize::MAX));
        Ok(entries)
    }

    async fn count(&self, app: &Installation) -> Result<u64, StoreError> {
        let mut total = 0;
        if let Some(query) = &self.changes {
            total += app.store().audit().count(query).await?;
        }
        if let Some(query) = &self.calls {
            total += app.store().calls().count(query).await?;
        }
        Ok(total)
    }
}

/// Returns when the caller's tenant was created; `None` for the default tenant, which always exists.
fn created_at(app: &Installation, identity: &Identity) -> Option<Timestamp> {
    let tenant = app.access().tenant(&identity.tenant)?;
    (tenant.id != TenantId::default_tenant()).then_some(tenant.created_at)
}

fn changes_query(
    app: &Installation,
    identity: &Identity,
    params: &Params,
    page: &Page,
) -> Result<AuditQuery, ApiError> {
    let text = |name: &str| params.get(name).map(str::to_owned);
    Ok(AuditQuery {
        tenant: identity.tenant.clone(),
        action: text("action"),
        target: text("target").or_else(|| text("tool")),
        actor: text("actor"),
        // A deleted tenant with the same id may have left records.
        since: params.time("since", app.now())?.max(created_at(app, identity)),
        until: params.time("until", app.now())?,
        outcome: text("outcome"),
        before: page.after()?,
        skip: 0,
        limit: page.size,
    })
}

/// Returns the query for calls; `None` if no call has the outcome.
fn calls_query(
    app: &Installation,
    identity: &Identity,
    params: &Params,
    page: &Page,
) -> Result<Option<CallQuery>, ApiError> {
    let tool_id = match params.get("tool") {
        None => None,
        // A deleted tool is known by its id.
        Some(text) => Some(match text.parse() {
            Ok(id) => id,
            Err(_) => haft_platform::tools::find(app, identity, text)?.tool.id,
        }),
    };
    let statuses = "the states of calls, for example `success`";
    let mut status = params.choice("status", CallStatus::parse, statuses)?;
    let mut error_code = None;
    match params.get("outcome") {
        None => {}
        Some("success") => status = status.or(Some(CallStatus::Success)),
        Some(text) => match ErrorCode::ALL.iter().copied().find(|code| code.as_str() == text) {
            Some(code) => error_code = Some(code),
            None => return Ok(None),
        },
    }
    let actor = params.get("actor").and_then(|actor| Uuid::try_parse(actor).ok());
    let principals = actor.map(|id| app.access().owner_ids(&identity.tenant, id));
    let decisions = "`allowed`, `denied`, `awaiting_approval`, `approved`, `rejected`, `expired`";
    Ok(Some(CallQuery {
        tool_id,
        statuses: status.into_iter().collect(),
        actor: params.get("actor").filter(|_| principals.is_none()).map(str::to_owned),
        principals,
        error_code,
        rule: params.get("rule").map(str::to_owned),
        decision: params.choice("decision", AuditDecision::parse, decisions)?,
        since: params.time("since", app.now())?,
        until: params.time("until", app.now())?,
        before: page.after()?.map(CallId),
        limit: page.size,
        ..CallQuery::of_tenant(identity.tenant.clone())
    }))
}

/// Streams all records that match, a page at a time. The first page is read before the response starts, so that an
/// error has its status; a later one cuts the response off.
async fn export(app: Arc<Installation>, query: Sources) -> Result<Response, ApiError> {
    let first = query.read(&app).await?;
    let lines = stream::try_unfold(Some((query, first)), move |state| {
        let app = Arc::clone(&app);
        async move {
            let Some((query, records)) = state else { return Ok(None) };
            let text = lines(&records)?;
            let is_last = records.len() < EXPORT_PAGE as usize;
            let next = match records.last() {
                Some(last) if !is_last => {
                    let query = query.before(last.id());
                    let records = query.read(&app).await?;
                    Some((query, records))
                }
                _ => None,
            };
            Ok::<_, StoreError>(Some((text, next)))
        }
    });
    let mut response = Body::from_stream(lines).into_response();
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(JSON_LINES));
    Ok(response)
}

fn lines(records: &[AuditEntry]) -> Result<Vec<u8>, StoreError> {
    let mut text = Vec::new();
    for record in records {
        serde_json::to_writer(&mut text, record)
            .map_err(|error| StoreError::unavailable("write the audit records", error))?;
        text.push(b'\n');
    }
    Ok(text)
}
