//! Reads the renderers of a tool: one in `renderer`, or several with priorities in `renderers`.

use haft_core::problem::nearest;
use haft_definition::dialect::{Fields, conflict, describe, item_path, join, unknown};
use serde_json::{Map, Value, json};

use crate::files::PackageFiles;
use crate::path::PackagePath;

/// The known renderers.
pub const RENDERERS: [&str; 10] =
    ["code", "document", "html", "frame", "table", "chart", "image", "diff", "terminal", "json"];

/// The keys of which a renderer needs one; nothing if it shows the whole result by default.
fn required(renderer: &str) -> &'static [&'static str] {
    match renderer {
        "code" | "document" => &["file", "content"],
        "html" => &["artifact"],
        "frame" => &["url"],
        "image" => &["file", "content", "data", "url"],
        _ => &[],
    }
}

/// The other keys of the renderers whose settings are fixed by the format.
fn optional(renderer: &str) -> Option<&'static [&'static str]> {
    match renderer {
        "code" => Some(&["language", "editable", "title"]),
        "document" => Some(&["editable", "title"]),
        "html" => Some(&["data", "title", "height"]),
        "frame" => Some(&["title", "height"]),
        _ => None,
    }
}

/// Takes `renderer` and `renderers`; returns the canonical list, or `None` if there is neither.
pub(super) fn read(fields: &mut Fields<'_>, files: Option<&PackageFiles>) -> Option<Value> {
    let both = fields.has("renderer") && fields.has("renderers");
    if both {
        fields.error("renderer", "conflicting_fields", conflict(&fields.path("renderers")));
    }
    let reader = Reader { fields_report: fields.report(), files };
    let mut list = Vec::new();
    match fields.value("renderer") {
        None => {}
        Some(Value::String(name)) => list.extend(reader.one(json!({"type": name}), "renderer")),
        Some(item) => list.extend(reader.one(item, "renderer")),
    }
    let several = fields.has("renderers");
    for (index, item) in fields.list("renderers").unwrap_or_default().into_iter().enumerate() {
        list.extend(reader.one(item, &item_path("renderers", index)));
    }
    (several || !list.is_empty()).then_some(Value::Array(list))
}

struct Reader<'r> {
    fields_report: &'r haft_definition::dialect::Report,
    files: Option<&'r PackageFiles>,
}

impl Reader<'_> {
    /// Reads one renderer in the flat form, `{type, file, …}`, or in the canonical form, `{renderer, config}`.
    fn one(&self, item: Value, path: &str) -> Option<Value> {
        let report = self.fields_report;
        let Value::Object(map) = item else {
            let message = format!("expected a map with a `type`, found {}", describe(&item));
            report.error(path, "wrong_type", message);
            return None;
        };
        let canonical = map.get("renderer").is_some_and(Value::is_string) && !map.contains_key("type");
        let mut fields = Fields::new(path, map, report);
        let key = if canonical { "renderer" } else { "type" };
        let kind = fields.required_text(key, &format!("one of {}", list()));
        let priority: i64 = fields.integer("priority", "a whole number").unwrap_or_default();
        let (config, config_path) = if canonical {
            (fields.object("config").unwrap_or_default(), join(path, "config"))
        } else {
            (fields.rest(), path.to_owned())
        };
        let kind = kind?;
        if !RENDERERS.contains(&kind.as_str()) {
            report.error(join(path, key), "unknown_renderer", unknown("renderer", &kind, &RENDERERS));
            return None;
        }
        self.check(&kind, &config, &config_path);
        Some(json!({"renderer": kind, "priority": priority, "config": config}))
    }

    fn check(&self, kind: &str, config: &Map<String, Value>, path: &str) {
        let report = self.fields_report;
        let needed = required(kind);
        let present = |key: &&str| config.get(*key).is_some_and(|value| !value.is_null());
        if !needed.is_empty() && !needed.iter().any(present) {
            let keys: Vec<String> = needed.iter().map(|key| format!("`{key}`")).collect();
            let message = format!("the renderer `{kind}` needs {}", keys.join(" or "));
            report.error(path, "missing_field", message);
        }
        if let Some(optional) = optional(kind) {
            let known: Vec<&str> = needed.iter().chain(optional).copied().collect();
            for key in config.keys().filter(|key| !known.contains(&key.as_str())) {
                let shown = haft_core::problem::excerpt(key, 60);
                let similar = nearest(key, known.iter().copied());
                let similar = similar.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
                let message = format!("the renderer `{kind}` has no setting `{shown}`{similar}");
                report.warn(join(path, &shown), "unknown_field", message);
            }
        }
        self.check_texts(kind, config, path);
    }

    /// Checks the settings that must be texts, and that the file of an `html` renderer is in the package.
    fn check_texts(&self, kind: &str, config: &Map<String, Value>, path: &str) {
        let report = self.fields_report;
        for key in ["file", "artifact", "url", "language"] {
            if let Some(other) = config.get(key).filter(|value| !value.is_string() && !value.is_null()) {
                let message = format!("expected a string, found {}", describe(other));
                report.error(join(path, key), "wrong_type", message);
            }
        }
        let artifact = config.get("artifact").and_then(Value::as_str).filter(|_| kind == "html");
        if let (Some(artifact), Some(files)) = (artifact, self.files)
            && !artifact.contains('$')
            && !files.has(artifact.strip_prefix("./").unwrap_or(artifact))
        {
            let shown = haft_core::problem::excerpt(artifact, 80);
            let html = files.iter().map(|(path, _)| path).filter(|path| path.extension() == "html");
            let html = html.map(PackagePath::as_str);
            let similar = nearest(artifact, html).map(|near| format!("; did you mean `{near}`?"));
            let message = format!("`{shown}` is not in the package{}", similar.unwrap_or_default());
            report.error(join(path, "artifact"), "missing_file", message);
        }
    }
}

fn list() -> String {
    RENDERERS.map(|name| format!("`{name}`")).join(", ")
}
