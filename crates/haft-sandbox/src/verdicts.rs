//! What is known about each engine, and the image it runs.
//!
//! A verdict that holds is kept. One that does not is looked at again after a while: a machine may have been busy,
//! a container service not started yet.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use crate::sandbox::Sandbox;
use crate::self_test::{self, ProbeReport, Subject};
use crate::settings::EngineName;

/// How long a verdict that does not hold counts.
const AGAIN: Duration = Duration::from_secs(10);

/// An engine, and the image it runs where that is not the configured one.
type Key = (EngineName, Option<String>);

/// The verdicts, by engine and image.
#[derive(Debug, Default)]
pub(crate) struct Verdicts {
    slots: Mutex<HashMap<Key, Arc<Slot>>>,
}

#[derive(Debug, Default)]
struct Slot {
    holds: OnceLock<Arc<ProbeReport>>,
    /// Held while the probes run, so that all who wait share them.
    failed: tokio::sync::Mutex<Option<(Instant, Arc<ProbeReport>)>>,
}

impl Verdicts {
    /// Returns what probes found; the first caller waits for them.
    pub(crate) async fn of(
        &self,
        sandbox: &Sandbox,
        engine: EngineName,
        image: Option<&str>,
    ) -> Arc<ProbeReport> {
        let key = (engine, image.map(str::to_owned));
        let slot =
            Arc::clone(self.slots.lock().unwrap_or_else(PoisonError::into_inner).entry(key).or_default());
        if let Some(verdict) = slot.holds.get() {
            return Arc::clone(verdict);
        }
        let mut failed = slot.failed.lock().await;
        match (slot.holds.get(), &*failed) {
            (Some(verdict), _) => return Arc::clone(verdict),
            (None, Some((when, verdict))) if when.elapsed() < AGAIN => return Arc::clone(verdict),
            _ => {}
        }
        let verdict = Arc::new(Box::pin(self_test::examine(Subject { sandbox, engine, image })).await);
        if verdict.holds() {
            return Arc::clone(slot.holds.get_or_init(|| verdict));
        }
        *failed = Some((Instant::now(), Arc::clone(&verdict)));
        verdict
    }
}
