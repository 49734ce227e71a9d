//! Reads what is left of a definition with errors, so that its other parts can be checked too.

use serde_json::Value;

use super::document::Document;
use super::reading::{Defaults, interpret};
use haft_core::catalog::FileForm;
use haft_core::problem::Problem;
use haft_core::spec::ToolSpec;

/// The code of an unknown field, which is ignored.
pub const UNKNOWN_FIELD: &str = "unknown_field";

/// Fields on which checks of other fields depend.
const PARTS: [&str; 14] = [
    "params",
    "parameters",
    "argSchema",
    "args_schema",
    "input_schema",
    "schema",
    "config_schema",
    "implementation",
    "implementation_config",
    "implementation_type",
    "impl",
    "type",
    "runtime",
    "body",
];

/// Reads a definition without the fields that have problems. Returns `None` if the rest cannot be checked on its own.
pub fn read_without(
    text: &str,
    form: FileForm,
    defaults: &Defaults,
    problems: &[Problem],
) -> Option<ToolSpec> {
    let document = Document::parse(text, form).ok()?;
    let Value::Object(mut map) = document.value else { return None };
    for problem in problems.iter().filter(|problem| problem.code != UNKNOWN_FIELD) {
        let field = problem.field.split(['.', '[']).next().unwrap_or_default();
        if field.is_empty() || PARTS.contains(&field) {
            return None;
        }
        if matches!(field, "name" | "slug") {
            map.insert(field.to_owned(), Value::from("unnamed-tool"));
        } else {
            map.shift_remove(field);
        }
    }
    interpret(Value::Object(map), document.body, form, defaults).ok().map(|parsed| parsed.spec)
}

#[cfg(test)]
mod tests {
    use super::super::reading::read;
    use super::*;

    #[test]
    fn the_rest_of_a_definition_is_read() {
        let read_rest = |text: &str, form| {
            let problems = read(text, form, &Defaults::default()).unwrap_err();
            read_without(text, form, &Defaults::default(), &problems).map(|spec| spec.name.to_string())
        };
        let rest = "description: d\nimplementation: {type: exec, command: ls}\nparams: []\n";
        for (text, expected) in [
            (format!("name: a b\n{rest}"), Some("unnamed-tool")),
            (format!("name: a\nversion: two\npolicy: maybe\n{rest}"), Some("a")),
            ("name: a b\nimplementation: {type: htp}\n".to_owned(), None),
            ("name: a b\nparams: 7\nimplementation: {type: exec, command: ls}\n".to_owned(), None),
            ("name: [\n".to_owned(), None),
        ] {
            assert_eq!(read_rest(&text, FileForm::Yaml).as_deref(), expected, "{text}");
        }
        let skill = "---\nname: a b\nruntime: bash\n---\necho hi\n";
        assert_eq!(read_rest(skill, FileForm::Skill).as_deref(), Some("unnamed-tool"));
    }
}
