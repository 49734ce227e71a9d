//! From the name that a field has in the canonical form to what the author wrote for it: checks know only the one form,
//! and a fault has to name a key that stands in the text.

use super::fields::join;
use super::yaml::{Content, Node};

/// Where the parts of a definition stand, in all dialects; the nearest to the canonical form first.
const PARTS: [(&str, &[&str]); 6] = [
    (
        "execution",
        &[
            "execution",
            "execution_config",
            "config_schema.execution",
            "implementation",
            "implementation_config",
            "config_schema.implementation",
            "impl",
            "",
        ],
    ),
    (
        "implementation",
        &["implementation", "implementation_config", "config_schema.implementation", "impl", ""],
    ),
    ("input_schema", &["input_schema", "params", "parameters", "argSchema", "schema.input", "schema"]),
    ("output_schema", &["output_schema", "outputSchema", "schema.output"]),
    ("name", &["name", "slug"]),
    ("display_name", &["display_name", "displayName", "name"]),
];

/// Keys that say the same.
const KEYS: [&[&str]; 9] = [
    &["timeout_ms", "timeout", "timeout_s", "timeout_secs", "timeoutMs"],
    &["backoff_ms", "backoff"],
    &["url", "urlTemplate", "url_template"],
    &["body", "bodyTemplate"],
    &["function", "function_name", "goFunc", "builtin_key"],
    &["success_codes", "successCodes"],
    &["response", "responseEncoding"],
    &["extract", "extractExpr"],
    &["error_mode", "errorMode"],
];

/// Returns the path that the author wrote for a field; `None` where the text has nothing of it, or says it so itself.
pub(super) fn written(tree: &Node, field: &str) -> Option<String> {
    let (part, rest) = field.split_once('.').unwrap_or((field, ""));
    let places = PARTS.iter().find(|(name, _)| *name == part).map_or(&[][..], |(_, places)| places);
    let own = [part];
    let places = if places.is_empty() { &own[..] } else { places };
    let mut best: Option<Found> = None;
    for place in places {
        // The keys of an implementation stand at the top of a text only where it has no block of their own.
        if place.is_empty() && (rest.is_empty() || (part == "implementation" && best.is_some())) {
            continue;
        }
        let Some(found) = at(tree, (part, place), rest) else { continue };
        if best.as_ref().is_none_or(|best| found.left < best.left) {
            best = Some(found);
        }
    }
    best.map(|found| found.path).filter(|path| path != field)
}

/// A path in the text, and how much of the field is not there.
struct Found {
    path: String,
    left: usize,
}

fn at(tree: &Node, (part, place): (&str, &str), rest: &str) -> Option<Found> {
    let mut node = tree;
    for key in place.split('.').filter(|key| !key.is_empty()) {
        node = child(node, key)?.1;
    }
    // A list of parameters is what the schema calls its properties.
    let rest = match (&node.content, rest.strip_prefix("properties")) {
        (Content::List(_), Some(rest)) if part == "input_schema" => rest.strip_prefix('.').unwrap_or(rest),
        (Content::List(_), None) if part == "input_schema" => {
            return Some(Found { path: place.to_owned(), left: rest.len() });
        }
        _ => rest,
    };
    let mut path = place.to_owned();
    let left = follow(node, rest, &mut path);
    // Nothing of the field stands at the top of a text that does not name the part it belongs to.
    if place.is_empty() && !left.is_empty() {
        return None;
    }
    if !left.is_empty() {
        path = join(&path, left);
    }
    Some(Found { left: left.len(), path })
}

/// Follows a dotted path as far as it leads, and writes down how the text spells it; returns what is left of it.
fn follow<'p>(mut node: &Node, mut rest: &'p str, path: &mut String) -> &'p str {
    while !rest.is_empty() {
        let Some((step, next, length)) = step(node, rest) else { break };
        *path = join(path, &step);
        node = next;
        rest = rest.get(length..).map_or("", |rest| rest.strip_prefix('.').unwrap_or(rest));
    }
    rest
}

/// Takes one step: how the text spells it, where it leads, and how many bytes of the path it took.
fn step<'n>(node: &'n Node, rest: &str) -> Option<(String, &'n Node, usize)> {
    let first = rest.split('.').next().unwrap_or(rest);
    match &node.content {
        Content::Map(entries) => {
            // Keys may contain dots themselves: the longest one that fits is meant.
            let fits = |key: &str| {
                rest.strip_prefix(key).is_some_and(|after| after.is_empty() || after.starts_with('.'))
            };
            let exact =
                entries.iter().filter(|(key, _)| fits(&key.text)).max_by_key(|(key, _)| key.text.len());
            if let Some((key, node)) = exact {
                return Some((key.text.clone(), node, key.text.len()));
            }
            let same = KEYS.iter().find(|keys| keys.contains(&first))?;
            let (key, node) = entries.iter().find(|(key, _)| same.contains(&key.text.as_str()))?;
            Some((key.text.clone(), node, first.len()))
        }
        Content::List(items) => {
            let named = |node: &&Node| {
                let name = child(node, "name").map(|(_, name)| &name.content);
                matches!(name, Some(Content::Text(name)) if name == first)
            };
            let index = items.iter().position(|node| named(&node)).or_else(|| first.parse().ok())?;
            Some((index.to_string(), items.get(index)?, first.len()))
        }
        Content::Null | Content::Bool(_) | Content::Number(..) | Content::Text(_) => None,
    }
}

fn child<'n>(node: &'n Node, key: &str) -> Option<(&'n str, &'n Node)> {
    let Content::Map(entries) = &node.content else { return None };
    entries.iter().find(|(known, _)| known.text == key).map(|(known, node)| (known.text.as_str(), node))
}
