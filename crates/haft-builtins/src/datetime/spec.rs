//! The definition of `datetime_utils`.

use haft_core::name::NameError;
use haft_core::spec::ToolSpec;
use serde_json::json;

use crate::tool::{Describe, describe};

pub(crate) fn spec() -> Result<ToolSpec, NameError> {
    let zone = "IANA time zone such as Europe/Berlin, or an offset such as +02:00. Default: UTC";
    describe(Describe {
        name: "datetime_utils",
        description: "Get the current time, or parse, format, convert, shift and compare dates and times in any time zone, \
                      including daylight saving time. Use it instead of calculating dates yourself. Returns a time as an \
                      object with iso, utc, timezone, unix, date, time and weekday; format returns text, difference a \
                      duration.",
        category: "data",
        tags: &["time", "date", "read-only"],
        input: json!({
            "type": "object",
            "properties": {
                "operation": {
                    "enum": ["now", "parse", "format", "convert", "add", "subtract", "difference", "start_of", "end_of"],
                    "description": "now: the current time. parse: parse `time`. format: format `time` with `format`. convert: \
                                    convert `time` to `timezone`. add, subtract: shift `time` by `duration`. difference: the \
                                    duration from `time` to `other`. start_of, end_of: the start or end of the `unit` that \
                                    contains `time`.",
                },
                "time": {
                    "type": ["string", "number"], "maxLength": 200,
                    "description": "The time: 2026-11-15T09:30:00Z, 2026-11-15 09:30, 2026-11-15, Unix seconds, an e-mail date, or \
                                    `now` (the default). A time without an offset is in `timezone`.",
                },
                "other": {"type": ["string", "number"], "maxLength": 200, "description": "difference: the second time"},
                "timezone": {"type": "string", "maxLength": 100, "description": zone},
                "format": {
                    "type": "string", "maxLength": 200,
                    "description": "strftime format, such as %Y-%m-%d %H:%M or %A, %d %B %Y. format: the format of the result. \
                                    parse: the format of `time`, if it is not a common one.",
                },
                "duration": {
                    "type": "string", "maxLength": 200,
                    "description": "add, subtract: the duration, such as 1 month 2 days, 90m or P1DT12H",
                },
                "unit": {
                    "enum": ["second", "minute", "hour", "day", "week", "month", "quarter", "year"],
                    "description": "start_of, end_of: the unit (weeks start on Monday). difference: the largest unit of the result.",
                },
            },
            "required": ["operation"],
            "additionalProperties": false,
        }),
        output: json!({"type": "object"}),
    })
}
