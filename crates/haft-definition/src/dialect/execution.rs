//! Reads execution settings and renderers.

use super::fields::{Fields, conflict};
use super::implementation::SECOND;
use haft_core::spec::{Execution, Limits, RateLimit, Renderer, Retry, Validation, default_backoff};

/// Reads the keys of an `execution` block.
pub(super) fn read(fields: &mut Fields<'_>) -> Execution {
    let validations =
        [("strict", Validation::Strict), ("coerce", Validation::Coerce), ("none", Validation::None)];
    let default = Execution::default();
    Execution {
        is_pure: fields.flag("is_pure").unwrap_or_default(),
        concurrency_group: fields.text("concurrency_group").unwrap_or(default.concurrency_group),
        max_concurrency: fields
            .integer("max_concurrency", "a number of parallel calls")
            .unwrap_or(default.max_concurrency),
        timeout_ms: timeout(fields),
        retry: retry(fields),
        validation: fields.choice("validation", &validations).unwrap_or_default(),
        limits: fields.nested("limits").map(|mut limits| read_limits(&mut limits)).unwrap_or_default(),
        rate_limit: rate_limits(fields),
    }
}

/// Reads a timeout under any of its aliases, in milliseconds.
pub(super) fn timeout(fields: &mut Fields<'_>) -> Option<u64> {
    match fields.alias(&["timeout", "timeout_ms", "timeout_s", "timeout_secs"])? {
        "timeout_ms" => fields.integer("timeout_ms", "a number of milliseconds"),
        "timeout" => fields.duration("timeout", SECOND),
        key => seconds(fields, key),
    }
}

fn seconds(fields: &mut Fields<'_>, key: &'static str) -> Option<u64> {
    let seconds: u64 = fields.integer(key, "a whole number of seconds")?;
    let millis = seconds.checked_mul(1000);
    if millis.is_none() {
        fields.error(key, "invalid_value", "the number of seconds is too large");
    }
    millis
}

/// Reads `retry: {attempts, backoff}`.
pub(super) fn retry(fields: &mut Fields<'_>) -> Option<Retry> {
    let mut retry = fields.nested("retry")?;
    if !retry.has("attempts") {
        retry.missing("attempts", "the number of retries");
    }
    let attempts = retry.integer("attempts", "a number of attempts");
    let backoff_ms = match retry.alias(&["backoff", "backoff_ms"]) {
        Some("backoff") => retry.duration("backoff", SECOND),
        Some(key) => retry.integer(key, "a number of milliseconds"),
        None => None,
    };
    Some(Retry { attempts: attempts?, backoff_ms: backoff_ms.unwrap_or_else(default_backoff) })
}

fn read_limits(limits: &mut Fields<'_>) -> Limits {
    let default = Limits::default();
    Limits {
        max_request_bytes: limits
            .integer("max_request_bytes", "a number of bytes")
            .unwrap_or(default.max_request_bytes),
        max_response_bytes: limits
            .integer("max_response_bytes", "a number of bytes")
            .unwrap_or(default.max_response_bytes),
        max_parallel: limits.integer("max_parallel", "a number of calls"),
    }
}

/// Reads the rate limit under both of its spellings.
fn rate_limits(fields: &mut Fields<'_>) -> Option<RateLimit> {
    let limit = fields.nested("rate_limit").and_then(|mut limit| rate_limit(&mut limit));
    let per_minute = calls_per_minute(fields);
    if let (Some(limit), Some(per_minute)) = (&limit, &per_minute)
        && limit != per_minute
    {
        let message = conflict(&fields.path("rate_limit"));
        fields.error("max_calls_per_minute", "conflicting_fields", message);
    }
    limit.or(per_minute)
}

/// Reads `maxCallsPerMinute`, the rate limit of `tool.json`.
pub(super) fn calls_per_minute(fields: &mut Fields<'_>) -> Option<RateLimit> {
    let calls = fields.integer("max_calls_per_minute", "a number of calls")?;
    Some(RateLimit { calls, per: "1m".to_owned() })
}

fn rate_limit(limit: &mut Fields<'_>) -> Option<RateLimit> {
    if !limit.has("calls") {
        limit.missing("calls", "how many calls are allowed");
    }
    let calls = limit.integer("calls", "a number of calls");
    let per = limit.required_text("per", "a duration such as `1m`");
    Some(RateLimit { calls: calls?, per: per? })
}

/// Reads the renderers of a tool.
pub(super) fn renderers(fields: &mut Fields<'_>) -> Vec<Renderer> {
    let mut renderers = Vec::new();
    for mut entry in fields.nested_list("renderers").unwrap_or_default() {
        let name = entry.required_text("renderer", "the kind of renderer, such as `code`");
        let priority = entry.integer("priority", "a whole number").unwrap_or_default();
        let config = entry.object("config").unwrap_or_default();
        renderers.extend(name.map(|renderer| Renderer { renderer, priority, config }));
    }
    renderers
}
