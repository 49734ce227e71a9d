//! The start and the end of a calendar unit.

use jiff::civil::{Date, DateTime, Time};
use jiff::{Error, ToSpan as _, Zoned};
use serde::Deserialize;

/// A calendar unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Unit {
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Quarter,
    Year,
}

impl Unit {
    /// Returns the unit of `jiff`, which has no quarters.
    pub(super) const fn to_jiff(self) -> jiff::Unit {
        match self {
            Unit::Second => jiff::Unit::Second,
            Unit::Minute => jiff::Unit::Minute,
            Unit::Hour => jiff::Unit::Hour,
            Unit::Day => jiff::Unit::Day,
            Unit::Week => jiff::Unit::Week,
            Unit::Month | Unit::Quarter => jiff::Unit::Month,
            Unit::Year => jiff::Unit::Year,
        }
    }

    /// Returns the start of the unit that contains a time.
    pub(super) fn start(self, time: &Zoned) -> Result<Zoned, Error> {
        let (date, clock) = (time.date(), time.time());
        // Subtracting a duration keeps a repeated hour (end of daylight saving time) unambiguous.
        let elapsed = match self {
            Unit::Second => Some(0.seconds()),
            Unit::Minute => Some(i64::from(clock.second()).seconds()),
            Unit::Hour => Some((i64::from(clock.minute()) * 60 + i64::from(clock.second())).seconds()),
            _ => None,
        };
        if let Some(elapsed) = elapsed {
            return time.checked_sub(elapsed.nanoseconds(clock.subsec_nanosecond()));
        }
        self.first_day(date)?.to_zoned(time.time_zone().clone())?.start_of_day()
    }

    /// Returns the end of the unit that contains a time.
    pub(super) fn end(self, time: &Zoned) -> Result<Zoned, Error> {
        let start = self.start(time)?;
        let zone = time.time_zone().clone();
        let next = match self {
            Unit::Second => start.checked_add(1.second())?,
            Unit::Minute => start.checked_add(1.minute())?,
            Unit::Hour => start.checked_add(1.hour())?,
            Unit::Day => start.date().checked_add(1.day())?.to_zoned(zone)?,
            Unit::Week => start.date().checked_add(1.week())?.to_zoned(zone)?,
            Unit::Month => start.date().checked_add(1.month())?.to_zoned(zone)?,
            Unit::Quarter => start.date().checked_add(3.months())?.to_zoned(zone)?,
            Unit::Year => start.date().checked_add(1.year())?.to_zoned(zone)?,
        };
        next.checked_sub(1.nanosecond())
    }

    fn first_day(self, date: Date) -> Result<DateTime, Error> {
        let first = match self {
            Unit::Second | Unit::Minute | Unit::Hour | Unit::Day => date,
            Unit::Week => date.checked_sub(i64::from(date.weekday().to_monday_zero_offset()).days())?,
            Unit::Month => date.first_of_month(),
            Unit::Quarter => Date::new(date.year(), (date.month() - 1) / 3 * 3 + 1, 1)?,
            Unit::Year => date.first_of_year(),
        };
        Ok(first.to_datetime(Time::midnight()))
    }
}
