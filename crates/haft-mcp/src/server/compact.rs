//! The compact list for large sets of tools: a search tool, `call_tool`, and the tools that the client has found.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use haft_runtime::registry::ToolOffer;
use rmcp::ErrorData;
use rmcp::model::{Tool, ToolAnnotations};
use serde_json::{Map, Value, json};

use super::client_context::{ClientContext, SessionKey};

/// The built-in search tool.
pub(super) const SEARCH: &str = "search_tools";
/// The tool that calls tools outside the list.
pub(super) const CALL: &str = "call_tool";

/// How many found tools the list of one owner holds.
const MAX_FOUND: usize = 32;
/// For how many owners found tools are remembered.
const MAX_OWNERS: usize = 1000;

/// The tools that clients have found with the search tool.
#[derive(Default)]
pub(super) struct FoundTools {
    by_owner: Mutex<FoundByOwner>,
}

#[derive(Default)]
struct FoundByOwner {
    lists: HashMap<SessionKey, VecDeque<String>>,
    /// Oldest first, for eviction.
    order: VecDeque<SessionKey>,
}

impl FoundTools {
    /// Remembers the tools that a search returned; returns whether any is new.
    pub(super) fn remember(&self, client: &ClientContext, value: &Value) -> bool {
        let names = names(value);
        if names.is_empty() {
            return false;
        }
        let mut guard = self.by_owner.lock().unwrap_or_else(PoisonError::into_inner);
        let FoundByOwner { lists, order } = &mut *guard;
        let owner = client.session_key();
        if !lists.contains_key(&owner) {
            order.push_back(owner.clone());
            if order.len() > MAX_OWNERS
                && let Some(oldest) = order.pop_front()
            {
                lists.remove(&oldest);
            }
        }
        let list = lists.entry(owner).or_default();
        let mut new = false;
        for name in names {
            if !list.contains(&name) {
                new = true;
                list.push_back(name);
            }
        }
        while list.len() > MAX_FOUND {
            list.pop_front();
        }
        new
    }

    /// Returns the offers in the compact list of a client: the search tool and the found tools.
    pub(super) fn list<'a, 'o>(
        &self,
        client: &ClientContext,
        offers: &'o [ToolOffer<'a>],
    ) -> Vec<&'o ToolOffer<'a>> {
        let guard = self.by_owner.lock().unwrap_or_else(PoisonError::into_inner);
        let found = guard.lists.get(&client.session_key());
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

/// Reads the names from a search result: a list of objects, at the top level or under `tools`, each with a qualified
/// name in `tool`, or a `name`.
fn names(value: &Value) -> Vec<String> {
    let list = value.get("tools").unwrap_or(value).as_array();
    list.into_iter()
        .flatten()
        .filter_map(|item| item.get("tool").or_else(|| item.get("name"))?.as_str())
        .take(MAX_FOUND)
        .map(str::to_owned)
        .collect()
}

/// Describes `call_tool`.
pub(super) fn call_tool() -> Tool {
    let schema = json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "The name of the tool, as returned by search_tools"},
            "arguments": {"type": "object", "description": "The arguments of the tool, matching its input schema"},
        },
        "required": ["name"],
        "additionalProperties": false,
    });
    let description = "Calls a tool by name. Not all tools are listed: find a tool and its input schema with \
                       search_tools first.";
    Tool::new(CALL, description, Arc::new(schema.as_object().cloned().unwrap_or_default()))
        .with_annotations(ToolAnnotations::new().read_only(false))
}

/// Reads the arguments of `call_tool`: the name of a tool and its arguments.
pub(super) fn parse_call(
    mut arguments: Map<String, Value>,
) -> Result<(String, Map<String, Value>), ErrorData> {
    let invalid = |what: &str| ErrorData::invalid_params(format!("{CALL}: {what}"), None);
    let Some(Value::String(name)) = arguments.remove("name") else {
        return Err(invalid("`name` must be a string: the name of a tool"));
    };
    match arguments.remove("arguments") {
        None | Some(Value::Null) => Ok((name, Map::new())),
        Some(Value::Object(inner)) => Ok((name, inner)),
        Some(_) => Err(invalid("`arguments` must be an object")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_names_from_search_results() {
        let check = |value: Value, expected: &[&str]| assert_eq!(names(&value), expected, "{value}");
        check(json!([{"name": "a", "tool": "web:a@1"}, {"name": "b"}]), &["web:a@1", "b"]);
        check(json!({"tools": [{"name": "a"}]}), &["a"]);
        check(json!([{"name": 7}, {}, "x", null]), &[]);
        check(json!("nothing"), &[]);
        check(json!({"tools": "odd"}), &[]);
    }

    #[test]
    fn reads_the_arguments_of_call_tool() {
        let map = |value: Value| value.as_object().cloned().unwrap();
        let (name, arguments) = parse_call(map(json!({"name": "a", "arguments": {"x": 1}}))).unwrap();
        assert_eq!((name.as_str(), arguments), ("a", map(json!({"x": 1}))));
        assert_eq!(parse_call(map(json!({"name": "a", "arguments": null}))).unwrap().1, Map::new());
        for wrong in [json!({}), json!({"name": 1}), json!({"name": "a", "arguments": [1]})] {
            assert!(parse_call(map(wrong.clone())).is_err(), "{wrong}");
        }
    }
}
