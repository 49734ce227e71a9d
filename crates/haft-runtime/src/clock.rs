//! The clock of the machine.

use std::cell::Cell;
use std::time::{Duration, Instant};

use haft_core::id::CallId;
use haft_core::{Clock, Timestamp};
use uuid::Uuid;

/// Tells the time of the operating system.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the one Clock that asks the machine")]
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

/// Returns the moment by which deadlines and rates are counted: the runtime's, which tests can stop.
pub(crate) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

/// Returns how long ago a moment was.
pub(crate) fn since(moment: Instant) -> Duration {
    now().saturating_duration_since(moment)
}

/// Makes the identity of a call that starts at a time of day: in the order of time to a quarter of a microsecond, as
/// lists are. The library's own way to make one has a lock that all calls would meet at.
pub(crate) fn call_id(at: Timestamp) -> CallId {
    let (_, random) = Uuid::new_v4().as_u64_pair();
    CallId(id_of(u64::try_from(at.as_nanosecond()).unwrap_or_default(), random))
}

/// The same for a call that nobody records, which neither asks for the time of day nor for chance: it tells when its
/// thread made the first, and is the next after the last one of its thread.
pub(crate) fn passing_id() -> CallId {
    thread_local! {
        static NEXT: Cell<(u64, u64)> = Cell::new(call_id(SystemClock.now()).0.as_u64_pair());
    }
    let (time, number) = NEXT.get();
    // Nothing is carried from the number, which is chance, to the bits beside it that say which form of UUID this is.
    NEXT.set((time, VARIANT | (number.wrapping_add(1) & !(0b11 << 62))));
    CallId(Uuid::from_u64_pair(time, number))
}

/// The first bits of the second half, which say what the others mean.
const VARIANT: u64 = 0b10 << 62;

/// Makes a UUID of version 7 of nanoseconds since 1970, and of 62 bits that tell it from others of that time.
fn id_of(nanos: u64, distinct: u64) -> Uuid {
    const MILLISECOND: u64 = 1_000_000;
    let (millis, rest) = (nanos / MILLISECOND, nanos % MILLISECOND);
    let time = (millis << 16) | (7 << 12) | ((rest << 12) / MILLISECOND);
    Uuid::from_u64_pair(time, VARIANT | (distinct >> 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities_tell_their_time_and_follow_it() {
        let at = |nanos: i128| call_id(Timestamp::from_nanosecond(nanos).unwrap());
        let start = 1_800_000_000_123_000_000;
        let ids = [0, 250, 999_000, 1_000_000, 2_000_000_000].map(|later| at(start + later));
        assert!(ids.is_sorted(), "{ids:?}");
        assert_ne!(at(start), at(start));
        for id in ids {
            assert_eq!(id.to_string().parse(), Ok(id));
            assert_eq!(id.0.get_variant(), uuid::Variant::RFC4122);
        }
        let (earlier, later) = (passing_id(), passing_id());
        assert!(earlier < later && earlier.to_string().parse() == Ok(earlier));
        assert_eq!(ids[0].0.get_timestamp().unwrap().to_unix(), (1_800_000_000, 123_000_000));
    }
}
