//! Caches the probe results of each engine and image.
//!
//! A successful report is kept. A failed one expires: the machine may have been busy, or a container service not yet
//! started.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use crate::sandbox::Sandbox;
use crate::self_test::{self, ProbeReport, ProbeTarget};
use crate::settings::EngineName;

/// How long a failed report is kept.
const FAILURE_TTL: Duration = Duration::from_secs(10);

/// An engine, and the image if it is not the configured one.
type Key = (EngineName, Option<String>);

/// The reports, by engine and image.
#[derive(Debug, Default)]
pub(crate) struct ProbeCache {
    slots: Mutex<HashMap<Key, Arc<Slot>>>,
}

#[derive(Debug, Default)]
struct Slot {
    passed: OnceLock<Arc<ProbeReport>>,
    /// Locked while the probes run, so that concurrent callers share them.
    failed: tokio::sync::Mutex<Option<(Instant, Arc<ProbeReport>)>>,
}

impl ProbeCache {
    /// Returns the report of an engine; the first call runs the probes.
    pub(crate) async fn get(
        &self,
        sandbox: &Sandbox,
        engine: EngineName,
        image: Option<&str>,
    ) -> Arc<ProbeReport> {
        let key = (engine, image.map(str::to_owned));
        let slot =
            Arc::clone(self.slots.lock().unwrap_or_else(PoisonError::into_inner).entry(key).or_default());
        if let Some(probe_report) = slot.passed.get() {
            return Arc::clone(probe_report);
        }
        let mut failed = slot.failed.lock().await;
        match (slot.passed.get(), &*failed) {
            (Some(probe_report), _) => return Arc::clone(probe_report),
            (None, Some((when, probe_report))) if when.elapsed() < FAILURE_TTL => {
                return Arc::clone(probe_report);
            }
            _ => {}
        }
        let probe_report =
            Arc::new(Box::pin(self_test::probe_all(ProbeTarget { sandbox, engine, image })).await);
        if probe_report.passed() {
            return Arc::clone(slot.passed.get_or_init(|| probe_report));
        }
        *failed = Some((Instant::now(), Arc::clone(&probe_report)));
        probe_report
    }
}
