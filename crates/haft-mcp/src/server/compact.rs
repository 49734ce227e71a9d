//! The compact list for large sets of tools: `search_tools`, `describe_tool`, `call_tool`, and the tools that the client
//! has found.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use haft_runtime::registry::ToolOffer;
use rmcp::ErrorData;
use rmcp::model::{Tool, ToolAnnotations};
use serde_json::{Map, Value, json};

use super::client_context::{ClientContext, SessionKey};

/// The built-in search tool.
pub(super) const SEARCH: &str = "search_tools";
/// The built-in tool that returns the full definition of a found tool.
pub(super) const DESCRIBE: &str = "describe_tool";
/// The built-in tools of the compact list.
pub(super) const HELPERS: [&str; 2] = [DESCRIBE, SEARCH];
/// The tool that calls tools outside the list.
pub(super) const CALL: &str = "call_tool";

/// How many found tools the list of one owner holds: the most recent ones.
const MAX_FOUND: usize = 20;
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
        add(lists.entry(owner).or_default(), names)
    }

    /// Returns the offers in the compact list of a client: the built-in helpers and the found tools.
    pub(super) fn list<'a, 'o>(
        &self,
        client: &ClientContext,
        offers: &'o [ToolOffer<'a>],
    ) -> Vec<&'o ToolOffer<'a>> {
        let guard = self.by_owner.lock().unwrap_or_else(PoisonError::into_inner);
        let found = guard.lists.get(&client.session_key());
        offers
            .iter()
            .filter(|offer| {
                HELPERS.contains(&offer.name.as_str()) || found.is_some_and(|list| is_found(list, offer))
            })
            .filter(|offer| offer.name != CALL)
            .collect()
    }
}

/// Adds the names of a search, best first, to a list that ends with the most recent one; returns whether any is new.
fn add(list: &mut VecDeque<String>, names: Vec<String>) -> bool {
    let mut is_new = false;
    // The best hit counts as the most recent.
    for name in names.into_iter().rev() {
        match list.iter().position(|other| *other == name) {
            Some(at) => drop(list.remove(at)),
            None => is_new = true,
        }
        list.push_back(name);
    }
    while list.len() > MAX_FOUND {
        list.pop_front();
    }
    is_new
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
    let description = "Calls a tool by name. Not all tools are listed: find a tool with search_tools and read its input \
                       schema with describe_tool first.";
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
    fn the_most_recently_found_tools_stay() {
        let names =
            |numbers: std::ops::Range<usize>| -> Vec<String> { numbers.map(|n| n.to_string()).collect() };
        let mut list = VecDeque::new();
        assert!(add(&mut list, names(0..15)));
        assert!(!add(&mut list, names(12..15)), "known tools are no change of the list");
        assert!(add(&mut list, names(20..30)));
        assert_eq!(list.len(), MAX_FOUND);
        for (name, is_listed) in
            [("20", true), ("29", true), ("12", true), ("14", true), ("0", true), ("11", false)]
        {
            assert_eq!(list.iter().any(|other| other == name), is_listed, "{name} {list:?}");
        }
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
