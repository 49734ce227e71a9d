//! The SQL condition of a query for calls.

use std::fmt::Write as _;

use haft_core::audit::AuditDecision;
use haft_core::call::CallStatus;
use haft_core::id::CallId;
use haft_core::ledger::CallQuery;
use sqlx::any::{AnyArguments, AnyRow};
use sqlx::query::Query;
use sqlx::{Any, AssertSqlSafe};

use crate::database::Database;
use crate::rows::escape_like;
use crate::time::min_id_at;

/// A condition and its parameters.
pub(super) struct Filter {
    condition: String,
    values: Vec<String>,
}

impl Filter {
    /// Creates the condition of a query, without its paging.
    pub(super) fn new(query: &CallQuery) -> Self {
        let mut filter = Self { condition: "tenant = $1".to_owned(), values: vec![query.tenant.to_string()] };
        let conditions = [
            ("tool_id = ", query.tool_id.map(|id| id.to_string())),
            ("caller = ", query.caller.clone()),
            ("surface = ", query.surface.clone()),
            ("parent_id = ", query.parent_id.map(|id| id.to_string())),
            ("error_code = ", query.error_code.map(|code| code.as_str().to_owned())),
            ("chat_id = ", query.chat_id.clone()),
            ("rule = ", query.rule.clone()),
            // Ids sort by time.
            ("id >= ", query.since.map(|at| min_id_at(at).to_string())),
            ("id < ", query.until.map(|at| min_id_at(at).to_string())),
        ];
        for (condition, value) in conditions {
            if let Some(value) = value {
                filter.add(condition, value);
            }
        }
        filter.add_statuses(&query.statuses);
        if let Some(actor) = &query.actor {
            filter.values.push(actor.clone());
            let number = filter.values.len();
            let _ = write!(filter.condition, " AND (caller = ${number} OR principal = ${number})");
        }
        if let Some(principals) = &query.principals {
            let first = filter.values.len() + 1;
            filter.values.extend(principals.iter().map(ToString::to_string));
            let numbers: Vec<String> =
                (first..=filter.values.len()).map(|number| format!("${number}")).collect();
            // No principal, no call.
            let numbers = if numbers.is_empty() { "NULL".to_owned() } else { numbers.join(", ") };
            let _ = write!(filter.condition, " AND principal IN ({numbers})");
        }
        match query.decision {
            None => {}
            Some(AuditDecision::Allowed) => filter.condition.push_str(" AND decision IS NULL"),
            Some(decision) => filter.add("decision = ", decision.as_str().to_owned()),
        }
        if let Some(text) = &query.text {
            filter.values.push(format!("%{}%", escape_like(&escape_json(text))));
            let number = filter.values.len();
            let _ = write!(filter.condition, " AND LOWER(record) LIKE LOWER(${number}) ESCAPE '!'");
        }
        filter
    }

    fn add_statuses(&mut self, statuses: &[CallStatus]) {
        if statuses.is_empty() {
            return;
        }
        // The names are constants of haft.
        let names: Vec<String> = statuses.iter().map(|status| format!("'{}'", status.as_str())).collect();
        let _ = write!(self.condition, " AND status IN ({})", names.join(", "));
    }

    /// Restricts the condition to calls that are older than one.
    pub(super) fn add_before(&mut self, call: Option<CallId>) {
        if let Some(call) = call {
            self.add("id < ", call.to_string());
        }
    }

    /// Restricts the condition to a call and those that are newer.
    pub(super) fn add_from(&mut self, call: Option<CallId>) {
        if let Some(call) = call {
            self.add("id >= ", call.to_string());
        }
    }

    fn add(&mut self, condition: &str, value: String) {
        self.values.push(value);
        let _ = write!(self.condition, " AND {condition}${}", self.values.len());
    }

    /// Runs a query with the condition between its columns and its end.
    pub(super) async fn select(
        &self,
        database: &Database,
        columns: &str,
        end: &str,
    ) -> Result<Vec<AnyRow>, sqlx::Error> {
        self.query(&self.sql(columns, end)).fetch_all(&database.engine.pool).await
    }

    /// Returns the text of a query with the condition between its columns and its end.
    pub(super) fn sql(&self, columns: &str, end: &str) -> String {
        format!("{columns} WHERE {} {end}", self.condition)
    }

    /// Returns the query of a text that [`Filter::sql`] has made.
    pub(super) fn query<'q>(&'q self, sql: &'q str) -> Query<'q, Any, AnyArguments> {
        let mut query = sqlx::query(AssertSqlSafe(sql));
        for value in &self.values {
            query = query.bind(value);
        }
        query
    }
}

/// Returns a text as it appears inside a string of a stored record.
fn escape_json(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(text).to_owned()
}
