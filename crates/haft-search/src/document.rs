//! The searchable text of a tool.

use haft_core::spec::ToolSpec;
use serde_json::Value;

use crate::embedding::{Vector, model};
use crate::tokens::tokens;

/// The most characters of a field that are indexed.
const MAX_FIELD: usize = 8192;

/// How many fields a document has.
pub(crate) const FIELDS: usize = 5;

/// The searchable text of a tool, by field.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Document {
    /// The name that models call.
    pub name: String,
    /// The title for people; keyword search treats it like the name.
    pub title: String,
    /// What the tool does.
    pub description: String,
    /// The names of its parameters, separated by spaces.
    pub parameters: String,
    /// The descriptions of its parameters, separated by spaces.
    pub parameter_descriptions: String,
    /// Tags and category, separated by spaces.
    pub tags: String,
}

impl Document {
    /// Returns the fields in the order of the ranker's weights.
    pub(crate) fn fields(&self) -> [&str; FIELDS] {
        [&self.name, &self.description, &self.parameters, &self.parameter_descriptions, &self.tags]
    }
}

/// What an [`Index`](crate::Index) stores of a document. Computing it takes most of the time of an update and needs no
/// index.
#[derive(Debug, Clone)]
pub struct PreparedDocument {
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) tokens: [Vec<String>; FIELDS],
    pub(crate) vector: Option<Vector>,
}

impl From<&Document> for PreparedDocument {
    fn from(document: &Document) -> Self {
        Self {
            name: document.name.clone(),
            title: document.title.clone(),
            tokens: document.fields().map(tokens),
            vector: model().map(|model| model.document(document)),
        }
    }
}

impl From<&ToolSpec> for Document {
    fn from(spec: &ToolSpec) -> Self {
        let (mut parameters, mut parameter_descriptions) = (String::new(), String::new());
        let input = spec.input_schema.value();
        let properties = input.get("properties").and_then(Value::as_object);
        for (name, schema) in properties.into_iter().flatten() {
            append(&mut parameters, name);
            append(
                &mut parameter_descriptions,
                schema.get("description").and_then(Value::as_str).unwrap_or(""),
            );
        }
        let mut tags = String::new();
        spec.tags.iter().for_each(|tag| append(&mut tags, tag));
        append(&mut tags, &spec.category);
        let mut description = String::new();
        // A title that the description repeats would count twice.
        if !spec.description.contains(spec.display_name.as_str()) {
            append(&mut description, &spec.display_name);
        }
        append(&mut description, &spec.description);
        Self {
            name: spec.name.as_str().to_owned(),
            title: spec.display_name.clone(),
            description,
            parameters,
            parameter_descriptions,
            tags,
        }
    }
}

/// Appends a text after a space, as far as the field has room.
fn append(field: &mut String, text: &str) {
    if text.is_empty() || field.len() >= MAX_FIELD {
        return;
    }
    if !field.is_empty() {
        field.push(' ');
    }
    let end = text.floor_char_boundary(MAX_FIELD - field.len().min(MAX_FIELD));
    field.push_str(text.get(..end).unwrap_or_default());
}
