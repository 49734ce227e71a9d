//! Large sets of tools: a client is shown how to find them, not all of them.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use haft_runtime::registry::ToolOffer;
use rmcp::ErrorData;
use rmcp::model::{Tool, ToolAnnotations};
use serde_json::{Map, Value, json};

use super::seat::{ClientContext, Owner};

/// The built-in tool that finds others.
pub(super) const SEARCH: &str = "search_tools";
/// What calls one that is not in the list.
pub(super) const CALL: &str = "call_tool";

/// How many found tools one caller's list holds, and of how many callers.
const FOUND: usize = 32;
const CALLERS: usize = 1000;

/// What callers have found, so that it stands in their lists.
#[derive(Default)]
pub(super) struct Found {
    by_caller: Mutex<ByCaller>,
}

#[derive(Default)]
struct ByCaller {
    lists: HashMap<Owner, VecDeque<String>>,
    /// Owner came first is forgotten first.
    order: VecDeque<Owner>,
}

impl Found {
    /// Remembers the tools that a search told; says whether any is new.
    pub(super) fn keep(&self, seat: &ClientContext, value: &Value) -> bool {
        let names = names(value);
        if names.is_empty() {
            return false;
        }
        let mut guard = self.by_caller.lock().unwrap_or_else(PoisonError::into_inner);
        let ByCaller { lists, order } = &mut *guard;
        let who = seat.owner();
        if !lists.contains_key(&who) {
            order.push_back(who.clone());
            if order.len() > CALLERS
                && let Some(oldest) = order.pop_front()
            {
                lists.remove(&oldest);
            }
        }
        let list = lists.entry(who).or_default();
        let mut new = false;
        for name in names {
            if !list.contains(&name) {
                new = true;
                list.push_back(name);
            }
        }
        while list.len() > FOUND {
            list.pop_front();
        }
        new
    }

    /// Returns what is in the list of a caller: the search, the call, and what was found.
    pub(super) fn list<'a, 'o>(
        &self,
        seat: &ClientContext,
        offers: &'o [ToolOffer<'a>],
    ) -> Vec<&'o ToolOffer<'a>> {
        let guard = self.by_caller.lock().unwrap_or_else(PoisonError::into_inner);
        let found = guard.lists.get(&seat.owner());
        offers
            .iter()
            .filter(|offer| offer.name == SEARCH || found.is_some_and(|list| is_found(list, offer)))
            .filter(|offer| offer.name != CALL)
            .collect()
    }
}

fn is_found(list: &VecDeque<String>, offer: &ToolOffer<'_>) -> bool {
    list.iter().any(|name| **name == *offer.entry.qualified || *name == offer.name)
}

/// Reads the names from what a search returned: a list of objects, by itself or under `tools`, each with the full name
/// of a tool as `tool`, or a `name`.
fn names(value: &Value) -> Vec<String> {
    let list = value.get("tools").unwrap_or(value).as_array();
    list.into_iter()
        .flatten()
        .filter_map(|item| item.get("tool").or_else(|| item.get("name"))?.as_str())
        .take(FOUND)
        .map(str::to_owned)
        .collect()
}

/// Describes the tool that calls one that is not in the list.
pub(super) fn call_tool() -> Tool {
    let schema = json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "The tool, as search_tools told it"},
            "arguments": {"type": "object", "description": "The arguments, as its input schema says"},
        },
        "required": ["name"],
        "additionalProperties": false,
    });
    let description = "Calls a tool by name. There are more tools than are listed here: find the right one and \
                       its input schema with search_tools first.";
    Tool::new(CALL, description, Arc::new(schema.as_object().cloned().unwrap_or_default()))
        .with_annotations(ToolAnnotations::new().read_only(false))
}

/// Reads the arguments of that tool.
pub(super) fn meant(mut arguments: Map<String, Value>) -> Result<(String, Map<String, Value>), ErrorData> {
    let wrong = |what: &str| ErrorData::invalid_params(format!("{CALL}: {what}"), None);
    let Some(Value::String(name)) = arguments.remove("name") else {
        return Err(wrong("`name` must be the name of a tool"));
    };
    match arguments.remove("arguments") {
        None | Some(Value::Null) => Ok((name, Map::new())),
        Some(Value::Object(inner)) => Ok((name, inner)),
        Some(_) => Err(wrong("`arguments` must be an object")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_from_what_a_search_returns() {
        let check = |value: Value, expected: &[&str]| assert_eq!(names(&value), expected, "{value}");
        check(json!([{"name": "a", "tool": "web:a@1"}, {"name": "b"}]), &["web:a@1", "b"]);
        check(json!({"tools": [{"name": "a"}]}), &["a"]);
        check(json!([{"name": 7}, {}, "x", null]), &[]);
        check(json!("nothing"), &[]);
        check(json!({"tools": "odd"}), &[]);
    }

    #[test]
    fn what_is_called_is_an_argument_of_the_call() {
        let map = |value: Value| value.as_object().cloned().unwrap();
        let (name, arguments) = meant(map(json!({"name": "a", "arguments": {"x": 1}}))).unwrap();
        assert_eq!((name.as_str(), arguments), ("a", map(json!({"x": 1}))));
        assert_eq!(meant(map(json!({"name": "a", "arguments": null}))).unwrap().1, Map::new());
        for wrong in [json!({}), json!({"name": 1}), json!({"name": "a", "arguments": [1]})] {
            assert!(meant(map(wrong.clone())).is_err(), "{wrong}");
        }
    }
}
