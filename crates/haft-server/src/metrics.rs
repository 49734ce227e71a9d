//! The metrics of a server, in the text format of Prometheus.

use std::sync::Arc;

use haft_core::call::CallRecord;
use haft_core::outcome::ErrorCode;
use haft_runtime::pipeline::CallObserver;
use metrics::{Counter, Gauge, Histogram, Key, Label, Level, Metadata, Recorder};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle, PrometheusRecorder};

/// The upper bounds of the histogram buckets of call durations, in seconds.
const BUCKETS: [f64; 12] = [0.000_1, 0.000_5, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 60.0];

const META: Metadata<'static> = Metadata::new("haft", Level::INFO, None);

/// The metrics of one server. It does not use the process-wide recorder: a program may embed several servers.
pub(crate) struct Metrics {
    recorder: PrometheusRecorder,
    handle: PrometheusHandle,
    calls: CallCounters,
    running: Gauge,
    seconds: Histogram,
    tools: Gauge,
    requests: [Counter; 4],
}

/// The calls that ran, by outcome.
struct CallCounters {
    success: Counter,
    error: Counter,
    timeout: Counter,
    cancelled: Counter,
}

impl Metrics {
    /// Creates all metrics, at zero.
    pub(crate) fn new() -> Self {
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
            },
            requests: ["2xx", "3xx", "4xx", "5xx"]
                .map(|class| counter("haft_http_requests_total", "status", class)),
            running: recorder.register_gauge(&Key::from_static_name("haft_calls_running"), &META),
            seconds: recorder.register_histogram(&Key::from_static_name("haft_call_seconds"), &META),
            tools: recorder.register_gauge(&Key::from_static_name("haft_tools"), &META),
            handle: recorder.handle(),
            recorder,
        }
    }

    /// Returns the observer that counts the calls of a pipeline.
    pub(crate) fn observer(self: &Arc<Self>) -> CallObserver {
        let metrics = Arc::clone(self);
        Arc::new(move |record| metrics.count_call(record))
    }

    fn count_call(&self, record: &CallRecord) {
        let counter = match record.error.as_ref().map(|error| error.code) {
            None => &self.calls.success,
            Some(ErrorCode::Timeout) => &self.calls.timeout,
            Some(ErrorCode::Cancelled) => &self.calls.cancelled,
            Some(_) => &self.calls.error,
        };
        counter.increment(1);
        if let Some(milliseconds) = record.duration_ms {
            self.seconds.record(milliseconds / 1000.0);
        }
    }

    /// Counts the response to a request.
    pub(crate) fn count_response(&self, status: u16) {
        let class = usize::from(status / 100).saturating_sub(2).min(3);
        if let Some(counter) = self.requests.get(class) {
            counter.increment(1);
        }
    }

    /// Returns all metrics in the text format of Prometheus.
    pub(crate) fn text(&self, tools: usize, running_calls: usize) -> String {
        let float = |count: usize| f64::from(u32::try_from(count).unwrap_or(u32::MAX));
        self.tools.set(float(tools));
        self.running.set(float(running_calls));
        self.run_upkeep();
        self.handle.render()
    }

    /// Sorts call durations into their buckets; until then each of them takes memory.
    pub(crate) fn run_upkeep(&self) {
        self.handle.run_upkeep();
    }

    /// Adds the descriptions of the metrics.
    #[must_use]
    pub(crate) fn with_descriptions(self) -> Self {
        let describe = |name: &'static str, text: &'static str| {
            self.recorder.describe_counter(name.into(), None, text.into());
        };
        describe("haft_calls_total", "Calls that ran, by outcome");
        describe("haft_http_requests_total", "HTTP requests, by status class");
        self.recorder.describe_histogram("haft_call_seconds".into(), None, "Duration of calls".into());
        self.recorder.describe_gauge("haft_calls_running".into(), None, "Calls that are running".into());
        self.recorder.describe_gauge("haft_tools".into(), None, "Tools in the registry".into());
        self
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new().with_descriptions()
    }
}
