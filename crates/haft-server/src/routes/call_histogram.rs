//! `GET /calls/histogram`: how many calls started in each part of a period.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use haft_api::call::{CallBucket, CallHistogram};
use haft_core::Timestamp;
use haft_store::CallCounts;

use crate::authentication::Caller;
use crate::error::ApiError;
use crate::error::ErrorBody;
use crate::params::Params;
use crate::reply::{Success, success};
use crate::routes::calls::{self, CallFilterParams};
use haft_platform::Installation;

const DEFAULT_BUCKETS: i64 = 60;
const MAX_BUCKETS: i64 = 500;
/// The period if the query has none.
const DEFAULT_PERIOD: Duration = Duration::from_hours(24);

/// Count calls over time, by how they ended. The default period is the last 24 hours. Takes the filters of `GET /calls`;
/// `q` also matches names of fields.
#[utoipa::path(
    get, path = "/calls/histogram", tag = "calls",
    params(CallFilterParams,
        ("buckets" = Option<u32>, Query, description = "The largest number of buckets, 1 to 500; default: 60", minimum = 1, maximum = 500, example = 24)),
    responses((status = 200, body = Success<CallHistogram>), (status = 404, body = ErrorBody), (status = 409, body = ErrorBody))
)]
pub(crate) async fn get(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    params: Params,
) -> Result<Response, ApiError> {
    let expected = format!("an integer from 1 to {MAX_BUCKETS}");
    let count = params.parsed::<i64>("buckets", &expected)?.unwrap_or(DEFAULT_BUCKETS);
    if !(1..=MAX_BUCKETS).contains(&count) {
        return Err(ApiError::bad_request(format!("invalid `buckets`: `{count}`; expected {expected}")));
    }
    let query = calls::query(&app, &identity, &params)?;
    let to = query.until.unwrap_or_else(|| app.now());
    let from = query.since.or_else(|| to.checked_sub(DEFAULT_PERIOD).ok()).unwrap_or(Timestamp::UNIX_EPOCH);
    if from >= to {
        return Err(ApiError::bad_request("`since` must be before `until`"));
    }
    let (bucket_seconds, bounds) = bounds(from, to, count);
    let counts = app.store().calls().counts(&query, &bounds).await?;
    let bucket = |(at, counts): (&Timestamp, CallCounts)| {
        let CallCounts { success, error, other } = counts;
        CallBucket { at: *at, success, error, other }
    };
    let buckets = bounds.iter().zip(counts).map(bucket).collect();
    Ok(success(CallHistogram { from, to, bucket_seconds, buckets }).into_response())
}

/// Divides a period into parts of whole seconds, at most `count`; returns their length and their bounds.
fn bounds(from: Timestamp, to: Timestamp, count: i64) -> (i64, Vec<Timestamp>) {
    let millis = to.as_millisecond().saturating_sub(from.as_millisecond()).max(1);
    let seconds = (millis + 1000 * count - 1) / (1000 * count);
    let mut bounds = vec![from];
    for number in 1..=count {
        let offset = u64::try_from(seconds.saturating_mul(number)).unwrap_or(u64::MAX);
        let next = from.checked_add(Duration::from_secs(offset));
        match next.ok().filter(|next| *next < to) {
            Some(next) => bounds.push(next),
            None => break,
        }
    }
    bounds.push(to);
    (seconds, bounds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_period_is_divided_without_gaps() {
        for (from, to, count, seconds, parts) in [
            ("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z", 24, 3600, 24),
            ("2026-01-01T00:00:00Z", "2026-01-01T00:00:10Z", 60, 1, 10),
            ("2026-01-01T00:00:00Z", "2026-01-01T00:00:10.5Z", 4, 3, 4),
            ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00.001Z", 500, 1, 1),
            ("1970-01-01T00:00:00Z", "2026-01-01T00:00:00Z", 500, 3_534_452, 500),
        ] {
            let (from, to) = (from.parse().unwrap(), to.parse().unwrap());
            let (length, bounds) = bounds(from, to, count);
            assert_eq!((length, bounds.len() - 1), (seconds, parts));
            assert_eq!((bounds.first(), bounds.last()), (Some(&from), Some(&to)));
            assert!(bounds.is_sorted_by(|a, b| a < b), "{bounds:?}");
        }
    }
}
