//! Tests and examples of tools.

use haft_core::example::ToolExample;
use haft_core::outcome::ErrorCode;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;
use uuid::Uuid;

/// The body of a test.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default, expecting = "an object")]
pub struct TestBody {
    /// The arguments.
    #[serde(alias = "args", alias = "arguments")]
    #[schema(value_type = Object, example = json!({"name": "Ada"}))]
    pub parameters: Map<String, Value>,
}

/// The result of a test.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct TestResult {
    /// The value, or the error message.
    pub output: Value,
    #[schema(example = 12.3)]
    pub execution_time_ms: f64,
    pub status: TestStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_code: Option<ErrorCode>,
    pub call_id: Uuid,
}

/// Whether a test succeeded.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TestStatus {
    /// The tool returned a value.
    Success,
    /// The tool failed.
    Error,
}

/// Saved arguments of a tool.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ToolExampleView {
    #[schema(example = "Ada")]
    pub name: String,
    /// The description.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schema(required = false, example = "Greets one person")]
    pub description: String,
    #[schema(value_type = Object, example = json!({"name": "Ada"}))]
    pub args: Map<String, Value>,
    /// The value that the tool should return; missing for any value.
    #[serde(default, deserialize_with = "crate::read::some", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Value, required = false)]
    pub expect: Option<Value>,
}

impl From<ToolExample> for ToolExampleView {
    fn from(example: ToolExample) -> Self {
        let ToolExample { name, description, args, expect } = example;
        Self { name, description, args, expect }
    }
}

/// The examples of a tool.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ToolExampleList {
    pub examples: Vec<ToolExampleView>,
}

/// An example to store.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
pub struct ExampleBody {
    /// The arguments.
    #[schema(value_type = Object, example = json!({"name": "Ada"}))]
    pub args: Map<String, Value>,
    /// The description.
    #[serde(default)]
    #[schema(required = false)]
    pub description: Option<String>,
    /// The value that the tool should return; without it, any value passes.
    #[serde(default, deserialize_with = "crate::read::some")]
    #[schema(value_type = Value, required = false)]
    pub expect: Option<Value>,
}

/// Whether an example passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ExampleStatus {
    /// The tool succeeded, with the expected value if there is one.
    Passed,
    /// The tool returned an unexpected value.
    Failed,
    /// The tool failed, or the call was rejected.
    Error,
}

/// The call of an example.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ExampleOutcome {
    /// Whether the tool succeeded.
    pub ok: bool,
    /// The value of the tool; missing if it failed or if the value is large.
    #[serde(default, deserialize_with = "crate::read::some", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Value, required = false)]
    pub value: Option<Value>,
    /// Set if the value is omitted because it is large.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shortened: bool,
    pub call_id: Uuid,
    #[schema(example = 12.3)]
    pub duration_ms: f64,
}

/// The result of one example.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ExampleResult {
    #[schema(example = "Ada")]
    pub name: String,
    pub status: ExampleStatus,
    /// The call; missing if it was rejected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<ExampleOutcome>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_code: Option<ErrorCode>,
    /// Why it did not pass.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// The results of all examples of a tool.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ExampleRun {
    pub results: Vec<ExampleResult>,
}
