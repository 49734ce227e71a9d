//! Times and ids of the tables.

use haft_core::{Clock, Timestamp};
use uuid::Uuid;

/// Returns the current time in whole microseconds, the precision of the tables.
pub(crate) fn now(clock: &dyn Clock) -> Timestamp {
    from_micros(clock.now().as_microsecond())
}

/// Converts a time from a table.
pub(crate) fn from_micros(micros: i64) -> Timestamp {
    Timestamp::from_microsecond(micros).unwrap_or(Timestamp::UNIX_EPOCH)
}

/// Creates an id that sorts by time.
pub(crate) fn new_id(clock: &dyn Clock) -> Uuid {
    let now = clock.now();
    let seconds = u64::try_from(now.as_second()).unwrap_or_default();
    let nanos = u32::try_from(now.subsec_nanosecond()).unwrap_or_default();
    Uuid::new_v7(uuid::Timestamp::from_unix(uuid::NoContext, seconds, nanos))
}

/// Creates an id that sorts by microseconds; other ids sort by milliseconds.
pub(crate) fn id_at_microsecond(at: Timestamp) -> Uuid {
    let mut random = [0_u8; 10];
    // Without randomness, only the time distinguishes ids.
    let _ = getrandom::fill(&mut random);
    let micros = u64::try_from(at.as_microsecond()).unwrap_or_default();
    // The first 12 bits hold the microseconds.
    let [high, low] = u16::try_from((micros % 1000) * 4).unwrap_or_default().to_be_bytes();
    random[0] = high;
    random[1] = low | (random[1] & 3);
    uuid::Builder::from_unix_timestamp_millis(micros / 1000, &random).into_uuid()
}

/// Returns the time of an id that sorts by time.
pub(crate) fn of_id(id: Uuid) -> Timestamp {
    let (seconds, nanos) = id.get_timestamp().map_or((0, 0), |time| time.to_unix());
    let seconds = i64::try_from(seconds).unwrap_or_default();
    Timestamp::new(seconds, i32::try_from(nanos).unwrap_or_default()).unwrap_or(Timestamp::UNIX_EPOCH)
}

/// Returns the smallest id of a time: all older ids sort before it.
pub(crate) fn min_id_at(at: Timestamp) -> Uuid {
    let millis = u64::try_from(at.as_millisecond()).unwrap_or_default();
    uuid::Builder::from_unix_timestamp_millis(millis, &[0; 10]).into_uuid()
}
