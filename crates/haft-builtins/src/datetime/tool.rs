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
use super::parse;
use crate::tool::{BuiltIn, invalid};

/// The function of `datetime_utils`.
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
    let zone = parse::zone(args.timezone.as_deref())?;
    // `format` describes the input of `parse`, but the output of `format`.
    let input_format = args.format.as_deref().filter(|_| matches!(args.operation, Operation::Parse));
    let time = || parse::time("time", args.time.as_ref(), input_format, &zone, now);
    // A time with its own zone is converted to the requested one.
    let in_zone = |time: Zoned| match &args.timezone {
        Some(_) => time.with_time_zone(zone.clone()),
        None => time,
    };
    match args.operation {
        Operation::Now => Ok(describe(&now.to_zoned(zone.clone()))),
        Operation::Parse | Operation::Convert => Ok(describe(&in_zone(time()?))),
        Operation::Format => format(&in_zone(time()?), args.format.as_deref()),
        Operation::Add => shift(&in_zone(time()?), parse::duration(args.duration.as_deref())?),
        Operation::Subtract => shift(&in_zone(time()?), parse::duration(args.duration.as_deref())?.negate()),
        Operation::Difference => {
            let other =
                args.other.as_ref().ok_or_else(|| invalid("`other` is missing; pass the second time"))?;
            difference(
                &in_zone(time()?),
                &in_zone(parse::time("other", Some(other), None, &zone, now)?),
                args.unit,
            )
        }
        Operation::StartOf => {
            Ok(describe(&unit(args)?.start(&in_zone(time()?)).map_err(|_| out_of_range())?))
        }
        Operation::EndOf => Ok(describe(&unit(args)?.end(&in_zone(time()?)).map_err(|_| out_of_range())?)),
    }
}

fn unit(args: &Args) -> Result<Unit, CallError> {
    args.unit.ok_or_else(|| invalid("`unit` is missing; pass a unit such as `day`, `week` or `month`"))
}

fn out_of_range() -> CallError {
    invalid("the time is out of range; only the years -9999 to 9999 are supported")
}

/// Returns all fields of a time.
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
    let format = format.ok_or_else(|| invalid("`format` is missing; pass a format such as `%Y-%m-%d`"))?;
    if !format.contains('%') {
        let (format, hint) = (excerpt(format, 60), parse::FORMAT_HINT);
        return Err(invalid(format!("`format`: `{format}` contains no part of the time; {hint}")));
    }
    let mut text = String::new();
    strtime::BrokenDownTime::from(time).format(format, &mut text).map_err(|error| {
        invalid(format!(
            "`format`: `{}` is not a valid format: {}",
            excerpt(format, 60),
            excerpt(&error.to_string(), 200)
        ))
    })?;
    Ok(json!({ "text": text }))
}

fn shift(time: &Zoned, by: Span) -> Outcome {
    time.checked_add(by).map(|time| describe(&time)).map_err(|_| out_of_range())
}

fn difference(from: &Zoned, to: &Zoned, unit: Option<Unit>) -> Outcome {
    let largest = unit.map_or(jiff::Unit::Day, Unit::to_jiff);
    // Days and larger units depend on the time zone; use that of the first time.
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
