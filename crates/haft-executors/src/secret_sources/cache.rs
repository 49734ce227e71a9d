//! Keeps what sources returned, for as long as the settings allow; one caller at a time reads a secret again.

use std::collections::HashMap;
use std::future::Future;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use haft_core::Clock;
use haft_core::secret::ExternalSecretError;
use tokio::sync::Mutex as AsyncMutex;

use super::value::SecretValue;

/// The maximum number of secrets.
const MAX_ENTRIES: usize = 1000;

/// How long an older value is used before the source is asked again.
const RETRY_PAUSE: Duration = Duration::from_secs(10);

/// How often values that cannot be used any more are removed, at most.
const SWEEP_INTERVAL: Duration = Duration::from_mins(1);

/// Returns a time span in milliseconds.
pub(super) fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

/// Returns the time of a clock in milliseconds.
pub(super) fn now(clock: &dyn Clock) -> i64 {
    clock.now().as_millisecond()
}

/// How long a value is kept.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lifetimes {
    /// How long it is used without asking the source.
    pub(super) fresh: Duration,
    /// How much longer it is used while the source does not respond.
    pub(super) stale: Duration,
}

/// The values of an installation, by source and path.
pub(super) struct SecretCache {
    clock: Arc<dyn Clock>,
    entries: Mutex<HashMap<String, Arc<Entry>>>,
    max_entries: usize,
    /// Counts uses, to order them.
    uses: AtomicU64,
    /// When values that cannot be used any more were removed, by the clock.
    swept_at: AtomicI64,
}

struct Entry {
    slot: AsyncMutex<Slot>,
    last_use: AtomicU64,
}

/// The state of one secret. The holder of the lock may read it from the source.
#[derive(Default)]
struct Slot {
    value: Option<Cached>,
    /// The last failure; callers that waited for that attempt share it.
    failure: Option<(Instant, ExternalSecretError)>,
}

struct Cached {
    value: Arc<SecretValue>,
    /// When the source had returned it; callers that waited for it share it.
    fetched: Instant,
    /// From when to when it is used without asking the source, by the clock.
    fresh_from: i64,
    fresh_until: i64,
    /// Until when it is used if the source does not respond.
    stale_until: i64,
    /// Until when the source is not asked again, because it did not respond.
    retry_at: i64,
}

impl Cached {
    /// A value from the future means that the clock was set back: its age is unknown.
    fn is_fresh(&self, now: i64) -> bool {
        (self.fresh_from..self.fresh_until).contains(&now)
    }

    fn is_usable(&self, now: i64) -> bool {
        (self.fresh_from..self.stale_until).contains(&now)
    }
}

impl Entry {
    /// Returns whether nobody waits for it, and nobody can use its value any more.
    fn is_expired(self: &Arc<Self>, now: i64) -> bool {
        let is_usable = |slot: &Slot| slot.value.as_ref().is_some_and(|cached| cached.is_usable(now));
        Arc::strong_count(self) == 1 && self.slot.try_lock().is_ok_and(|slot| !is_usable(&slot))
    }
}

impl SecretCache {
    /// Creates an empty cache.
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        let swept_at = AtomicI64::new(now(&*clock));
        let uses = AtomicU64::new(0);
        Self { clock, entries: Mutex::default(), max_entries: MAX_ENTRIES, uses, swept_at }
    }

    /// Returns the value of a key; reads it from the source if there is no fresh one.
    pub(super) async fn get(
        &self,
        key: &str,
        lifetimes: Lifetimes,
        fetch: impl Future<Output = Result<SecretValue, ExternalSecretError>> + Send,
    ) -> Result<Arc<SecretValue>, ExternalSecretError> {
        let started = Instant::now();
        let entry = self.entry(key);
        let mut slot = entry.slot.lock().await;
        let now = now(&*self.clock);
        if let Some(cached) = &slot.value {
            let is_paused = cached.is_usable(now) && now < cached.retry_at;
            if cached.is_fresh(now) || is_paused || cached.fetched > started {
                return Ok(Arc::clone(&cached.value));
            }
        }
        if let Some((when, error)) = &slot.failure
            && *when > started
        {
            return Err(error.clone());
        }
        if let Some(older) = slot.value.as_mut().filter(|cached| cached.is_usable(now)) {
            // Set before the source is asked, because the caller may give up before it responds.
            older.retry_at = self.next_attempt();
        }
        match fetch.await {
            Ok(value) => {
                let value = Arc::new(value);
                let fresh_until = now.saturating_add(millis(lifetimes.fresh));
                slot.failure = None;
                slot.value = Some(Cached {
                    value: Arc::clone(&value),
                    fetched: Instant::now(),
                    fresh_from: now,
                    fresh_until,
                    stale_until: fresh_until.saturating_add(millis(lifetimes.stale)),
                    retry_at: now,
                });
                Ok(value)
            }
            Err(error) => {
                let older = slot.value.as_mut().filter(|cached| cached.is_usable(now));
                if let (true, Some(cached)) = (error.is_unavailable(), older) {
                    tracing::warn!(secret = key, %error, "an older value of a secret is used");
                    cached.retry_at = self.next_attempt();
                    return Ok(Arc::clone(&cached.value));
                }
                slot.value = None;
                slot.failure = Some((Instant::now(), error.clone()));
                Err(error)
            }
        }
    }

    /// Returns until when a source that does not respond is not asked again.
    fn next_attempt(&self) -> i64 {
        now(&*self.clock).saturating_add(millis(RETRY_PAUSE))
    }

    fn entry(&self, key: &str) -> Arc<Entry> {
        let now = now(&*self.clock);
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = !entries.contains_key(key);
        let since = now.saturating_sub(self.swept_at.load(Ordering::Relaxed));
        if is_new || !(0..millis(SWEEP_INTERVAL)).contains(&since) {
            // Values that cannot be used any more do not stay in memory.
            self.swept_at.store(now, Ordering::Relaxed);
            entries.retain(|known, entry| known == key || !entry.is_expired(now));
        }
        let this_use = self.uses.fetch_add(1, Ordering::Relaxed);
        if let Some(entry) = entries.get(key) {
            entry.last_use.store(this_use, Ordering::Relaxed);
            return Arc::clone(entry);
        }
        if entries.len() >= self.max_entries {
            evict(&mut entries, (self.max_entries / 16).max(1));
        }
        let entry = Arc::new(Entry { slot: AsyncMutex::default(), last_use: AtomicU64::new(this_use) });
        entries.insert(key.to_owned(), Arc::clone(&entry));
        entry
    }
}

/// Removes the entries that were used least recently and that nobody waits for.
fn evict(entries: &mut HashMap<String, Arc<Entry>>, count: usize) {
    let idle = entries.iter().filter(|(_, entry)| Arc::strong_count(entry) == 1);
    let mut idle: Vec<_> =
        idle.map(|(key, entry)| (entry.last_use.load(Ordering::Relaxed), key.clone())).collect();
    idle.sort_unstable();
    for (_, key) in idle.into_iter().take(count) {
        entries.remove(&key);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use haft_core::Timestamp;
    use haft_core::secret::Secret;
    use tokio::sync::Notify;

    use super::*;

    /// A clock that the test sets, in seconds.
    #[derive(Default)]
    struct TestClock(AtomicI64);

    impl Clock for TestClock {
        fn now(&self) -> Timestamp {
            Timestamp::from_second(self.0.load(Ordering::SeqCst)).unwrap()
        }
    }

    struct World {
        clock: Arc<TestClock>,
        cache: SecretCache,
        fetches: AtomicUsize,
    }

    impl World {
        fn new() -> Self {
            let clock = Arc::new(TestClock::default());
            let cache = SecretCache::new(Arc::clone(&clock) as _);
            Self { clock, cache, fetches: AtomicUsize::new(0) }
        }

        fn at(&self, second: i64) {
            self.clock.0.store(second, Ordering::SeqCst);
        }

        /// Reads a secret that is fresh for 60 seconds and usable for 60 more; the source returns this.
        async fn get(&self, answer: Result<&str, ExternalSecretError>) -> Result<String, String> {
            let lifetimes = Lifetimes { fresh: Duration::from_mins(1), stale: Duration::from_mins(1) };
            self.get_within(lifetimes, answer).await
        }

        async fn get_within(
            &self,
            lifetimes: Lifetimes,
            answer: Result<&str, ExternalSecretError>,
        ) -> Result<String, String> {
            let fetch = async {
                self.fetches.fetch_add(1, Ordering::SeqCst);
                answer.and_then(|text| SecretValue::from_bytes(text.as_bytes().to_vec()))
            };
            let value = self.cache.get("vault:a", lifetimes, fetch).await;
            match value {
                Ok(value) => Ok(value.select(None).unwrap().expose().to_owned()),
                Err(error) => Err(error.to_string()),
            }
        }
    }

    #[tokio::test]
    async fn a_value_is_read_again_when_its_time_is_over() {
        let world = World::new();
        assert_eq!(world.get(Ok("one")).await, Ok("one".to_owned()));
        world.at(59);
        assert_eq!(world.get(Ok("two")).await, Ok("one".to_owned()));
        world.at(60);
        assert_eq!(world.get(Ok("three")).await, Ok("three".to_owned()));
        // The clock was set back.
        world.at(30);
        assert_eq!(world.get(Ok("four")).await, Ok("four".to_owned()));
        assert_eq!(world.fetches.load(Ordering::SeqCst), 3);
    }

    #[tokio::test]
    async fn an_older_value_is_used_only_while_the_source_does_not_respond() {
        let world = World::new();
        let sealed = || Err(ExternalSecretError::Sealed);
        assert_eq!(world.get(Ok("one")).await, Ok("one".to_owned()));
        world.at(70);
        assert_eq!(world.get(sealed()).await, Ok("one".to_owned()));
        // The source is not asked at each call.
        assert_eq!(world.get(Ok("two")).await, Ok("one".to_owned()));
        assert_eq!(world.fetches.load(Ordering::SeqCst), 2);
        world.at(80);
        assert_eq!(world.get(Ok("two")).await, Ok("two".to_owned()));
        world.at(200);
        assert_eq!(world.get(sealed()).await, Err("Vault is sealed".to_owned()));
        assert_eq!(world.get(Ok("three")).await, Ok("three".to_owned()));
        // Whoever may not read it any more does not get the older value.
        world.at(270);
        let denied = ExternalSecretError::Denied("secret/data/a".to_owned());
        assert!(world.get(Err(denied)).await.unwrap_err().contains("403"));
        assert_eq!(world.get(sealed()).await, Err("Vault is sealed".to_owned()));
    }

    #[tokio::test]
    async fn without_a_lifetime_every_call_reads() {
        let world = World::new();
        let none = Lifetimes { fresh: Duration::ZERO, stale: Duration::ZERO };
        assert_eq!(world.get_within(none, Ok("one")).await, Ok("one".to_owned()));
        assert_eq!(world.get_within(none, Ok("two")).await, Ok("two".to_owned()));
    }

    #[tokio::test]
    async fn callers_that_wait_share_one_attempt() {
        for failure in [None, Some(ExternalSecretError::Sealed)] {
            let cache = Arc::new(SecretCache::new(Arc::new(TestClock::default())));
            let (fetches, release) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
            let mut callers = Vec::new();
            for _ in 0..8 {
                let (cache, fetches) = (Arc::clone(&cache), Arc::clone(&fetches));
                let (release, failure) = (Arc::clone(&release), failure.clone());
                callers.push(tokio::spawn(async move {
                    let none = Lifetimes { fresh: Duration::ZERO, stale: Duration::ZERO };
                    let fetch = async {
                        fetches.fetch_add(1, Ordering::SeqCst);
                        release.notified().await;
                        let value = || SecretValue::Text(Secret::new("v".to_owned()));
                        failure.map_or_else(|| Ok(value()), Err)
                    };
                    cache.get("vault:a", none, fetch).await.is_ok()
                }));
            }
            // On one thread: afterwards one caller reads, and all others wait for the lock.
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
            release.notify_one();
            for caller in callers {
                assert_eq!(caller.await.unwrap(), failure.is_none());
            }
            assert_eq!(fetches.load(Ordering::SeqCst), 1);
        }
    }

    #[tokio::test]
    async fn the_number_of_values_is_limited_and_expired_ones_are_dropped() {
        let clock = Arc::new(TestClock::default());
        let cache = SecretCache { max_entries: 4, ..SecretCache::new(Arc::clone(&clock) as _) };
        let minute = Lifetimes { fresh: Duration::from_mins(1), stale: Duration::ZERO };
        let add = async |key: &str| {
            let fetch = async { SecretValue::from_bytes(b"x".to_vec()) };
            cache.get(key, minute, fetch).await.unwrap();
        };
        for key in ["a", "b", "c", "d", "a", "e"] {
            add(key).await;
        }
        let keys = || {
            let mut keys: Vec<String> = cache.entries.lock().unwrap().keys().cloned().collect();
            keys.sort();
            keys
        };
        assert_eq!(keys(), ["a", "c", "d", "e"]);
        clock.0.store(60, Ordering::SeqCst);
        add("f").await;
        assert_eq!(keys(), ["f"]);

        // A read of another value removes them, too.
        add("g").await;
        clock.0.store(90, Ordering::SeqCst);
        add("h").await;
        clock.0.store(125, Ordering::SeqCst);
        add("h").await;
        assert_eq!(keys(), ["f", "g", "h"]);
        clock.0.store(150, Ordering::SeqCst);
        add("h").await;
        assert_eq!(keys(), ["h"]);
    }

    #[tokio::test]
    async fn a_caller_that_gives_up_leaves_the_older_value_to_the_next_one() {
        let world = World::new();
        assert_eq!(world.get(Ok("one")).await, Ok("one".to_owned()));
        world.at(70);
        let lifetimes = Lifetimes { fresh: Duration::from_mins(1), stale: Duration::from_mins(1) };
        let silent = world.cache.get("vault:a", lifetimes, std::future::pending());
        assert!(tokio::time::timeout(Duration::from_millis(10), silent).await.is_err());
        assert_eq!(world.get(Ok("two")).await, Ok("one".to_owned()));
        world.at(80);
        assert_eq!(world.get(Ok("two")).await, Ok("two".to_owned()));
    }
}
