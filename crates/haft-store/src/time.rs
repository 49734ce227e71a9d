//! Moments and ids as the tables keep them.

use haft_core::{Clock, Timestamp};
use uuid::Uuid;

/// Returns the present moment as the tables can keep it: whole microseconds.
pub(crate) fn now(clock: &dyn Clock) -> Timestamp {
    from_micros(clock.now().as_microsecond())
}

/// Reads a moment from a table.
pub(crate) fn from_micros(micros: i64) -> Timestamp {
    Timestamp::from_microsecond(micros).unwrap_or(Timestamp::UNIX_EPOCH)
}

/// Makes an id that sorts by time.
pub(crate) fn new_id(clock: &dyn Clock) -> Uuid {
    let now = clock.now();
    let seconds = u64::try_from(now.as_second()).unwrap_or_default();
    let nanos = u32::try_from(now.subsec_nanosecond()).unwrap_or_default();
    Uuid::new_v7(uuid::Timestamp::from_unix(uuid::NoContext, seconds, nanos))
}

/// Makes an id of a moment that sorts by its microseconds, as ids otherwise do by their milliseconds only.
pub(crate) fn exact_id(moment: Timestamp) -> Uuid {
    let mut random = [0_u8; 10];
    // Without randomness the moment alone has to tell ids apart.
    let _ = getrandom::fill(&mut random);
    let micros = u64::try_from(moment.as_microsecond()).unwrap_or_default();
    // The first 12 bits follow the time.
    let [high, low] = u16::try_from((micros % 1000) * 4).unwrap_or_default().to_be_bytes();
    random[0] = high;
    random[1] = low | (random[1] & 3);
    uuid::Builder::from_unix_timestamp_millis(micros / 1000, &random).into_uuid()
}

/// Returns the smallest id of a moment: everything older sorts before it.
pub(crate) fn first_id_of(moment: Timestamp) -> Uuid {
    let millis = u64::try_from(moment.as_millisecond()).unwrap_or_default();
    uuid::Builder::from_unix_timestamp_millis(millis, &[0; 10]).into_uuid()
}
