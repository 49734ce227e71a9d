//! How many calls started in each of a row of periods.

use haft_core::Timestamp;
use haft_core::call::CallStatus;
use haft_core::catalog::StoreError;
use haft_core::ledger::CallQuery;
use sqlx::Row as _;
use std::fmt::Write as _;

use super::filter::Filter;
use crate::engine::failed_to;
use crate::ledger::Calls;
use crate::time::min_id_at;

const COUNT: &str = "count recorded calls";

/// How many calls started in a period, by how they ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CallCounts {
    /// Calls that succeeded.
    pub success: u64,
    /// Calls that failed.
    pub error: u64,
    /// Calls that have not ended, and those that ended in another way.
    pub other: u64,
}

impl CallCounts {
    /// Returns the number of all calls.
    pub fn total(self) -> u64 {
        self.success + self.error + self.other
    }
}

impl Calls {
    /// Counts the calls that match a query in the periods between successive times, at most 500; its paging is ignored.
    /// A text matches anywhere in the record of a call.
    pub async fn counts(
        &self,
        query: &CallQuery,
        bounds: &[Timestamp],
    ) -> Result<Vec<CallCounts>, StoreError> {
        let (Some(first), Some(last)) = (bounds.first(), bounds.last()) else { return Ok(Vec::new()) };
        self.drain_for_list().await;
        let since = query.since.map_or(*first, |since| since.max(*first));
        let until = query.until.map_or(*last, |until| until.min(*last));
        let filter = Filter::new(&CallQuery { since: Some(since), until: Some(until), ..query.clone() });
        // A join with the periods: each is a range of the primary key, as ids sort by time.
        let mut columns = "WITH periods (number, start, stop) AS (VALUES ".to_owned();
        let mut counts = Vec::with_capacity(bounds.len());
        for (number, pair) in bounds.windows(2).enumerate() {
            let [start, stop] = pair else { continue };
            let comma = if number == 0 { "" } else { ", " };
            let (start, stop) = (min_id_at(*start), min_id_at(*stop));
            // Writing to a string cannot fail.
            let _ = write!(columns, "{comma}({number}, '{start}', '{stop}')");
            counts.push(CallCounts::default());
        }
        if counts.is_empty() {
            return Ok(counts);
        }
        columns.push_str(
            ") SELECT CAST(number AS BIGINT) AS number, status, COUNT(*) AS calls FROM periods \
             JOIN calls ON id >= start AND id < stop",
        );
        let rows =
            filter.select(&self.db, &columns, "GROUP BY number, status").await.map_err(failed_to(COUNT))?;
        for row in &rows {
            let number: i64 = row.try_get("number").map_err(failed_to(COUNT))?;
            let calls: i64 = row.try_get("calls").map_err(failed_to(COUNT))?;
            let calls = u64::try_from(calls).unwrap_or_default();
            let Some(count) = usize::try_from(number).ok().and_then(|number| counts.get_mut(number)) else {
                continue;
            };
            match CallStatus::parse(row.try_get("status").map_err(failed_to(COUNT))?) {
                Some(CallStatus::Success) => count.success += calls,
                Some(CallStatus::Error) => count.error += calls,
                _ => count.other += calls,
            }
        }
        Ok(counts)
    }
}

impl Calls {}
