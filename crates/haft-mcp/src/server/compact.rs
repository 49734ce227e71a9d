//! Large sets of tools: a client is shown how to find them, not all of them.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use haft_core::name::TenantId;
use haft_runtime::registry::Offer;
use rmcp::ErrorData;
use rmcp::model::{Tool, ToolAnnotations};
use serde_json::{Map, Value, json};

use super::seat::{Seat, View};

/// The built-in tool that finds others.
pub(super) const SEARCH: &str = "search_tools";
/// What calls one that is not in the list.
pub(super) const CALL: &str = "call_tool";

/// How many found tools one caller's list holds, and of how many callers.
const FOUND: usize = 32;
const CALLERS: usize = 1000;

type Who = (TenantId, Arc<str>, View);

/// What callers have found, so that it stands in their lists.
#[derive(Default)]
pub(super) struct Found {
    by_caller: Mutex<ByCaller>,
}

#[derive(Default)]
struct ByCaller {
    lists: HashMap<Who, VecDeque<String>>,
    /// Who came first is forgotten first.
    order: VecDeque<Who>,
}

impl Found {
    /// Remembers the tools that a search told; says whether any is new.
    pub(super) fn keep(&self, seat: &Seat, value: &Value) -> bool {
        let names = names(value);
        if names.is_empty() {
            return false;
        }
        let mut guard = self.by_caller.lock().unwrap_or_else(PoisonError::into_inner);
        let ByCaller { lists, order } = &mut *guard;
        let who = who(seat);
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
    pub(super) fn list<'a, 'o>(&self, seat: &Seat, offers: &'o [Offer<'a>]) -> Vec<&'o Offer<'a>> {
        let guard = self.by_caller.lock().unwrap_or_else(PoisonError::into_inner);
        let found = guard.lists.get(&who(seat));
        offers
            .iter()
            .filter(|offer| offer.name == SEARCH || found.is_some_and(|list| list.contains(&offer.name)))
            .collect()
    }
}

fn who(seat: &Seat) -> Who {
    (seat.tenant.clone(), Arc::clone(&seat.caller.name), seat.view.clone())
}

/// Reads the names from what a search returned: a list of objects with a `name`, by itself or under `tools`.
fn names(value: &Value) -> Vec<String> {
    let list = value.get("tools").unwrap_or(value).as_array();
    list.into_iter()
        .flatten()
        .filter_map(|item| item.get("name")?.as_str())
        .take(FOUND)
        .map(str::to_owned)
        .collect()
}

/// Describes the tool that calls one that is not in the list.
pub(super) fn call_tool() -> Tool {
    let schema = json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "The name of the tool, as search_tools told it"},
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
