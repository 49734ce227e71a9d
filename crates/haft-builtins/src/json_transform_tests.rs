use std::sync::Arc;
use std::time::{Duration, Instant};

use haft_core::BoxFuture;
use haft_core::id::CallId;
use haft_core::name::TenantId;
use haft_core::secret::{Secret, SecretError, SecretSource};
use proptest::prelude::*;

use super::*;

struct NoSecrets;

impl SecretSource for NoSecrets {
    fn secret<'a>(
        &'a self,
        _: &'a TenantId,
        _: &'a str,
    ) -> BoxFuture<'a, Result<Option<Secret>, SecretError>> {
        Box::pin(std::future::ready(Ok(None)))
    }
}

fn transform(args: &Value) -> Result<Value, String> {
    let deadline = Instant::now() + Duration::from_mins(1);
    let call = CallContext::new(
        CallId(uuid::Uuid::nil()),
        TenantId::default_tenant(),
        deadline,
        Arc::new(NoSecrets),
    );
    run(&call, args.as_object().cloned().unwrap()).map_err(|error| error.message)
}

#[test]
fn values_are_reshaped() {
    let shop = json!({"items": [{"id": 1, "name": "a", "price": 5, "tags": ["x", "y"]}, {"id": 2, "name": "b", "price": 50}]});
    for (args, expected) in [
        (json!({"data": shop}), shop.clone()),
        (json!({"data": "{\"a\": 1}", "query": "$.a"}), json!(1)),
        (json!({"data": "no json"}), json!("no json")),
        (json!({"data": shop, "query": "$.items[?@.price < 10].name"}), json!("a")),
        (json!({"data": shop, "query": "$.items[*].name"}), json!(["a", "b"])),
        (json!({"data": shop, "query": "$.none"}), json!(null)),
        (
            json!({"data": shop, "query": "$.items", "mapping": {"key": "$.id", "info": {"tags": "$.tags[*]", "shop": 7}, "gone": "$.none"}}),
            json!([{"key": 1, "info": {"tags": ["x", "y"], "shop": 7}}, {"key": 2, "info": {"shop": 7}}]),
        ),
        (json!({"data": {"a": 1, "b": 2, "c": 3}, "pick": ["c", "a", "z"]}), json!({"a": 1, "c": 3})),
        (json!({"data": {"a": 1, "b": 2, "c": 3}, "omit": ["b", "z"]}), json!({"a": 1, "c": 3})),
        (
            json!({"data": [{"a": null}, {"b": 2}, 5], "defaults": {"a": 0}}),
            json!([{"a": 0}, {"b": 2, "a": 0}, 5]),
        ),
        (
            json!({"data": {"a": 1}, "mapping": {"$x": "$.a", "dollar": "$"}, "omit": ["$x"]}),
            json!({"dollar": {"a": 1}}),
        ),
    ] {
        assert_eq!(transform(&args), Ok(expected), "{args}");
    }
}

#[test]
fn errors_and_limits() {
    let wide: Map<String, Value> = (0..201).map(|index| (index.to_string(), json!(1))).collect();
    let mut deep = json!({"a": 1});
    for _ in 0..20 {
        deep = json!({ "a": deep });
    }
    let large = "x".repeat(1_000_000);
    let copies: Map<String, Value> = (0..100).map(|index| (index.to_string(), json!("$"))).collect();
    for (args, expected) in [
        (json!({"data": 1, "query": "$["}), "`query`: invalid JSONPath"),
        (json!({"data": 1, "mapping": {"a": {"b": "$.."}}}), "`mapping.b`: invalid JSONPath"),
        (
            json!({"data": 1, "query": format!("$.{}", "a".repeat(1000))}),
            "`query`: the path exceeds the limit of 1000 bytes",
        ),
        (json!({"data": 1, "mapping": wide}), "`mapping` exceeds the limit of 200 fields"),
        (json!({"data": 1, "mapping": deep}), "`mapping` exceeds the nesting limit of 8 levels"),
        (json!({"data": large, "mapping": copies}), "the result exceeds the limit of 16 MiB"),
        (json!({"data": vec![1; 200_000], "query": "$[?@ > 0]"}), "the data is too large for the path"),
    ] {
        let message = transform(&args).unwrap_err();
        assert!(message.contains(expected), "{message}");
    }
}

proptest! {
    #[test]
    fn nothing_panics(query in any::<String>(), field in any::<String>(), text in any::<String>()) {
        let _ = transform(&json!({"data": text, "query": query, "mapping": {field.clone(): query}, "pick": [field]}));
    }
}
