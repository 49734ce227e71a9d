//! A map that is cheap to copy and to change a little: copies share the parts in which they do not differ.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::{BuildHasher as _, Hash, RandomState};
use std::sync::Arc;

/// How many parts a map has.
const SHARDS: u64 = 256;

/// A map of parts that copies share.
#[derive(Debug)]
pub(crate) struct ShardMap<K, V> {
    shards: Vec<Arc<HashMap<K, V>>>,
    hasher: RandomState,
}

impl<K, V> ShardMap<K, V> {
    /// Iterates over the entries, in no particular order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.shards.iter().flat_map(|shard| shard.iter())
    }

    /// Iterates over the keys, in no particular order.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &K> {
        self.iter().map(|(key, _)| key)
    }

    /// Iterates over the values, in no particular order.
    pub(crate) fn values(&self) -> impl Iterator<Item = &V> {
        self.iter().map(|(_, value)| value)
    }

    fn position<Q: Hash + ?Sized>(&self, key: &Q) -> usize {
        usize::try_from(self.hasher.hash_one(key) % SHARDS).unwrap_or_default()
    }
}

impl<K: Eq + Hash, V> ShardMap<K, V> {
    pub(crate) fn get<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.shards.get(self.position(key))?.get(key)
    }

    pub(crate) fn contains_key<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.get(key).is_some()
    }
}

impl<K: Eq + Hash + Clone, V: Clone> ShardMap<K, V> {
    pub(crate) fn insert(&mut self, key: K, value: V) {
        let position = self.position(&key);
        if let Some(shard) = self.shards.get_mut(position) {
            Arc::make_mut(shard).insert(key, value);
        }
    }

    pub(crate) fn remove<Q: Eq + Hash + ?Sized>(&mut self, key: &Q)
    where
        K: Borrow<Q>,
    {
        let position = self.position(key);
        if let Some(shard) = self.shards.get_mut(position).filter(|shard| shard.contains_key(key)) {
            Arc::make_mut(shard).remove(key);
        }
    }
}

impl<K, V> Default for ShardMap<K, V> {
    fn default() -> Self {
        Self { shards: (0..SHARDS).map(|_| Arc::default()).collect(), hasher: RandomState::new() }
    }
}

impl<K, V> Clone for ShardMap<K, V> {
    fn clone(&self) -> Self {
        Self { shards: self.shards.clone(), hasher: self.hasher.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_does_not_see_later_changes_and_shares_the_rest() {
        let mut map: ShardMap<String, u32> = ShardMap::default();
        for number in 0..1000 {
            map.insert(number.to_string(), number);
        }
        let before = map.clone();
        map.insert("7".to_owned(), 0);
        map.remove("8");
        map.remove("unknown");
        assert_eq!((map.get("7"), map.get("8"), map.keys().count()), (Some(&0), None, 999));
        assert_eq!((before.get("7"), before.get("8"), before.values().count()), (Some(&7), Some(&8), 1000));
        let shared = map.shards.iter().zip(&before.shards).filter(|(new, old)| Arc::ptr_eq(new, old)).count();
        assert!(shared >= 254, "{shared}");
    }
}
