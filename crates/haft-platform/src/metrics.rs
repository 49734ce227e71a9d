//! The metrics of a server, in the text format of Prometheus.

mod call_end;
mod tools;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use haft_core::call::CallRecord;
use haft_core::limit::LimitName;
use haft_runtime::pipeline::CallObserver;
use metrics::{Counter, Gauge, Histogram, Key, Label, Level, Metadata, Recorder};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle, PrometheusRecorder};

use self::call_end::{BUCKETS, CallEnd};
use self::tools::ToolMetrics;

const META: Metadata<'static> = Metadata::new("haft", Level::INFO, None);

/// The metrics of one server. It does not use the process-wide recorder: a program may embed several servers.
pub struct Metrics {
    recorder: PrometheusRecorder,
    handle: PrometheusHandle,
    calls: CallCounters,
    running: Gauge,
    seconds: Histogram,
    tools: Gauge,
    queued: Gauge,
    awaiting_approval: Gauge,
    requests: [Counter; 4],
    /// The calls that each limit has refused.
    refusals: HashMap<LimitName, Counter>,
    by_tool: ToolMetrics,
    upkeeps: AtomicU32,
}

/// The busiest tools are selected after this many upkeeps, which are seconds apart.
const UPKEEPS_PER_SELECTION: u32 = 12;

/// Values that are read when the metrics are requested.
pub struct Gauges {
    /// The number of tools.
    pub tools: usize,
    /// The number of running calls.
    pub running_calls: usize,
    /// The numbers of calls in the queue and of calls that wait for approval, if they are known.
    pub waiting: Option<(u64, u64)>,
}

/// The calls by outcome.
struct CallCounters {
    success: Counter,
    error: Counter,
    timeout: Counter,
    cancelled: Counter,
    rejected: Counter,
}

impl Metrics {
    /// Creates all metrics, at zero, with a number of tools that have metrics of their own.
    pub fn new(top_tools: usize) -> Self {
        let builder = PrometheusBuilder::new();
        // The only possible error is an empty list of buckets.
        let recorder = match builder.set_buckets(&BUCKETS) {
            Ok(builder) => builder.build_recorder(),
            Err(_) => PrometheusBuilder::new().build_recorder(),
        };
        let counter = |name: &'static str, label: &'static str, value: &'static str| {
            let key = Key::from_parts(name, vec![Label::from_static_parts(label, value)]);
            recorder.register_counter(&key, &META)
        };
        Self {
            calls: CallCounters {
                success: counter("haft_calls_total", "outcome", "success"),
                error: counter("haft_calls_total", "outcome", "error"),
                timeout: counter("haft_calls_total", "outcome", "timeout"),
                cancelled: counter("haft_calls_total", "outcome", "cancelled"),
                rejected: counter("haft_calls_total", "outcome", "rejected"),
            },
            requests: ["2xx", "3xx", "4xx", "5xx"]
                .map(|class| counter("haft_http_requests_total", "status", class)),
            running: recorder.register_gauge(&Key::from_static_name("haft_calls_running"), &META),
            seconds: recorder.register_histogram(&Key::from_static_name("haft_call_seconds"), &META),
            tools: recorder.register_gauge(&Key::from_static_name("haft_tools"), &META),
            queued: recorder.register_gauge(&Key::from_static_name("haft_calls_queued"), &META),
            awaiting_approval: recorder
                .register_gauge(&Key::from_static_name("haft_calls_awaiting_approval"), &META),
            refusals: LimitName::ALL
                .into_iter()
                .map(|limit| (limit, counter("haft_limit_refusals_total", "limit", limit.as_str())))
                .collect(),
            by_tool: ToolMetrics::new(top_tools),
            upkeeps: AtomicU32::new(0),
            handle: recorder.handle(),
            recorder,
        }
        .with_descriptions()
    }

    /// Returns the observer that counts the calls of a pipeline.
    pub fn observer(self: &Arc<Self>) -> CallObserver {
        let metrics = Arc::clone(self);
        Arc::new(move |record| metrics.count_call(record))
    }

    /// Returns the observer that counts the rejected calls of a pipeline.
    pub fn rejections(self: &Arc<Self>) -> CallObserver {
        let metrics = Arc::clone(self);
        Arc::new(move |record| {
            metrics.calls.rejected.increment(1);
            metrics.by_tool.count(record, CallEnd::Rejected);
            metrics.count_refusal(record);
        })
    }

    /// Counts a call that a limit refused.
    fn count_refusal(&self, record: &CallRecord) {
        let details = record.error.as_ref().and_then(|error| error.details.as_deref());
        let limit = details.and_then(|details| details.get("limit")?.as_str());
        if let Some(counter) = limit.and_then(LimitName::parse).and_then(|limit| self.refusals.get(&limit)) {
            counter.increment(1);
        }
    }

    fn count_call(&self, record: &CallRecord) {
        let end = CallEnd::of(record);
        let counter = match end {
            CallEnd::Success => &self.calls.success,
            CallEnd::Timeout => &self.calls.timeout,
            CallEnd::Cancelled => &self.calls.cancelled,
            CallEnd::Error | CallEnd::Rejected => &self.calls.error,
        };
        counter.increment(1);
        self.by_tool.count(record, end);
        if record.error.is_some() {
            self.count_refusal(record);
        }
        if let Some(milliseconds) = record.duration_ms {
            self.seconds.record(milliseconds / 1000.0);
        }
    }

    /// Returns the counter of restarts and the state of a background loop.
    pub fn of_loop(&self, name: &'static str) -> (Counter, Gauge) {
        let key =
            |metric: &'static str| Key::from_parts(metric, vec![Label::from_static_parts("loop", name)]);
        let restarts = self.recorder.register_counter(&key("haft_loop_restarts_total"), &META);
        (restarts, self.recorder.register_gauge(&key("haft_loop_up"), &META))
    }

    /// Counts the response to a request.
    pub fn count_response(&self, status: u16) {
        let class = usize::from(status / 100).saturating_sub(2).min(3);
        if let Some(counter) = self.requests.get(class) {
            counter.increment(1);
        }
    }

    /// Returns all metrics in the text format of Prometheus.
    pub fn text(&self, gauges: &Gauges) -> String {
        let float = |count: u64| f64::from(u32::try_from(count).unwrap_or(u32::MAX));
        self.tools.set(float(gauges.tools as u64));
        self.running.set(float(gauges.running_calls as u64));
        // Not a number: the store did not answer.
        let (queued, awaiting) = gauges
            .waiting
            .map_or((f64::NAN, f64::NAN), |(queued, awaiting)| (float(queued), float(awaiting)));
        self.queued.set(queued);
        self.awaiting_approval.set(awaiting);
        self.handle.run_upkeep();
        let mut text = self.handle.render();
        self.by_tool.write(&mut text);
        text
    }

    /// Sorts call durations into their buckets; until then each of them takes memory.
    pub fn run_upkeep(&self) {
        self.handle.run_upkeep();
        if self.upkeeps.fetch_add(1, Ordering::Relaxed) % UPKEEPS_PER_SELECTION == UPKEEPS_PER_SELECTION - 1 {
            self.by_tool.select();
        }
    }

    /// Adds the descriptions of the metrics.
    #[must_use]
    fn with_descriptions(self) -> Self {
        let describe = |name: &'static str, text: &'static str| {
            self.recorder.describe_counter(name.into(), None, text.into());
        };
        describe("haft_calls_total", "Calls by outcome; `rejected` ones did not run");
        describe("haft_limit_refusals_total", "Calls that a limit refused, by limit");
        describe("haft_loop_restarts_total", "Restarts of background loops after a failure, by loop");
        describe("haft_http_requests_total", "HTTP requests, by status class");
        self.recorder.describe_histogram("haft_call_seconds".into(), None, "Duration of calls".into());
        self.recorder.describe_gauge("haft_calls_running".into(), None, "Calls that are running".into());
        self.recorder.describe_gauge("haft_tools".into(), None, "Tools in the registry".into());
        let describe = |name: &'static str, text: &'static str| {
            self.recorder.describe_gauge(name.into(), None, text.into());
        };
        describe("haft_loop_up", "Whether a background loop runs, by loop");
        describe("haft_calls_queued", "Calls in the queue, of all nodes");
        describe("haft_calls_awaiting_approval", "Calls that wait for approval, of all nodes");
        self
    }
}
