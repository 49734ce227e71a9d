//! The entries of a cache, with limits on number and memory; the least recently used ones are evicted.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Instant;

use serde_json::Value;
use tokio::sync::watch;

use super::{Flight, Key};

/// The approximate memory of an entry besides its value: two keys, two nodes.
const OVERHEAD: usize = 400;

pub(super) struct CacheEntries {
    pub(super) max_entries: usize,
    pub(super) max_bytes: usize,
    pub(super) flights: HashMap<Key, watch::Receiver<Flight>>,
    entries: HashMap<Key, Entry>,
    /// Keys by their last use.
    order: BTreeMap<u64, Key>,
    bytes: usize,
    last_use: u64,
}

struct Entry {
    value: Arc<Value>,
    bytes: usize,
    until: Instant,
    last_use: u64,
}

impl CacheEntries {
    pub(super) fn new(max_entries: usize, max_bytes: usize) -> Self {
        Self {
            max_entries,
            max_bytes,
            flights: HashMap::new(),
            entries: HashMap::new(),
            order: BTreeMap::new(),
            bytes: 0,
            last_use: 0,
        }
    }

    pub(super) fn get(&mut self, key: &Key, now: Instant) -> Option<Arc<Value>> {
        if self.entries.get(key)?.until <= now {
            self.remove(key);
            return None;
        }
        self.last_use += 1;
        let entry = self.entries.get_mut(key)?;
        if let Some(key) = self.order.remove(&entry.last_use) {
            self.order.insert(self.last_use, key);
        }
        entry.last_use = self.last_use;
        Some(Arc::clone(&entry.value))
    }

    pub(super) fn insert(&mut self, key: Key, value: Arc<Value>, until: Instant) {
        self.remove(&key);
        let bytes = size(&value).saturating_add(OVERHEAD);
        if bytes > self.max_bytes || self.max_entries == 0 {
            return;
        }
        while self.entries.len() >= self.max_entries || self.bytes + bytes > self.max_bytes {
            let Some(oldest) = self.order.first_key_value().map(|(_, key)| key.clone()) else { break };
            self.remove(&oldest);
        }
        self.last_use += 1;
        self.bytes += bytes;
        self.order.insert(self.last_use, key.clone());
        self.entries.insert(key, Entry { value, bytes, until, last_use: self.last_use });
    }

    pub(super) fn clear(&mut self) {
        self.entries.clear();
        self.order.clear();
        self.bytes = 0;
    }

    fn remove(&mut self, key: &Key) {
        if let Some(entry) = self.entries.remove(key) {
            self.order.remove(&entry.last_use);
            self.bytes -= entry.bytes;
        }
    }
}

/// Returns the approximate memory of a value.
fn size(value: &Value) -> usize {
    let mut bytes = 0usize;
    let mut pending = vec![value];
    while let Some(value) = pending.pop() {
        bytes += size_of::<Value>();
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
            Value::String(text) => bytes += text.capacity(),
            Value::Array(items) => pending.extend(items),
            Value::Object(map) => {
                // The key, its hash, and its slot in the index.
                bytes += map.keys().map(|key| key.capacity() + size_of::<String>() + 16).sum::<usize>();
                pending.extend(map.values());
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use haft_core::name::TenantId;
    use proptest::prelude::*;
    use std::time::Duration;

    fn key(number: u8) -> Key {
        Key { tenant: TenantId::default_tenant(), actor: None, plan: 1, arguments: number.to_string() }
    }

    proptest! {
        #[test]
        fn the_limits_hold_and_the_sums_are_right(
            max_entries in 0usize..8,
            max_bytes in 0usize..20_000,
            steps in prop::collection::vec((0u8..20, 0usize..6000, any::<bool>(), 0u64..40), 1..200),
        ) {
            let mut cache = CacheEntries::new(max_entries, max_bytes);
            let mut now = Instant::now();
            for (number, length, write, gap) in steps {
                now += Duration::from_millis(gap);
                if write {
                    let value = Arc::new(Value::String("x".repeat(length)));
                    cache.insert(key(number), value, now + Duration::from_millis(100));
                } else if cache.get(&key(number), now).is_some() {
                    let newest = cache.order.last_key_value().map(|(_, key)| key.clone());
                    prop_assert_eq!(newest, Some(key(number)));
                }
                prop_assert!(cache.entries.len() <= max_entries && cache.bytes <= max_bytes);
                prop_assert_eq!(cache.entries.len(), cache.order.len());
                prop_assert_eq!(cache.bytes, cache.entries.values().map(|entry| entry.bytes).sum::<usize>());
            }
        }
    }

    #[test]
    fn what_was_asked_for_longest_ago_goes_first() {
        let now = Instant::now();
        let until = now + Duration::from_secs(1);
        let mut cache = CacheEntries::new(2, usize::MAX);
        for number in [1, 2] {
            cache.insert(key(number), Arc::new(Value::from(number)), until);
        }
        assert!(cache.get(&key(1), now).is_some());
        cache.insert(key(3), Arc::new(Value::Null), until);
        let there: Vec<_> = (1..=3).map(|number| cache.get(&key(number), now).is_some()).collect();
        assert_eq!(there, [true, false, true]);
        assert_eq!(cache.get(&key(1), until), None);
    }
}
