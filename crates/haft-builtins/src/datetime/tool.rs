//! The operations of `datetime_utils`.

use std::sync::Arc;

use haft_core::Clock;
use haft_core::executor::CallContext;
use haft_core::outcome::{CallError, Outcome};
use haft_core::problem::excerpt;
use jiff::fmt::strtime;
use jiff::{Span, SpanRound, Zoned, ZonedDifference};
use serde::Deserialize;
use serde_json::{Value, json};

use super::calendar::Unit;
use super::read;
use crate::tool::{BuiltIn, invalid};

/// Reckons with times.
pub(crate) struct DatetimeUtils(pub(crate) Arc<dyn Clock>);

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "snake_case")]
enum Operation {
    Now,
    Parse,
    Format,
    Convert,
    Add,
    Subtract,
    Difference,
    StartOf,
    EndOf,
}

#[derive(Deserialize)]
pub(crate) struct Args {
    operation: Operation,
    time: Option<Value>,
    other: Option<Value>,
    timezone: Option<String>,
    format: Option<String>,
    duration: Option<String>,
    unit: Option<Unit>,
}

impl BuiltIn for DatetimeUtils {
    type Args = Args;

    async fn call(&self, _call: &CallContext, args: Args) -> Outcome {
        run(&args, self.0.now())
    }
}

fn run(args: &Args, now: haft_core::Timestamp) -> Outcome {
    let zone = read::zone(args.timezone.as_deref())?;
    // Only `parse` reads by the format; for `format` it says how to write.
    let how = args.format.as_deref().filter(|_| matches!(args.operation, Operation::Parse));
    let time = || read::time("time", args.time.as_ref(), how, &zone, now);
    // A time that brings its own zone is shown in the one that was asked for.
    let shown = |time: Zoned| match &args.timezone {
        Some(_) => time.with_time_zone(zone.clone()),
        None => time,
    };
    match args.operation {
        Operation::Now => Ok(describe(&now.to_zoned(zone.clone()))),
        Operation::Parse | Operation::Convert => Ok(describe(&shown(time()?))),
        Operation::Format => format(&shown(time()?), args.format.as_deref()),
        Operation::Add => moved(&shown(time()?), read::span(args.duration.as_deref())?),
        Operation::Subtract => moved(&shown(time()?), read::span(args.duration.as_deref())?.negate()),
        Operation::Difference => {
            let other = args.other.as_ref().ok_or_else(|| invalid("`other` is missing: the later time"))?;
            difference(
                &shown(time()?),
                &shown(read::time("other", Some(other), None, &zone, now)?),
                args.unit,
            )
        }
        Operation::StartOf => Ok(describe(&unit(args)?.start(&shown(time()?)).map_err(|_| out_of_range())?)),
        Operation::EndOf => Ok(describe(&unit(args)?.end(&shown(time()?)).map_err(|_| out_of_range())?)),
    }
}

fn unit(args: &Args) -> Result<Unit, CallError> {
    args.unit.ok_or_else(|| invalid("`unit` is missing: `day`, `week`, `month` or another"))
}

fn out_of_range() -> CallError {
    invalid("the time is out of range: only the years -9999 to 9999 can be reckoned with")
}

/// Everything about a time that a model may want.
fn describe(time: &Zoned) -> Value {
    let zone = time.time_zone().iana_name().map_or_else(|| time.offset().to_string(), str::to_owned);
    json!({
        "iso": time.strftime("%Y-%m-%dT%H:%M:%S%.f%:z").to_string(),
        "utc": time.timestamp().to_string(),
        "timezone": zone,
        "unix": time.timestamp().as_second(),
        "date": time.date().to_string(),
        "time": time.strftime("%H:%M:%S").to_string(),
        "weekday": time.strftime("%A").to_string(),
    })
}

fn format(time: &Zoned, format: Option<&str>) -> Outcome {
    let format =
        format.ok_or_else(|| invalid("`format` is missing: how to write the time, such as `%Y-%m-%d`"))?;
    if !format.contains('%') {
        let message =
            format!("`format`: `{}` says nothing of the time; {}", excerpt(format, 60), read::NO_PERCENT);
        return Err(invalid(message));
    }
    let mut text = String::new();
    strtime::BrokenDownTime::from(time).format(format, &mut text).map_err(|error| {
        invalid(format!(
            "`format`: `{}` cannot be used: {}",
            excerpt(format, 60),
            excerpt(&error.to_string(), 200)
        ))
    })?;
    Ok(json!({ "text": text }))
}

fn moved(time: &Zoned, by: Span) -> Outcome {
    time.checked_add(by).map(|time| describe(&time)).map_err(|_| out_of_range())
}

fn difference(from: &Zoned, to: &Zoned, unit: Option<Unit>) -> Outcome {
    let largest = unit.map_or(jiff::Unit::Day, Unit::largest);
    // Days and more are those of the first time's zone.
    let to = to.with_time_zone(from.time_zone().clone());
    let span = from.until(ZonedDifference::new(&to).largest(largest)).map_err(|_| out_of_range())?;
    let round = SpanRound::new().largest(largest).smallest(jiff::Unit::Second).relative(from);
    let whole = span.round(round).unwrap_or(span);
    let seconds = from.timestamp().duration_until(to.timestamp()).as_secs_f64();
    Ok(json!({ "text": format!("{whole:#}"), "iso": whole.to_string(), "seconds": seconds }))
}

#[cfg(test)]
#[path = "datetime_tests.rs"]
mod tests;
