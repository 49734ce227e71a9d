//! What a cache holds, bounded in number and in memory; what was asked for longest ago goes first.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Instant;

use serde_json::Value;
use tokio::sync::watch;

use super::{Flight, Key};

/// What an entry takes besides its value, roughly: two keys, two nodes.
const OVERHEAD: usize = 400;

pub(super) struct Kept {
    pub(super) most_entries: usize,
    pub(super) most_bytes: usize,
    pub(super) flights: HashMap<Key, watch::Receiver<Flight>>,
    entries: HashMap<Key, Entry>,
    /// Keys by when they were last asked for.
    order: BTreeMap<u64, Key>,
    bytes: usize,
    asked: u64,
}

struct Entry {
    value: Arc<Value>,
    bytes: usize,
    until: Instant,
    asked: u64,
}

impl Kept {
    pub(super) fn new(most_entries: usize, most_bytes: usize) -> Self {
        Self {
            most_entries,
            most_bytes,
            flights: HashMap::new(),
            entries: HashMap::new(),
            order: BTreeMap::new(),
            bytes: 0,
            asked: 0,
        }
    }

    pub(super) fn get(&mut self, key: &Key, now: Instant) -> Option<Arc<Value>> {
        if self.entries.get(key)?.until <= now {
            self.remove(key);
            return None;
        }
        self.asked += 1;
        let entry = self.entries.get_mut(key)?;
        if let Some(key) = self.order.remove(&entry.asked) {
            self.order.insert(self.asked, key);
        }
        entry.asked = self.asked;
        Some(Arc::clone(&entry.value))
    }

    pub(super) fn insert(&mut self, key: Key, value: Arc<Value>, until: Instant) {
        self.remove(&key);
        let bytes = size(&value).saturating_add(OVERHEAD);
        if bytes > self.most_bytes || self.most_entries == 0 {
            return;
        }
        while self.entries.len() >= self.most_entries || self.bytes + bytes > self.most_bytes {
            let Some(oldest) = self.order.first_key_value().map(|(_, key)| key.clone()) else { break };
            self.remove(&oldest);
        }
        self.asked += 1;
        self.bytes += bytes;
        self.order.insert(self.asked, key.clone());
        self.entries.insert(key, Entry { value, bytes, until, asked: self.asked });
    }

    pub(super) fn clear(&mut self) {
        self.entries.clear();
        self.order.clear();
        self.bytes = 0;
    }

    fn remove(&mut self, key: &Key) {
        if let Some(entry) = self.entries.remove(key) {
            self.order.remove(&entry.asked);
            self.bytes -= entry.bytes;
        }
    }
}

/// Returns how much memory a value takes, roughly.
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
                // The key, its hash, and its place in the index.
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
        Key { tenant: TenantId::default_tenant(), plan: 1, arguments: number.to_string() }
    }

    proptest! {
        #[test]
        fn the_bounds_hold_and_the_books_balance(
            most_entries in 0usize..8,
            most_bytes in 0usize..20_000,
            steps in prop::collection::vec((0u8..20, 0usize..6000, any::<bool>(), 0u64..40), 1..200),
        ) {
            let mut kept = Kept::new(most_entries, most_bytes);
            let mut now = Instant::now();
            for (number, length, write, gap) in steps {
                now += Duration::from_millis(gap);
                if write {
                    let value = Arc::new(Value::String("x".repeat(length)));
                    kept.insert(key(number), value, now + Duration::from_millis(100));
                } else if kept.get(&key(number), now).is_some() {
                    let newest = kept.order.last_key_value().map(|(_, key)| key.clone());
                    prop_assert_eq!(newest, Some(key(number)));
                }
                prop_assert!(kept.entries.len() <= most_entries && kept.bytes <= most_bytes);
                prop_assert_eq!(kept.entries.len(), kept.order.len());
                prop_assert_eq!(kept.bytes, kept.entries.values().map(|entry| entry.bytes).sum::<usize>());
            }
        }
    }

    #[test]
    fn what_was_asked_for_longest_ago_goes_first() {
        let now = Instant::now();
        let until = now + Duration::from_secs(1);
        let mut kept = Kept::new(2, usize::MAX);
        for number in [1, 2] {
            kept.insert(key(number), Arc::new(Value::from(number)), until);
        }
        assert!(kept.get(&key(1), now).is_some());
        kept.insert(key(3), Arc::new(Value::Null), until);
        let there: Vec<_> = (1..=3).map(|number| kept.get(&key(number), now).is_some()).collect();
        assert_eq!(there, [true, false, true]);
        assert_eq!(kept.get(&key(1), until), None);
    }
}
