//! `datetime_utils`: the time, in any zone, and what can be reckoned with it.

mod calendar;
mod read;
mod spec;
mod tool;

pub(crate) use spec::spec;
pub(crate) use tool::DatetimeUtils;
