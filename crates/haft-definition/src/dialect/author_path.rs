//! Maps the canonical path of a field to the path that the author used: checks know only the canonical form, but a
//! problem has to name a key of the text.

use super::fields::join;
use super::yaml::{Content, Node};

/// The locations of the parts of a definition in all dialects, those nearest to the canonical form first.
const LOCATIONS: [(&str, &[&str]); 6] = [
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
    (
        "input_schema",
        &[
            "input_schema",
            "params",
            "parameters",
            "argSchema",
            "inputSchema",
            "args_schema",
            "argsSchema",
            "schema.input",
            "schema",
        ],
    ),
    ("output_schema", &["output_schema", "outputSchema", "schema.output"]),
    ("name", &["name", "slug"]),
    ("display_name", &["display_name", "displayName", "name"]),
];

/// Keys with the same meaning.
const ALIASES: [&[&str]; 11] = [
    &["timeout_ms", "timeout", "timeout_s", "timeout_secs", "timeoutMs", "timeoutSecs"],
    &["backoff_ms", "backoff", "backoffMs"],
    &["rate_limit", "rateLimit", "max_calls_per_minute", "maxCallsPerMinute"],
    &["url", "urlTemplate", "url_template"],
    &["body", "bodyTemplate", "body_template"],
    &["function", "function_name", "functionName", "goFunc", "builtin_key", "builtinKey"],
    &["success_codes", "successCodes"],
    &["response", "responseEncoding", "response_encoding"],
    &["extract", "extractExpr", "extract_expr"],
    &["error_mode", "errorMode"],
    &["dependencies", "requirements"],
];

/// Returns the path that the author used for a field; `None` if the text does not have it or uses the canonical path.
pub(super) fn author_path(tree: &Node, field: &str) -> Option<String> {
    let (part, rest) = field.split_once('.').unwrap_or((field, ""));
    let locations =
        LOCATIONS.iter().find(|(name, _)| *name == part).map_or(&[][..], |(_, locations)| locations);
    let own = [part];
    let locations = if locations.is_empty() { &own[..] } else { locations };
    let mut best: Option<PathMatch> = None;
    for location in locations {
        // The keys of an implementation are at the top level only if it has no block.
        if location.is_empty() && (rest.is_empty() || (part == "implementation" && best.is_some())) {
            continue;
        }
        let Some(found) = match_at(tree, (part, location), rest) else { continue };
        if best.as_ref().is_none_or(|best| found.unmatched < best.unmatched) {
            best = Some(found);
        }
    }
    best.map(|found| found.path).filter(|path| path != field)
}

/// A path in the text, and the length of the part of the field that is not there.
struct PathMatch {
    path: String,
    unmatched: usize,
}

fn match_at(tree: &Node, (part, location): (&str, &str), rest: &str) -> Option<PathMatch> {
    let mut node = tree;
    for key in location.split('.').filter(|key| !key.is_empty()) {
        node = child(node, key)?.1;
    }
    // A list of parameters corresponds to the `properties` of the schema.
    let rest = match (&node.content, rest.strip_prefix("properties")) {
        (Content::List(_), Some(rest)) if part == "input_schema" => rest.strip_prefix('.').unwrap_or(rest),
        (Content::List(_), None) if part == "input_schema" => {
            return Some(PathMatch { path: location.to_owned(), unmatched: rest.len() });
        }
        _ => rest,
    };
    let mut path = location.to_owned();
    let left = follow(node, rest, &mut path);
    // At the top level only a complete match counts.
    if location.is_empty() && !left.is_empty() {
        return None;
    }
    if !left.is_empty() {
        path = join(&path, left);
    }
    Some(PathMatch { unmatched: left.len(), path })
}

/// Follows a dotted path as far as possible and appends the author's keys to `path`; returns the rest.
fn follow<'p>(mut node: &Node, mut rest: &'p str, path: &mut String) -> &'p str {
    while !rest.is_empty() {
        let Some((step, next, length)) = step(node, rest) else { break };
        *path = if step.starts_with('[') { format!("{path}{step}") } else { join(path, &step) };
        node = next;
        rest = rest.get(length..).map_or("", |rest| rest.strip_prefix('.').unwrap_or(rest));
    }
    rest
}

/// Follows one segment: returns the author's key, the node, and the number of bytes of the path that were used.
fn step<'n>(node: &'n Node, rest: &str) -> Option<(String, &'n Node, usize)> {
    let first = rest.split('.').next().unwrap_or(rest);
    match &node.content {
        Content::Map(entries) => {
            // Keys may contain dots, so the longest matching key wins.
            let fits = |key: &str| {
                rest.strip_prefix(key).is_some_and(|after| after.is_empty() || after.starts_with('.'))
            };
            let exact =
                entries.iter().filter(|(key, _)| fits(&key.text)).max_by_key(|(key, _)| key.text.len());
            if let Some((key, node)) = exact {
                return Some((key.text.clone(), node, key.text.len()));
            }
            let same = ALIASES.iter().find(|keys| keys.contains(&first))?;
            let (key, node) = entries.iter().find(|(key, _)| same.contains(&key.text.as_str()))?;
            Some((key.text.clone(), node, first.len()))
        }
        Content::List(items) => {
            let named = |node: &&Node| {
                let name = child(node, "name").map(|(_, name)| &name.content);
                matches!(name, Some(Content::Text(name)) if name == first)
            };
            let index = items.iter().position(|node| named(&node)).or_else(|| first.parse().ok())?;
            Some((format!("[{index}]"), items.get(index)?, first.len()))
        }
        Content::Null | Content::Bool(_) | Content::Number(..) | Content::Text(_) => None,
    }
}

fn child<'n>(node: &'n Node, key: &str) -> Option<(&'n str, &'n Node)> {
    let Content::Map(entries) = &node.content else { return None };
    entries.iter().find(|(known, _)| known.text == key).map(|(known, node)| (known.text.as_str(), node))
}
