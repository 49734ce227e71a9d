//! The texts of a tool definition: everything that a model reads.

use haft_core::mcp::ListedTool;
use serde_json::Value;

/// The maximum number of characters of one text that are scanned.
pub(super) const MAX_TEXT: usize = 64 << 10;
/// The maximum number of bytes that are scanned per tool.
const MAX_TOTAL: usize = 1 << 20;
/// The maximum number of texts that are scanned per tool.
const MAX_TEXTS: usize = 20_000;
/// The maximum depth of a schema.
const MAX_DEPTH: usize = 64;

/// A text with the path of its field.
#[derive(Debug)]
pub(super) struct Text {
    pub(super) path: String,
    pub(super) value: String,
}

/// The texts of a tool, and its arguments.
#[derive(Debug, Default)]
pub(super) struct Fields {
    pub(super) texts: Vec<Text>,
    /// The paths and names of the properties of its input schema, at every level.
    pub(super) arguments: Vec<(String, String)>,
    /// Whether a limit was exceeded.
    pub(super) incomplete: bool,
}

impl Fields {
    /// Reads the texts of a tool; `budget` is the number of bytes that may still be scanned.
    pub(super) fn of_tool(tool: &ListedTool, budget: &mut usize) -> Self {
        let mut reader = Reader { fields: Self::default(), remaining: MAX_TOTAL.min(*budget) };
        let available = reader.remaining;
        reader.add("name", &tool.name.replace(['_', '-', '.'], " "));
        if let Some(title) = &tool.title {
            reader.add("title", title);
        }
        reader.add("description", &tool.description);
        reader.schema("input_schema", &tool.input_schema, 0);
        if let Some(schema) = &tool.output_schema {
            reader.schema("output_schema", schema, 0);
        }
        *budget -= available - reader.remaining;
        reader.fields
    }
}

struct Reader {
    fields: Fields,
    remaining: usize,
}

impl Reader {
    fn add(&mut self, path: &str, text: &str) {
        let value: String = text.chars().take(MAX_TEXT).collect();
        let remaining = self.remaining.checked_sub(value.len());
        let Some(remaining) = remaining.filter(|_| self.fields.texts.len() < MAX_TEXTS) else {
            self.fields.incomplete = true;
            return;
        };
        self.remaining = remaining;
        if value.len() < text.len() {
            self.fields.incomplete = true;
        }
        // Words without a space (types, formats, references) cannot hide an instruction that ASCII would show.
        if value.len() < 16
            && value.bytes().all(|byte| byte.is_ascii_graphic())
            && !value.contains(['<', '['])
        {
            return;
        }
        self.fields.texts.push(Text { path: path.to_owned(), value });
    }

    fn schema(&mut self, path: &str, schema: &Value, depth: usize) {
        if depth > MAX_DEPTH || self.fields.incomplete {
            self.fields.incomplete = true;
            return;
        }
        match schema {
            Value::String(text) => self.add(path, text),
            Value::Array(items) => {
                for item in items {
                    self.schema(path, item, depth + 1);
                }
            }
            Value::Object(fields) => {
                for (key, value) in fields {
                    let is_properties = matches!(key.as_str(), "properties" | "$defs" | "definitions");
                    let inner = if is_properties { path.to_owned() } else { format!("{path}.{key}") };
                    if is_properties && key == "properties" && path.starts_with("input_schema") {
                        let names = value.as_object().into_iter().flat_map(|names| names.keys());
                        self.fields
                            .arguments
                            .extend(names.map(|name| (format!("{path}.{name}"), name.clone())));
                    }
                    if !is_properties {
                        self.add(path, &key.replace(['_', '-', '.'], " "));
                    }
                    self.schema(&inner, value, depth + 1);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}
