//! The definition of `datetime_utils`.

use haft_core::name::NameError;
use haft_core::spec::ToolSpec;
use serde_json::json;

use crate::tool::{Describe, describe};

pub(crate) fn spec() -> Result<ToolSpec, NameError> {
    let zone = "IANA name of a time zone, such as Europe/Berlin; UTC where it is left out";
    describe(Describe {
        name: "datetime_utils",
        description: "Tell the current time, and read, format, convert and reckon with dates and times in any time zone, \
                      daylight saving included. Use it instead of working dates out yourself. A time comes back as an object \
                      with iso, utc, timezone, unix, date, time and weekday; format returns text, difference a duration.",
        category: "data",
        tags: &["time", "date", "read-only"],
        input: json!({
            "type": "object",
            "properties": {
                "operation": {
                    "enum": ["now", "parse", "format", "convert", "add", "subtract", "difference", "start_of", "end_of"],
                    "description": "now: the current time. parse: read `time`. format: write `time` as `format` says. convert: \
                                    show `time` in `timezone`. add, subtract: move `time` by `duration`. difference: from `time` \
                                    to `other`. start_of, end_of: the first or last moment of the `unit` that `time` is in.",
                },
                "time": {
                    "type": ["string", "number"], "maxLength": 200,
                    "description": "A time: 2026-11-15T09:30:00Z, 2026-11-15 09:30, 2026-11-15, Unix seconds, an e-mail date, or \
                                    `now` (also where it is left out). Without an offset it is in `timezone`.",
                },
                "other": {"type": ["string", "number"], "maxLength": 200, "description": "difference: the later time"},
                "timezone": {"type": "string", "maxLength": 100, "description": zone},
                "format": {
                    "type": "string", "maxLength": 200,
                    "description": "format: how to write the time, such as %Y-%m-%d %H:%M or %A, %d %B %Y. parse: how `time` is written, \
                                    where it is in no usual form.",
                },
                "duration": {
                    "type": "string", "maxLength": 200,
                    "description": "add, subtract: how far, such as 1 month 2 days, 90m or P1DT12H",
                },
                "unit": {
                    "enum": ["second", "minute", "hour", "day", "week", "month", "quarter", "year"],
                    "description": "start_of, end_of: which unit (weeks begin on Monday). difference: the largest unit of the answer.",
                },
            },
            "required": ["operation"],
            "additionalProperties": false,
        }),
        output: json!({"type": "object"}),
    })
}
