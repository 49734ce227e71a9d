//! A stage that caches the values of pure tools.

mod entries;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use haft_core::BoxFuture;
use haft_core::hash;
use haft_core::id::ActorId;
use haft_core::name::TenantId;
use haft_core::outcome::Outcome;
use serde_json::Value;
use tokio::sync::watch;

use self::entries::CacheEntries;
use crate::clock;
use crate::pipeline::Call;
use crate::stages::{Next, Stage};

/// Caches the values of pure tools (`execution.is_pure`). A cached value is returned for the same tenant, the same
/// person or service account, the same definition and function of the same tool, and the same arguments in any order. A changed or newly registered tool
/// never returns old values. Other tools are not cached.
///
/// Of several such calls at once one runs, and the others wait for it. Errors are not cached: if the call fails, the
/// waiting calls run themselves; if it is cancelled, the next one takes its place.
///
/// ```
/// use std::time::Duration;
/// use haft_runtime::stages::Cache;
///
/// let stage = Cache::new(Duration::from_secs(60)).max_entries(1000).max_bytes(16 << 20);
/// # drop(stage);
/// ```
pub struct Cache {
    state: Mutex<CacheEntries>,
    time: Duration,
}

/// The key of a cached value.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    tenant: TenantId,
    /// The person or service account, whose accounts the tool, or one that it calls, may use.
    actor: Option<ActorId>,
    /// The number of the compiled definition: a changed or newly registered tool has another one.
    plan: u64,
    arguments: String,
}

/// The state of a call that others wait for.
#[derive(Debug, Clone)]
enum Flight {
    Running,
    Landed(Arc<Value>),
    Failed,
}

/// The result of a lookup.
enum Lookup {
    Value(Arc<Value>),
    /// Another call is running.
    Wait(watch::Receiver<Flight>),
    /// This call runs and reports to the others.
    Run(watch::Sender<Flight>),
}

impl Cache {
    /// Caches values for this time: at most 1,000 of them, and 16 MiB.
    pub fn new(time: Duration) -> Self {
        Self { state: Mutex::new(CacheEntries::new(1000, 16 * 1024 * 1024)), time }
    }

    /// Sets the maximum number of values; the least recently used ones are evicted.
    #[must_use]
    pub fn max_entries(self, max: usize) -> Self {
        self.entries().max_entries = max;
        self
    }

    /// Sets the approximate memory limit. Values larger than all of it are not cached.
    #[must_use]
    pub fn max_bytes(self, max: usize) -> Self {
        self.entries().max_bytes = max;
        self
    }

    /// Removes all values.
    pub fn clear(&self) {
        self.entries().clear();
    }

    fn entries(&self) -> MutexGuard<'_, CacheEntries> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lookup(&self, key: &Key) -> Lookup {
        let mut entries = self.entries();
        if let Some(value) = entries.get(key, clock::now()) {
            return Lookup::Value(value);
        }
        if let Some(flight) = entries.flights.get(key) {
            return Lookup::Wait(flight.clone());
        }
        let (sender, receiver) = watch::channel(Flight::Running);
        entries.flights.insert(key.clone(), receiver);
        Lookup::Run(sender)
    }

    /// Runs a call for which others may wait.
    async fn run(
        &self,
        key: &Key,
        flight: watch::Sender<Flight>,
        call: &mut Call,
        next: Next<'_>,
    ) -> Outcome {
        let guard = FlightGuard { cache: self, key };
        let outcome = next.run(call).await;
        let landed = match &outcome {
            Ok(value) => {
                let value = Arc::new(value.clone());
                if let Some(until) = clock::now().checked_add(self.time) {
                    self.entries().insert(key.clone(), Arc::clone(&value), until);
                }
                Flight::Landed(value)
            }
            Err(_) => Flight::Failed,
        };
        // The value is stored before the flight ends, so that no other call runs in between.
        drop(guard);
        flight.send_replace(landed);
        outcome
    }
}

/// Removes a flight from the list when it ends, even if its call is dropped.
struct FlightGuard<'a> {
    cache: &'a Cache,
    key: &'a Key,
}

impl Drop for FlightGuard<'_> {
    fn drop(&mut self) {
        self.cache.entries().flights.remove(self.key);
    }
}

fn key(call: &Call) -> Key {
    Key {
        tenant: call.tenant().clone(),
        actor: call.principal().actor.as_ref().map(|actor| actor.id),
        plan: call.plan.number,
        // Not the digest of its idempotency key, which is that of the arguments as requested.
        arguments: hash::of_args(call.args()),
    }
}

impl Stage for Cache {
    fn call<'a>(&'a self, call: &'a mut Call, next: Next<'a>) -> BoxFuture<'a, Outcome> {
        if !call.plan.spec.execution.is_pure {
            return next.run(call);
        }
        Box::pin(async move {
            let key = key(call);
            loop {
                match self.lookup(&key) {
                    Lookup::Value(value) => return Ok(Value::clone(&value)),
                    Lookup::Run(flight) => return self.run(&key, flight, call, next).await,
                    Lookup::Wait(mut flight) => {
                        let over = flight.wait_for(|flight| !matches!(flight, Flight::Running)).await;
                        match over.map(|flight| flight.clone()) {
                            Ok(Flight::Landed(value)) => return Ok(Value::clone(&value)),
                            Ok(_) => return next.run(call).await,
                            // It was cancelled: another call takes over.
                            Err(_) => {}
                        }
                    }
                }
            }
        })
    }
}
