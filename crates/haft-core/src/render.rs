//! Render plans: what a page needs to show the result of a call.
//!
//! A renderer's settings refer to the call: `$args`, `$args.path`, `$return`, `$return.rows[0].name`, `$chat_id`,
//! `$workspace`, `$toolset`. A setting that is exactly one reference keeps its JSON type; inside a text the value is
//! inserted; `$$` is a dollar sign.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::id::CallId;
use crate::large_result::ResultHandle;
use crate::mapping::{Mapping, MissingValue, Reference};
use crate::spec::Renderer;

/// The renderers, each with the settings of which it needs one.
pub const RENDERERS: [(&str, &[&str]); 10] = [
    ("code", &["file", "content"]),
    ("document", &["file", "content"]),
    ("html", &["artifact"]),
    ("frame", &["url"]),
    ("table", &["data", "file"]),
    ("chart", &["data", "file"]),
    ("image", &["file", "data", "url"]),
    ("diff", &["before", "after", "content", "file"]),
    ("terminal", &["content", "file"]),
    ("json", &["data", "file"]),
];

/// Settings whose references must have a value: without it there is nothing to show.
const REQUIRED: [&str; 3] = ["file", "url", "artifact"];
/// The largest part of a large result that a plan contains itself, in bytes.
const MAX_PART: usize = 16 * 1024;

/// How the result of a call is shown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RenderPlan {
    /// The renderer.
    #[cfg_attr(feature = "openapi", schema(example = "code"))]
    pub renderer: String,
    /// Its settings, with values in place of references.
    pub config: Map<String, Value>,
    /// Why the result cannot be shown this way: the call failed, or a reference has no value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// What the references in the settings of a renderer refer to.
#[derive(Debug, Clone, Copy)]
pub struct RenderContext<'a> {
    /// The arguments of the call.
    pub args: &'a Value,
    /// The value that it returned; `None` if it failed.
    pub value: Option<&'a Value>,
    /// Why it failed.
    pub error: Option<&'a str>,
    /// The chat.
    pub chat_id: Option<&'a str>,
    /// The path of the API below which the files of the workspace are.
    pub workspace: Option<&'a str>,
    /// The path of the API below which the files of the toolset are.
    pub toolset: Option<&'a str>,
    /// The call, if its result is stored apart: then large parts of it are handles in the plan.
    pub large_result: Option<CallId>,
}

/// Returns the renderer that wins: the one with the highest priority, the first among equal ones.
pub fn select(renderers: &[Renderer]) -> Option<&Renderer> {
    renderers.iter().rev().max_by_key(|renderer| renderer.priority)
}

impl RenderPlan {
    /// Fills in the settings of a renderer.
    pub fn new(renderer: &Renderer, context: RenderContext<'_>) -> Self {
        let mut missing = Vec::new();
        let mut config = Map::new();
        for (name, setting) in &renderer.config {
            let mut unresolved = Vec::new();
            config.insert(name.clone(), fill(setting, context, &mut unresolved));
            if REQUIRED.contains(&name.as_str()) {
                missing.extend(unresolved.into_iter().map(|reference| format!("`{reference}` in `{name}`")));
            }
        }
        let error = match (context.error, missing.is_empty()) {
            (Some(error), _) => Some(error.to_owned()),
            (None, false) => Some(format!("the call has no value for {}", missing.join(", "))),
            (None, true) => None,
        };
        Self { renderer: renderer.renderer.clone(), config, error }
    }
}

/// The references of settings.
const SETTINGS: Mapping = Mapping {
    with_path: &["args", "return"],
    without_path: &["chat_id", "workspace", "toolset"],
    missing: MissingValue::Null,
};

fn fill(setting: &Value, context: RenderContext<'_>, missing: &mut Vec<String>) -> Value {
    SETTINGS.fill(setting, &mut |reference| {
        let value = resolve(reference, context);
        if value.is_none() {
            missing.push(reference.text.to_owned());
        }
        value
    })
}

fn resolve(reference: &Reference<'_>, context: RenderContext<'_>) -> Option<Value> {
    let text = |text: Option<&str>| text.map(|text| Value::String(text.to_owned()));
    match reference.name {
        "args" => reference.walk(context.args).cloned(),
        "return" => reference.walk(context.value?).map(|value| match context.large_result {
            Some(call) if is_large(value) => Value::String(handle(reference, call).to_string()),
            _ => value.clone(),
        }),
        "chat_id" => text(context.chat_id),
        "workspace" => text(context.workspace),
        _ => text(context.toolset),
    }
}

/// Returns the handle of the part of a result that a reference refers to.
fn handle(reference: &Reference<'_>, call: CallId) -> ResultHandle {
    let pointer = reference.path.iter().flat_map(|step| ["/", *step]).collect();
    ResultHandle { call, pointer }
}

/// Returns whether a part of a large result is too large for a plan.
fn is_large(value: &Value) -> bool {
    value.to_string().len() > MAX_PART
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn plan(config: Value, args: &Value, value: Option<&Value>) -> RenderPlan {
        let Value::Object(config) = config else { panic!("expected an object") };
        let renderer = Renderer { renderer: "code".to_owned(), priority: 0, config };
        let error = if value.is_none() { Some("it failed") } else { None };
        let (chat_id, workspace, toolset) = (Some("c1"), Some("/api/workspaces/w/files"), None);
        let large_result = None;
        let context = RenderContext { args, value, error, chat_id, workspace, toolset, large_result };
        RenderPlan::new(&renderer, context)
    }

    #[test]
    fn references_keep_their_type_and_are_inserted_into_texts() {
        let (args, value) =
            (json!({"path": "a.py", "n": 3}), json!({"rows": [{"x": 1}], "port": 8080, "no": null}));
        let config = json!({
            "file": "$args.path", "data": "$return", "first": "$return.rows[0].x", "also": "$return.rows.0",
            "url": "http://localhost:$return.port/$chat_id.html", "price": "$$5 and $5", "deep": {"list": ["$args.n"]},
            "none": "$return.gone", "null": "$return.no", "end": "see $args.path.", "all": "$argsx", "at": "$workspace/x",
        });
        let plan = plan(config, &args, Some(&value));
        assert_eq!(plan.error, None);
        let expected = json!({
            "file": "a.py", "data": value, "first": 1, "also": {"x": 1},
            "url": "http://localhost:8080/c1.html", "price": "$5 and $5", "deep": {"list": [3]},
            "none": null, "null": null, "end": "see a.py.", "all": "$argsx", "at": "/api/workspaces/w/files/x",
        });
        assert_eq!(Value::Object(plan.config), expected);
    }

    #[test]
    fn large_parts_of_a_large_result_are_handles() {
        let id = "018faf50-b7b6-7a01-9a05-a22a6e0af101";
        let value = json!({"rows": vec!["x".repeat(100); 1000], "title": "Sales"});
        let config = json!({"data": "$return.rows", "title": "$return.title", "all": "$return"});
        let Value::Object(config) = config else { panic!("expected an object") };
        let renderer = Renderer { renderer: "table".to_owned(), priority: 0, config };
        let context = RenderContext {
            args: &json!({}),
            value: Some(&value),
            error: None,
            chat_id: None,
            workspace: None,
            toolset: None,
            large_result: Some(id.parse().unwrap()),
        };
        let plan = RenderPlan::new(&renderer, context);
        let whole = format!("$result:{id}");
        let expected = json!({"data": format!("{whole}#/rows"), "title": "Sales", "all": whole});
        assert_eq!(Value::Object(plan.config), expected);
        let inline = RenderPlan::new(&renderer, RenderContext { large_result: None, ..context });
        assert_eq!(inline.config.get("data"), value.get("rows"));
    }

    #[test]
    fn what_is_shown_must_exist() {
        let args = json!({});
        let missing = plan(json!({"file": "$args.path", "other": "$toolset"}), &args, Some(&json!({})));
        assert_eq!(missing.error.as_deref(), Some("the call has no value for `$args.path` in `file`"));
        let failed = plan(json!({"file": "$args.path"}), &args, None);
        assert_eq!(failed.error.as_deref(), Some("it failed"));
    }

    #[test]
    fn the_highest_priority_wins_and_the_first_among_equal_ones() {
        let renderer =
            |name: &str, priority| Renderer { renderer: name.to_owned(), priority, config: Map::new() };
        let renderers = [renderer("a", 0), renderer("b", 5), renderer("c", 5), renderer("d", 1)];
        assert_eq!(select(&renderers).map(|renderer| renderer.renderer.as_str()), Some("b"));
        assert_eq!(select(&[]), None);
    }
}
