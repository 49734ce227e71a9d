//! A limit of open streams, such as sockets and event streams: per node, per principal and per address, so that no client
//! can use all of them.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};

use crate::settings::ServerSettings;

/// The maximum numbers of open streams.
#[derive(Debug, Clone, Copy)]
pub struct StreamLimits {
    /// Of all clients.
    pub total: usize,
    /// Of one principal.
    pub per_principal: usize,
    /// Of one address; `None` means no limit.
    pub per_address: Option<usize>,
}

/// Counts the open streams.
pub struct StreamLimit {
    limits: StreamLimits,
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    total: usize,
    by_principal: HashMap<String, usize>,
    by_address: HashMap<IpAddr, usize>,
}

/// An open stream; it counts until it is dropped.
pub struct StreamPermit {
    limit: Arc<StreamLimit>,
    principal: String,
    address: Option<IpAddr>,
}

/// The limit that was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TooManyStreams {
    /// The limit per principal.
    #[error(
        "{0} streams and sockets of your token are open, which is the limit (`server.max_streams_per_token`); close one, or retry later"
    )]
    OfPrincipal(usize),
    /// The limit per address.
    #[error(
        "{0} streams and sockets of your address are open, which is the limit (`server.max_streams_per_address`); close one, or retry later"
    )]
    OfAddress(usize),
    /// The limit of the node.
    #[error(
        "{0} streams and sockets of this server are open, which is the limit (`server.max_streams`); retry later"
    )]
    OfNode(usize),
}

impl From<&ServerSettings> for StreamLimits {
    fn from(settings: &ServerSettings) -> Self {
        Self {
            total: settings.max_streams,
            per_principal: settings.max_streams_per_token,
            per_address: Some(settings.max_streams_per_address).filter(|limit| *limit > 0),
        }
    }
}

impl StreamLimit {
    /// Creates a limit without open streams.
    pub fn new(limits: StreamLimits) -> Arc<Self> {
        Arc::new(Self { limits, open: Mutex::default() })
    }

    /// Counts a stream of a principal, from an address if that is known.
    pub fn acquire(
        self: &Arc<Self>,
        principal: String,
        address: Option<IpAddr>,
    ) -> Result<StreamPermit, TooManyStreams> {
        let StreamLimits { total, per_principal, per_address } = self.limits;
        let address = address.filter(|_| per_address.is_some()).map(network);
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if count(&open.by_principal, &principal) >= per_principal {
            return Err(TooManyStreams::OfPrincipal(per_principal));
        }
        if let (Some(limit), Some(address)) = (per_address, &address)
            && count(&open.by_address, address) >= limit
        {
            return Err(TooManyStreams::OfAddress(limit));
        }
        if open.total >= total {
            return Err(TooManyStreams::OfNode(total));
        }
        open.total += 1;
        *open.by_principal.entry(principal.clone()).or_default() += 1;
        if let Some(address) = address {
            *open.by_address.entry(address).or_default() += 1;
        }
        drop(open);
        Ok(StreamPermit { limit: Arc::clone(self), principal, address })
    }
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        let mut open = self.limit.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.total -= 1;
        release(&mut open.by_principal, &self.principal);
        if let Some(address) = &self.address {
            release(&mut open.by_address, address);
        }
    }
}

/// Returns the address to count: an IPv6 client has a whole /64 network.
pub(crate) fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64)).into(),
    }
}

fn count<K: Hash + Eq>(open: &HashMap<K, usize>, key: &K) -> usize {
    open.get(key).copied().unwrap_or_default()
}

fn release<K: Hash + Eq>(open: &mut HashMap<K, usize>, key: &K) {
    let Some(count) = open.get_mut(key) else { return };
    *count -= 1;
    if *count == 0 {
        open.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_principal_and_one_address_leave_room_for_others() {
        let limit = StreamLimit::new(StreamLimits { total: 4, per_principal: 2, per_address: Some(3) });
        let open = |principal: &str, address: &str| {
            limit.acquire(principal.to_owned(), Some(address.parse().unwrap()))
        };
        let (first, second) = (open("a", "10.0.0.1").unwrap(), open("a", "10.0.0.1").unwrap());
        assert_eq!(open("a", "10.0.0.2").err(), Some(TooManyStreams::OfPrincipal(2)));
        let third = open("b", "10.0.0.1").unwrap();
        assert_eq!(open("c", "::ffff:10.0.0.1").err(), Some(TooManyStreams::OfAddress(3)));
        let fourth = open("c", "10.0.0.2").unwrap();
        assert_eq!(open("d", "10.0.0.3").err(), Some(TooManyStreams::OfNode(4)));
        drop(first);
        let fifth = open("a", "10.0.0.1").unwrap();
        drop((second, third, fourth, fifth));
        let left = limit.open.lock().unwrap();
        assert_eq!((left.total, left.by_principal.len(), left.by_address.len()), (0, 0, 0));
    }

    #[test]
    fn a_network_of_ipv6_is_one_address() {
        let limit = StreamLimit::new(StreamLimits { total: 9, per_principal: 9, per_address: Some(1) });
        let open = |address: &str| limit.acquire(address.to_owned(), Some(address.parse().unwrap()));
        let _first = open("2001:db8::1").unwrap();
        assert_eq!(open("2001:db8::2").err(), Some(TooManyStreams::OfAddress(1)));
        assert!(open("2001:db8:0:1::1").is_ok());
    }

    #[test]
    fn without_a_limit_addresses_are_not_counted() {
        let limit = StreamLimit::new(StreamLimits { total: 9, per_principal: 9, per_address: None });
        let address = "10.0.0.1".parse().ok();
        let permits: Vec<_> = (0..9).map(|_| limit.acquire("a".to_owned(), address).unwrap()).collect();
        assert_eq!(limit.acquire("b".to_owned(), address).err(), Some(TooManyStreams::OfNode(9)));
        drop(permits);
    }
}
