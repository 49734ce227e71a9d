//! Metrics of each tool and tenant, with a bounded number of series.
//!
//! The busiest tools have series of their own; all others share one. A tool that becomes busier takes the series of one
//! that is hardly called any more and begins at zero; what was counted for the others stays, so that no counter ever
//! decreases.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use haft_core::call::CallRecord;
use haft_core::id::ToolId;
use haft_core::name::TenantId;

use super::call_end::{BUCKETS, CallEnd};

/// The label of everything that has no series of its own.
const OTHER: &str = "other";
/// How many tools without a series are watched.
const MAX_CANDIDATES: usize = 10_000;
/// A tool needs this many times the calls of another one to take its series, so that series do not change hands often.
const MARGIN: u64 = 2;

/// A tool as one tenant calls it.
type Key = (TenantId, ToolId);

/// The metrics of tools.
pub(super) struct ToolMetrics {
    /// The number of series.
    max: usize,
    own: RwLock<HashMap<Key, Arc<Series>>>,
    other: Series,
    /// The calls of tools without a series since the last look.
    candidates: Mutex<HashMap<Key, u64>>,
}

/// The calls of a tool.
struct Series {
    tenant: String,
    tool: String,
    by_end: [AtomicU64; CallEnd::ALL.len()],
    /// The calls by duration: at most that of each bucket, and above all.
    by_time: [AtomicU64; BUCKETS.len() + 1],
    micros: AtomicU64,
    /// The calls since the last look.
    recent: AtomicU64,
}

impl ToolMetrics {
    pub(super) fn new(max: usize) -> Self {
        Self { max, own: RwLock::default(), other: Series::new(OTHER, OTHER), candidates: Mutex::default() }
    }

    /// Counts a call that has ended.
    pub(super) fn count(&self, record: &CallRecord, end: CallEnd) {
        let key = (record.tenant().clone(), record.invocation.tool_id);
        let known = self.own.read().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
        if let Some(series) = known.or_else(|| self.add(&key, &record.invocation.tool)) {
            return series.count(record, end);
        }
        self.other.count(record, end);
        let mut candidates = self.candidates.lock().unwrap_or_else(PoisonError::into_inner);
        if candidates.len() < MAX_CANDIDATES || candidates.contains_key(&key) {
            *candidates.entry(key).or_default() += 1;
        }
    }

    /// Adds a series while there is room.
    fn add(&self, key: &Key, tool: &str) -> Option<Arc<Series>> {
        if self.own.read().unwrap_or_else(PoisonError::into_inner).len() >= self.max {
            return None;
        }
        let mut own = self.own.write().unwrap_or_else(PoisonError::into_inner);
        if own.len() >= self.max && !own.contains_key(key) {
            return None;
        }
        let series = own.entry(key.clone()).or_insert_with(|| Arc::new(Series::new(key.0.as_str(), tool)));
        Some(Arc::clone(series))
    }

    /// Frees the series of tools that others exceed by far; the next calls of the busier ones take them.
    pub(super) fn select(&self) {
        let candidates = std::mem::take(&mut *self.candidates.lock().unwrap_or_else(PoisonError::into_inner));
        let mut own = self.own.write().unwrap_or_else(PoisonError::into_inner);
        let mut recent: Vec<(u64, Key)> =
            own.iter().map(|(key, series)| (series.recent.swap(0, Ordering::Relaxed), key.clone())).collect();
        recent.sort_unstable_by_key(|(calls, _)| *calls);
        let mut busiest: Vec<u64> = candidates.into_values().collect();
        busiest.sort_unstable_by(|a, b| b.cmp(a));
        for ((calls, key), busier) in recent.into_iter().zip(busiest) {
            if busier <= calls.saturating_mul(MARGIN) {
                break;
            }
            own.remove(&key);
        }
    }

    /// Appends the series in the text format of Prometheus.
    pub(super) fn write(&self, text: &mut String) {
        let own = self.own.read().unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<&Series> = own.values().map(|series| &**series).collect();
        all.sort_unstable_by(|a, b| (&a.tenant, &a.tool).cmp(&(&b.tenant, &b.tool)));
        all.push(&self.other);
        text.push_str("# HELP haft_tool_calls_total Calls by tenant, tool and status\n");
        text.push_str("# TYPE haft_tool_calls_total counter\n");
        for series in &all {
            series.write_calls(text);
        }
        text.push_str("# HELP haft_tool_call_seconds Duration of calls by tenant and tool\n");
        text.push_str("# TYPE haft_tool_call_seconds histogram\n");
        for series in &all {
            series.write_times(text);
        }
    }
}

impl Series {
    fn new(tenant: &str, tool: &str) -> Self {
        Self {
            tenant: escape(tenant),
            tool: escape(tool),
            by_end: Default::default(),
            by_time: Default::default(),
            micros: AtomicU64::new(0),
            recent: AtomicU64::new(0),
        }
    }

    fn count(&self, record: &CallRecord, end: CallEnd) {
        self.recent.fetch_add(1, Ordering::Relaxed);
        if let Some(count) = self.by_end.get(end as usize) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        // A rejected call took no time of the tool.
        let Some(milliseconds) = record.duration_ms.filter(|_| end != CallEnd::Rejected) else { return };
        let seconds = milliseconds / 1000.0;
        let bucket = BUCKETS.iter().position(|bound| seconds <= *bound).unwrap_or(BUCKETS.len());
        if let Some(count) = self.by_time.get(bucket) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        let micros = std::time::Duration::try_from_secs_f64(seconds).map_or(0, |time| time.as_micros());
        self.micros.fetch_add(u64::try_from(micros).unwrap_or_default(), Ordering::Relaxed);
    }

    fn write_calls(&self, text: &mut String) {
        let Self { tenant, tool, .. } = self;
        for (end, count) in CallEnd::ALL.iter().zip(&self.by_end) {
            let count = count.load(Ordering::Relaxed);
            if count > 0 {
                let status = end.as_str();
                let _ = writeln!(
                    text,
                    "haft_tool_calls_total{{tenant=\"{tenant}\",tool=\"{tool}\",status=\"{status}\"}} {count}"
                );
            }
        }
    }

    fn write_times(&self, text: &mut String) {
        let labels = format!("tenant=\"{}\",tool=\"{}\"", self.tenant, self.tool);
        let mut calls = 0;
        let bounds = BUCKETS.iter().map(ToString::to_string).chain(["+Inf".to_owned()]);
        let mut lines = String::new();
        for (bound, count) in bounds.zip(&self.by_time) {
            calls += count.load(Ordering::Relaxed);
            let _ = writeln!(lines, "haft_tool_call_seconds_bucket{{{labels},le=\"{bound}\"}} {calls}");
        }
        if calls > 0 {
            let time = std::time::Duration::from_micros(self.micros.load(Ordering::Relaxed)).as_secs_f64();
            text.push_str(&lines);
            let _ = writeln!(text, "haft_tool_call_seconds_sum{{{labels}}} {time}");
            let _ = writeln!(text, "haft_tool_call_seconds_count{{{labels}}} {calls}");
        }
    }
}

/// Escapes the value of a label.
fn escape(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn record(tool: u32, milliseconds: f64) -> CallRecord {
        let record = json!({
            "id": "018faf50-b7b6-7a01-9a05-a22a6e0af101", "tenant": "acme", "caller": "ci", "surface": "rest",
            "tool_id": format!("018faf50-b7b6-7a01-9a05-{tool:012}"), "tool": format!("web:t{tool}@1.0.0"),
            "revision": 1, "mode": "debug", "args": {}, "status": "success", "value": 1,
            "started_at": "2026-01-31T12:00:00Z", "duration_ms": milliseconds,
        });
        serde_json::from_value(record).unwrap()
    }

    fn text(metrics: &ToolMetrics) -> String {
        let mut text = String::new();
        metrics.write(&mut text);
        text
    }

    #[test]
    fn the_number_of_series_is_bounded_and_nothing_is_lost() {
        let metrics = ToolMetrics::new(2);
        for tool in 0..5 {
            metrics.count(&record(tool, 2.0), CallEnd::Success);
        }
        let text = text(&metrics);
        let lines: Vec<&str> =
            text.lines().filter(|line| line.starts_with("haft_tool_calls_total")).collect();
        assert_eq!(
            lines,
            [
                "haft_tool_calls_total{tenant=\"acme\",tool=\"web:t0@1.0.0\",status=\"success\"} 1",
                "haft_tool_calls_total{tenant=\"acme\",tool=\"web:t1@1.0.0\",status=\"success\"} 1",
                "haft_tool_calls_total{tenant=\"other\",tool=\"other\",status=\"success\"} 3",
            ]
        );
    }

    #[test]
    fn a_busier_tool_takes_the_series_of_an_idle_one() {
        let metrics = ToolMetrics::new(2);
        let call = |tool: u32, times: usize| {
            (0..times).for_each(|_| metrics.count(&record(tool, 2.0), CallEnd::Success));
        };
        call(0, 10);
        call(1, 1);
        call(2, 9);
        metrics.select();
        call(2, 3);
        call(1, 1);
        let text = text(&metrics);
        for line in [
            "tool=\"web:t0@1.0.0\",status=\"success\"} 10\n",
            "tool=\"web:t2@1.0.0\",status=\"success\"} 3\n",
            "tool=\"other\",status=\"success\"} 10\n",
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
        assert!(!text.contains("web:t1"), "{text}");
    }

    #[test]
    fn durations_are_a_histogram() {
        let metrics = ToolMetrics::new(1);
        for milliseconds in [0.05, 2.0, 2.0, 120_000.0] {
            metrics.count(&record(0, milliseconds), CallEnd::Success);
        }
        metrics.count(&record(0, 1.0), CallEnd::Rejected);
        let text = text(&metrics);
        for line in [
            "le=\"0.0001\"} 1\n",
            "le=\"0.005\"} 3\n",
            "le=\"60\"} 3\n",
            "le=\"+Inf\"} 4\n",
            "haft_tool_call_seconds_count{tenant=\"acme\",tool=\"web:t0@1.0.0\"} 4\n",
            "status=\"rejected\"} 1\n",
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
    }
}
