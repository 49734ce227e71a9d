//! Tools that are made of other tools: `steps`.
//!
//! A step starts as soon as the steps that it refers to have ended, so steps that do not depend on one another run in
//! parallel.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::implementation::Condition;

/// The largest number of steps of one tool.
pub const MAX_STEPS: usize = 100;
/// The largest `max_items` of a step.
pub const MAX_ITEMS: u32 = 1000;
/// The largest number of items of a `for_each` without `max_items`.
pub const DEFAULT_MAX_ITEMS: u32 = 100;
/// The number of steps and items that run at once without `max_parallel`.
pub const DEFAULT_MAX_PARALLEL: u32 = 8;
/// The largest `max_parallel`.
pub const MAX_PARALLEL: u32 = 64;

/// Calls of other tools, in sequence or as a graph.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = StepsImplementation))]
#[serde(default)]
pub struct Steps {
    /// The steps.
    #[cfg_attr(feature = "openapi", schema(required, max_items = 100))]
    pub steps: Vec<Step>,
    /// The value of the call, a mapping such as `{"total": "$steps.sum.value"}`; default: the value of the last step.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Value>))]
    pub output: Option<Value>,
    /// How many calls run at once; default: 8.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 64))]
    pub max_parallel: Option<u32>,
}

impl Steps {
    /// Returns how many calls run at once.
    pub fn parallel(&self) -> u32 {
        self.max_parallel.unwrap_or(DEFAULT_MAX_PARALLEL).clamp(1, MAX_PARALLEL)
    }
}

/// One step: a call of a tool, or one for each item of a list.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct Step {
    /// The name by which mappings refer to it: `$steps.ID.value`.
    #[cfg_attr(feature = "openapi", schema(required, example = "fetch"))]
    pub id: String,
    /// The tool: `name`, `bundle:name`, `bundle:name@version`, or an id.
    #[cfg_attr(feature = "openapi", schema(required, example = "weather"))]
    pub tool: String,
    /// The arguments: a mapping such as `{"city": "$args.city"}`.
    #[serde(skip_serializing_if = "Map::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = Object))]
    pub args: Map<String, Value>,
    /// Steps that must have ended before, besides those that the mappings refer to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<String>,
    /// The condition under which it runs; otherwise it is skipped.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Value>, example = "$steps.fetch.ok"))]
    pub when: Option<Condition>,
    /// A mapping to a list: the tool is called once for each item, and the value of the step is the list of values.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Value>, example = "$args.cities"))]
    pub for_each: Option<Value>,
    /// The largest number of items; default: 100.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 1000))]
    pub max_items: Option<u32>,
    /// What happens if a call fails.
    #[serde(skip_serializing_if = "OnFailure::is_default")]
    pub on_failure: OnFailure,
    /// The value of the step if it fails, with `on_failure: fallback`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Value>))]
    pub fallback: Option<Value>,
}

impl Step {
    /// Returns the largest number of items of `for_each`.
    pub fn item_limit(&self) -> u32 {
        self.max_items.unwrap_or(DEFAULT_MAX_ITEMS).min(MAX_ITEMS)
    }
}

/// What happens if a step fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum OnFailure {
    /// The call fails, and no further step starts.
    #[default]
    Stop,
    /// The other steps go on; `$steps.ID.ok` is `false`.
    Continue,
    /// The step has the value of `fallback`; `$steps.ID.ok` is `false`.
    Fallback,
}

impl OnFailure {
    /// Every policy, by the name used in definitions.
    pub const ALL: [(&'static str, Self); 3] =
        [("stop", Self::Stop), ("continue", Self::Continue), ("fallback", Self::Fallback)];

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
    fn is_default(&self) -> bool {
        *self == Self::Stop
    }
}
