//! `GET /audit`: the audit log.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse as _, Response};
use futures_util::stream;
use haft_core::audit::{AuditQuery, AuditRecord};
use haft_core::catalog::StoreError;
use haft_core::token::Role;
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::error::ApiError;
use crate::identity::Identity;
use crate::params::{PageParams, Params};
use crate::reply::{Success, success};

/// The number of records that an export reads at a time.
const EXPORT_PAGE: u32 = 500;
/// The media type of JSON Lines.
const JSON_LINES: &str = "application/x-ndjson";

/// The format of the response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Page,
    Lines,
}

/// A page of audit records.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AuditList {
    records: Vec<AuditRecord>,
    /// The number of records that match the filter.
    total: u64,
    #[schema(required)]
    next_page_token: Option<String>,
}

/// List recorded changes, newest first; with `format=jsonl` or `Accept: application/x-ndjson`, all of them as JSON Lines.
#[utoipa::path(
    get, path = "/audit", tag = "audit",
    params(("action" = Option<String>, Query, description = "An action, for example `tool.update`"),
        ("target" = Option<String>, Query, description = "A part of the target"),
        ("actor" = Option<String>, Query, description = "Name or id of a token"),
        ("since" = Option<String>, Query, description = "A time such as `2026-01-31T12:00:00Z`, or a period before now such as `24h` or `7d`"),
        ("format" = Option<String>, Query, description = "`json` (a page) or `jsonl` (all records from `page_token` on, one per line)"),
        PageParams),
    responses((status = 200, body = Success<AuditList>))
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    identity: Identity,
    headers: HeaderMap,
    params: Params,
) -> Result<Response, ApiError> {
    identity.require(Role::Admin)?;
    let page = params.page("audit")?;
    let text = |name: &str| params.get(name).map(str::to_owned);
    let query = AuditQuery {
        tenant: identity.tenant.clone(),
        action: text("action"),
        target: text("target"),
        actor: text("actor"),
        since: params.time("since", app.now())?,
        before: page.after()?,
        skip: page.skip,
        limit: page.size,
    };
    if format(&params, &headers)? == Format::Lines {
        return export(app, AuditQuery { limit: EXPORT_PAGE, ..query }).await;
    }
    let found = app.store().changes(&query).await?;
    let next_page_token = page.token_after(&found.records, page.size, |record| record.id.to_string());
    Ok(success(AuditList { records: found.records, total: found.total, next_page_token }).into_response())
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

/// Streams all records that match, a page at a time. The first page is read before the response starts, so that an
/// error has its status; a later one cuts the response off.
async fn export(app: Arc<App>, query: AuditQuery) -> Result<Response, ApiError> {
    let first = app.store().change_records(&query).await?;
    let lines = stream::try_unfold(Some((query, first)), move |state| {
        let app = Arc::clone(&app);
        async move {
            let Some((query, records)) = state else { return Ok(None) };
            let text = lines(&records)?;
            let is_last = records.len() < EXPORT_PAGE as usize;
            let next = match records.last() {
                Some(last) if !is_last => {
                    let query = AuditQuery { before: Some(last.id), skip: 0, ..query };
                    let records = app.store().change_records(&query).await?;
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

fn lines(records: &[AuditRecord]) -> Result<Vec<u8>, StoreError> {
    let mut text = Vec::new();
    for record in records {
        serde_json::to_writer(&mut text, record)
            .map_err(|error| StoreError::unavailable("write the audit records", error))?;
        text.push(b'\n');
    }
    Ok(text)
}
