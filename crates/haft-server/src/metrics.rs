//! Metrics in the Prometheus text format.

use std::time::Instant;

use haft_core::BoxFuture;
use haft_core::outcome::Outcome;
use haft_runtime::pipeline::Call;
use haft_runtime::stages::{Next, Stage};
use metrics::{Counter, Gauge, Histogram, Key, Label, Level, Metadata, Recorder};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle, PrometheusRecorder};

/// The upper bounds of the call duration buckets, in seconds.
const BUCKETS: [f64; 12] = [0.000_1, 0.000_5, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 60.0];

const META: Metadata<'static> = Metadata::new("haft", Level::INFO, None);

/// The metrics of one server. Not the process-wide recorder: a program may embed several servers.
pub(crate) struct Metrics {
    recorder: PrometheusRecorder,
    handle: PrometheusHandle,
    succeeded: Counter,
    failed: Counter,
    running: Gauge,
    seconds: Histogram,
    tools: Gauge,
    requests: [Counter; 4],
}

impl Metrics {
    /// Registers all metrics.
    pub(crate) fn new() -> Self {
        let builder = PrometheusBuilder::new();
        // This fails only for an empty list of buckets.
        let recorder = match builder.set_buckets(&BUCKETS) {
            Ok(builder) => builder.build_recorder(),
            Err(_) => PrometheusBuilder::new().build_recorder(),
        };
        let counter = |name: &'static str, label: &'static str, value: &'static str| {
            let key = Key::from_parts(name, vec![Label::from_static_parts(label, value)]);
            recorder.register_counter(&key, &META)
        };
        Self {
            succeeded: counter("haft_calls_total", "outcome", "success"),
            failed: counter("haft_calls_total", "outcome", "error"),
            requests: ["2xx", "3xx", "4xx", "5xx"]
                .map(|class| counter("haft_http_requests_total", "status", class)),
            running: recorder.register_gauge(&Key::from_static_name("haft_calls_running"), &META),
            seconds: recorder.register_histogram(&Key::from_static_name("haft_call_seconds"), &META),
            tools: recorder.register_gauge(&Key::from_static_name("haft_tools"), &META),
            handle: recorder.handle(),
            recorder,
        }
    }

    /// Counts a response.
    pub(crate) fn count_response(&self, status: u16) {
        let class = usize::from(status / 100).saturating_sub(2).min(3);
        if let Some(counter) = self.requests.get(class) {
            counter.increment(1);
        }
    }

    /// Renders the metrics in the Prometheus text format.
    pub(crate) fn text(&self, tools: usize) -> String {
        self.tools.set(f64::from(u32::try_from(tools).unwrap_or(u32::MAX)));
        self.run_upkeep();
        self.handle.render()
    }

    /// Moves recorded call durations into their buckets; until then each of them takes memory.
    pub(crate) fn run_upkeep(&self) {
        self.handle.run_upkeep();
    }

    /// Adds the help texts.
    #[must_use]
    pub(crate) fn with_descriptions(self) -> Self {
        let describe = |name: &'static str, text: &'static str| {
            self.recorder.describe_counter(name.into(), None, text.into());
        };
        describe("haft_calls_total", "Finished calls, by outcome");
        describe("haft_http_requests_total", "HTTP responses, by status class");
        self.recorder.describe_histogram(
            "haft_call_seconds".into(),
            None,
            "Duration of calls in seconds".into(),
        );
        self.recorder.describe_gauge("haft_calls_running".into(), None, "Running calls".into());
        self.recorder.describe_gauge("haft_tools".into(), None, "Tools in the registry".into());
        self
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new().with_descriptions()
    }
}

/// Measures calls.
pub(crate) struct MetricsStage(pub(crate) std::sync::Arc<Metrics>);

impl Stage for MetricsStage {
    fn call<'a>(&'a self, call: &'a mut Call, next: Next<'a>) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            let mut running = RunningCall::start(&self.0);
            let outcome = next.run(call).await;
            running.succeeded = outcome.is_ok();
            outcome
        })
    }
}

/// Counts a call when dropped. A call that times out or is cancelled is dropped, and counts as failed.
struct RunningCall<'a> {
    metrics: &'a Metrics,
    started: Instant,
    succeeded: bool,
}

impl<'a> RunningCall<'a> {
    fn start(metrics: &'a Metrics) -> Self {
        metrics.running.increment(1.0);
        Self { metrics, started: Instant::now(), succeeded: false }
    }
}

impl Drop for RunningCall<'_> {
    fn drop(&mut self) {
        self.metrics.running.decrement(1.0);
        self.metrics.seconds.record(self.started.elapsed().as_secs_f64());
        let counter = if self.succeeded { &self.metrics.succeeded } else { &self.metrics.failed };
        counter.increment(1);
    }
}
