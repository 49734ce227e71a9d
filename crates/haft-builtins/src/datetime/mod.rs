//! `datetime_utils`: the current time, and arithmetic with dates and times in any time zone.

mod calendar;
mod parse;
mod spec;
mod tool;

pub(crate) use spec::spec;
pub(crate) use tool::DatetimeUtils;
