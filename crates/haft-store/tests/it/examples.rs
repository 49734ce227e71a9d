//! Examples of tools.

use haft_core::catalog::{Backup, StoreError};
use haft_core::example::{MAX_EXAMPLES, ToolExample};
use haft_core::name::TenantId;
use serde_json::{Value, json};

use crate::harness::{Harness, on_both, spec};

on_both![examples_belong_to_a_tool_and_a_tenant, the_number_of_examples_is_limited];

pub(crate) fn example(name: &str, args: &Value, expect: Option<Value>) -> ToolExample {
    let args = args.as_object().cloned().unwrap();
    ToolExample { name: name.to_owned(), description: "Zürich".to_owned(), args, expect }
}

async fn examples_belong_to_a_tool_and_a_tenant(mut harness: Harness) {
    let tool = harness.create(spec("weather", "x")).await.unwrap().id;
    let other = harness.create(spec("news", "x")).await.unwrap().id;
    let (own, stranger) = (TenantId::default_tenant(), TenantId::new("acme").unwrap());
    let first = example("b", &json!({"a": "\u{0}"}), Some(Value::Null));
    let second = example("a", &json!({}), None);
    for one in [&first, &second] {
        harness.store.catalog().put_example(&own, tool, one.clone()).await.unwrap();
    }
    harness.restart().await;
    assert_eq!(harness.store.catalog().examples(&own, tool).await.unwrap(), [second.clone(), first]);
    assert_eq!(harness.store.catalog().examples(&stranger, tool).await.unwrap(), []);
    assert_eq!(harness.store.catalog().examples(&own, other).await.unwrap(), []);
    let changed = example("b", &json!({"a": 1}), Some(json!({"a": 1})));
    harness.store.catalog().put_example(&own, tool, changed.clone()).await.unwrap();
    assert_eq!(harness.store.catalog().examples(&own, tool).await.unwrap(), [second, changed]);
    harness.store.catalog().delete_example(&own, tool, "a").await.unwrap();
    let missing = harness.store.catalog().delete_example(&own, tool, "a").await;
    assert!(matches!(missing, Err(StoreError::NotFound { .. })), "{missing:?}");
    let missing = harness.store.catalog().delete_example(&stranger, tool, "b").await;
    assert!(matches!(missing, Err(StoreError::NotFound { .. })), "{missing:?}");
    harness.store.catalog().delete_tool(tool, Backup::Keep).await.unwrap();
    assert_eq!(harness.store.catalog().examples(&own, tool).await.unwrap(), []);
}

async fn the_number_of_examples_is_limited(harness: Harness) {
    let tool = harness.create(spec("weather", "x")).await.unwrap().id;
    let tenant = TenantId::default_tenant();
    for number in 0..MAX_EXAMPLES {
        let one = example(&number.to_string(), &json!({}), None);
        harness.store.catalog().put_example(&tenant, tool, one).await.unwrap();
    }
    let more = harness.store.catalog().put_example(&tenant, tool, example("more", &json!({}), None)).await;
    assert!(matches!(more, Err(StoreError::Conflict(_))), "{more:?}");
    harness.store.catalog().put_example(&tenant, tool, example("0", &json!({"a": 1}), None)).await.unwrap();
}
