//! What is counted, and how it is shown.

use std::time::{Duration, Instant};

use haft_core::BoxFuture;
use haft_core::outcome::Outcome;
use haft_runtime::pipeline::Call;
use haft_runtime::stages::{Next, Stage};
use metrics::{Counter, Gauge, Histogram, Key, Label, Level, Metadata, Recorder};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle, PrometheusRecorder};

/// The upper bounds of the buckets of call times, in seconds.
const BUCKETS: [f64; 12] = [0.000_1, 0.000_5, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 60.0];

const META: Metadata<'static> = Metadata::new("haft", Level::INFO, None);

/// The counters of one server. Not the process-wide recorder: a program may embed several servers.
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
    /// Makes all counters, at zero.
    pub(crate) fn new() -> Self {
        let builder = PrometheusBuilder::new();
        // The only fault is an empty list of buckets.
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

    /// Counts the answer to a request.
    pub(crate) fn answered(&self, status: u16) {
        let class = usize::from(status / 100).saturating_sub(2).min(3);
        if let Some(counter) = self.requests.get(class) {
            counter.increment(1);
        }
    }

    /// Returns everything in the text form of Prometheus.
    pub(crate) fn text(&self, tools: usize) -> String {
        self.tools.set(f64::from(u32::try_from(tools).unwrap_or(u32::MAX)));
        self.keep();
        self.handle.render()
    }

    /// Sorts call times into their buckets; until then each of them takes memory.
    pub(crate) fn keep(&self) {
        self.handle.run_upkeep();
    }

    /// Says what the metrics are, for the text form.
    #[must_use]
    pub(crate) fn described(self) -> Self {
        let describe = |name: &'static str, text: &'static str| {
            self.recorder.describe_counter(name.into(), None, text.into());
        };
        describe("haft_calls_total", "Calls that ran, by outcome");
        describe("haft_http_requests_total", "Requests answered, by class of status");
        self.recorder.describe_histogram("haft_call_seconds".into(), None, "How long calls took".into());
        self.recorder.describe_gauge("haft_calls_running".into(), None, "Calls that run now".into());
        self.recorder.describe_gauge("haft_tools".into(), None, "Tools in the registry".into());
        self
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new().described()
    }
}

/// Counts calls and their time.
pub(crate) struct Measure(pub(crate) std::sync::Arc<Metrics>);

impl Stage for Measure {
    fn call<'a>(&'a self, call: &'a mut Call, next: Next<'a>) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            let running = Running::enter(&self.0.running);
            let started = Instant::now();
            let outcome = next.run(call).await;
            drop(running);
            self.0.seconds.record(elapsed(started));
            if outcome.is_ok() {
                self.0.succeeded.increment(1);
            } else {
                self.0.failed.increment(1);
            }
            outcome
        })
    }
}

fn elapsed(since: Instant) -> f64 {
    Duration::as_secs_f64(&since.elapsed())
}

/// Counts a call as running until dropped, also when its future is.
struct Running<'a>(&'a Gauge);

impl<'a> Running<'a> {
    fn enter(gauge: &'a Gauge) -> Self {
        gauge.increment(1.0);
        Self(gauge)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.decrement(1.0);
    }
}
