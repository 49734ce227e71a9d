//! Checks the steps of a tool: ids, references, order, limits, mappings.

use haft_core::implementation::{MAX_ITEMS, MAX_PARALLEL, MAX_STEPS, OnFailure, Step, Steps};
use haft_core::mapping::{Reference, STEPS};
use haft_core::problem::{excerpt, nearest};
use haft_core::reference::ToolRef;
use haft_core::schema::declared_properties;
use haft_core::spec::ToolSpec;
use serde_json::Value;

use super::CheckReport;
use crate::steps::{StepGraph, field, operands};

/// What a mapping may read from a step.
const STEP_FIELDS: [&str; 4] = ["value", "ok", "error", "status"];

pub(super) fn check(spec: &ToolSpec, steps: &Steps, checked: &mut CheckReport) {
    if steps.steps.is_empty() {
        checked.error("implementation.steps", "missing_field", "at least one step is required");
    }
    if steps.steps.len() > MAX_STEPS {
        let message = format!("has {} steps; the limit is {MAX_STEPS}", steps.steps.len());
        checked.error("implementation.steps", "too_many", message);
        return;
    }
    if steps.max_parallel.is_some_and(|max| max == 0 || max > MAX_PARALLEL) {
        let message = format!("must be from 1 to {MAX_PARALLEL}");
        checked.error("implementation.max_parallel", "invalid_value", message);
    }
    for (index, step) in steps.steps.iter().enumerate() {
        self::step(spec, step, index, checked);
    }
    if let Err(problems) = StepGraph::new(steps) {
        checked.errors.extend(problems);
    }
    let input = spec.input_schema.value();
    for (index, step) in steps.steps.iter().enumerate() {
        let mut mappings = Mappings { schema: &input, in_each: false, checked };
        if let Some(list) = &step.for_each {
            mappings.walk(list, &field(index, "for_each"));
        }
        for operand in step.when.iter().flat_map(operands) {
            mappings.walk(&operand, &field(index, "when"));
        }
        mappings.in_each = step.for_each.is_some();
        if let Some(fallback) = &step.fallback {
            mappings.walk(fallback, &field(index, "fallback"));
        }
        for (name, value) in &step.args {
            mappings.walk(value, &format!("{}.{}", field(index, "args"), excerpt(name, 60)));
        }
    }
    if let Some(output) = &steps.output {
        Mappings { schema: &input, in_each: false, checked }.walk(output, "implementation.output");
    }
}

fn step(spec: &ToolSpec, step: &Step, index: usize, checked: &mut CheckReport) {
    let is_id = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if step.id.is_empty() || step.id.len() > 64 || !step.id.chars().all(is_id) {
        let message =
            format!("invalid id `{}`: use 1 to 64 letters, digits, `-` and `_`", excerpt(&step.id, 60));
        checked.error(field(index, "id"), "invalid_value", message);
    }
    match step.tool.parse::<ToolRef>() {
        Err(error) => checked.error(field(index, "tool"), "invalid_value", error.to_string()),
        Ok(ToolRef::Name { bundle: None, name, .. }) if name == spec.name => checked.warn(
            field(index, "tool"),
            "recursive",
            format!("the step calls the tool `{name}` itself, unless another bundle has one of that name; name the bundle"),
        ),
        Ok(_) => {}
    }
    match (step.max_items, &step.for_each) {
        (Some(max), _) if max == 0 || max > MAX_ITEMS => {
            let message = format!("must be from 1 to {MAX_ITEMS}");
            checked.error(field(index, "max_items"), "invalid_value", message);
        }
        (Some(_), None) => {
            checked.warn(field(index, "max_items"), "unused_field", "has no effect without `for_each`");
        }
        _ => {}
    }
    if let Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) = &step.for_each {
        let message = "expected a reference to a list, such as `$args.cities`, or a list";
        checked.error(field(index, "for_each"), "wrong_type", message);
    }
    if let Some(Value::String(text)) = &step.for_each
        && STEPS.whole(text).is_none()
    {
        let message = format!(
            "`{}` is not a reference; expected one to a list, such as `$args.cities`",
            excerpt(text, 60)
        );
        checked.error(field(index, "for_each"), "invalid_value", message);
    }
    if step.fallback.is_some() && step.on_failure != OnFailure::Fallback {
        let message = "has no effect unless `on_failure` is `fallback`";
        checked.error(field(index, "fallback"), "conflicting_fields", message);
    }
}

/// Checks the references of mappings.
struct Mappings<'a> {
    schema: &'a Value,
    /// Whether `$item` and `$index` have values.
    in_each: bool,
    checked: &'a mut CheckReport,
}

impl Mappings<'_> {
    fn walk(&mut self, mapping: &Value, path: &str) {
        match mapping {
            Value::String(text) => {
                STEPS.visit(mapping, &mut |reference, _| self.reference(&reference, path));
                self.literal(text, path);
            }
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.walk(item, &format!("{path}[{index}]"));
                }
            }
            Value::Object(map) => {
                for (key, item) in map {
                    self.walk(item, &format!("{path}.{}", excerpt(key, 60)));
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn reference(&mut self, reference: &Reference<'_>, path: &str) {
        let text = excerpt(reference.text, 60);
        match (reference.name, reference.path.as_slice()) {
            ("item" | "index", _) if !self.in_each => {
                let message =
                    format!("`{text}` has a value only in `args` and `fallback` of a step with `for_each`");
                self.checked.error(path, "unknown_reference", message);
            }
            ("steps", []) => {
                let message = "name the step: `$steps.ID.value`, `$steps.ID.ok` or `$steps.ID.error.message`";
                self.checked.error(path, "unknown_reference", message);
            }
            ("steps", [id, part, ..]) if !STEP_FIELDS.contains(part) => {
                let near = nearest(part, STEP_FIELDS).unwrap_or("value");
                let hint = if near == "value" { format!("value.{part}") } else { near.to_owned() };
                let message =
                    format!("a step has no `{}`; did you mean `$steps.{id}.{hint}`?", excerpt(part, 40));
                self.checked.error(path, "unknown_reference", message);
            }
            ("args", [name, deeper @ ..]) => self.argument(name, deeper, &text, path),
            _ => {}
        }
    }

    fn argument(&mut self, name: &str, deeper: &[&str], text: &str, path: &str) {
        let declared = declared_properties(self.schema);
        let Some((_, schema)) = declared.iter().find(|(declared, _)| *declared == name) else {
            let names: Vec<&str> = declared.iter().map(|(name, _)| *name).collect();
            let message = match nearest(name, names.iter().copied()) {
                Some(near) => format!("`{text}`: the tool has no argument `{name}`; did you mean `{near}`?"),
                None => format!("`{text}`: the tool has no argument `{name}`; declare it in `input_schema`"),
            };
            self.checked.error(path, "undeclared_argument", message);
            return;
        };
        if let Some(part) = unlikely_part(schema, deeper) {
            let message = format!("`{text}`: the schema of the argument has no `{}`", excerpt(part, 40));
            self.checked.warn(path, "unknown_path", message);
        }
    }

    /// Warns of text that looks like a reference but is not one.
    fn literal(&mut self, text: &str, path: &str) {
        if text.contains("{{") || text.contains("${") {
            let message = "`{{…}}` and `${…}` are literal text in steps; refer to arguments by `$args.NAME`";
            self.checked.warn(path, "template_notation", message);
        }
        let unescaped = text.replace("$$", "");
        for part in unescaped.split('$').skip(1) {
            let end = part.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(part.len());
            let word = part.get(..end).unwrap_or_default();
            let is_reference = STEPS.parse(&format!("${part}")).is_some();
            if let (false, Some(near)) = (is_reference, nearest(word, ["args", "steps", "item", "index"])) {
                let message = format!("`${word}` is literal text; did you mean `${near}`?");
                self.checked.warn(path, "unknown_reference", message);
            }
        }
    }
}

/// Returns the part of a path that a schema rules out, if there is one.
fn unlikely_part<'p>(schema: &Value, path: &[&'p str]) -> Option<&'p str> {
    let mut schema = schema;
    for part in path {
        if ["$ref", "allOf", "anyOf", "oneOf"].iter().any(|key| schema.get(key).is_some()) {
            return None;
        }
        match schema.get("type").and_then(Value::as_str) {
            Some("string" | "integer" | "number" | "boolean" | "null") => return Some(part),
            Some("array") if part.parse::<usize>().is_err() => return Some(part),
            Some("array") => schema = schema.get("items")?,
            _ => {
                let properties = schema.get("properties")?.as_object()?;
                let Some(inner) = properties.get(*part) else {
                    return (!properties.is_empty()).then_some(part);
                };
                schema = inner;
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use haft_core::name::ToolName;
    use haft_core::spec::ToolSpec;
    use serde_json::{Value, json};

    fn check(implementation: Value) -> (String, String) {
        let mut spec = ToolSpec::new(
            ToolName::new("pipeline").unwrap(),
            serde_json::from_value(implementation).unwrap(),
        );
        spec.input_schema = json!({"type": "object", "properties": {
            "city": {"type": "string"},
            "cities": {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}}}},
        }})
        .into();
        let mut checked = super::CheckReport::default();
        super::super::implementation(&spec, &mut checked);
        (haft_core::problem::join(&checked.errors), haft_core::problem::join(&checked.warnings))
    }

    #[test]
    fn a_pipeline_without_mistakes_has_no_problems() {
        let found = check(json!({"type": "steps", "steps": [
            {"id": "each", "tool": "web:weather", "for_each": "$args.cities", "args": {"city": "$item.name", "n": "$index"}},
            {"id": "first", "tool": "weather", "when": "$steps.each.ok", "args": {"city": "in $args.cities[0].name, $$args"}},
        ], "output": {"all": "$steps.each.value", "why": "$steps.first.error.message"}, "max_parallel": 2}));
        assert_eq!(found, (String::new(), String::new()));
    }

    #[test]
    fn mistakes_name_the_field_and_the_fix() {
        for (step, expected) in [
            (
                json!({"id": "a b", "tool": "t"}),
                "`implementation.steps[0].id`: invalid id `a b`: use 1 to 64 letters, digits, `-` and `_`",
            ),
            (
                json!({"id": "a", "tool": "x/y"}),
                "`implementation.steps[0].tool`: tool name `x/y` contains '/'; allowed: letters, digits, `-` and `_`",
            ),
            (
                json!({"id": "a", "tool": "t", "args": {"x": "$args.citi"}}),
                "`implementation.steps[0].args.x`: `$args.citi`: the tool has no argument `citi`; did you mean `city`?",
            ),
            (
                json!({"id": "a", "tool": "t", "args": {"x": ["$item"]}}),
                "`implementation.steps[0].args.x[0]`: `$item` has a value only in `args` and `fallback` of a step with `for_each`",
            ),
            (
                json!({"id": "a", "tool": "t", "for_each": "$args.cities", "max_items": 5000}),
                "`implementation.steps[0].max_items`: must be from 1 to 1000",
            ),
            (
                json!({"id": "a", "tool": "t", "for_each": "cities"}),
                "`implementation.steps[0].for_each`: `cities` is not a reference; expected one to a list, such as `$args.cities`",
            ),
            (
                json!({"id": "a", "tool": "t", "fallback": 1}),
                "`implementation.steps[0].fallback`: has no effect unless `on_failure` is `fallback`",
            ),
        ] {
            let (errors, _) = check(json!({"type": "steps", "steps": [step]}));
            assert_eq!(errors, expected);
        }
        let (errors, _) =
            check(json!({"type": "steps", "steps": [{"id": "a", "tool": "t"}], "output": "$steps.a.rows"}));
        assert_eq!(
            errors,
            "`implementation.output`: a step has no `rows`; did you mean `$steps.a.value.rows`?"
        );
        let (errors, _) = check(json!({"type": "steps", "steps": []}));
        assert_eq!(errors, "`implementation.steps`: at least one step is required");
        let many: Vec<Value> = (0..101).map(|n| json!({"id": format!("s{n}"), "tool": "t"})).collect();
        let (errors, _) = check(json!({"type": "steps", "steps": many}));
        assert_eq!(errors, "`implementation.steps`: has 101 steps; the limit is 100");
    }

    #[test]
    fn probable_mistakes_are_warnings() {
        for (value, expected) in [
            ("$args.city.name", "`$args.city.name`: the schema of the argument has no `name`"),
            ("$args.cities[0].nam", "`$args.cities[0].nam`: the schema of the argument has no `nam`"),
            ("$args.cities.name", "`$args.cities.name`: the schema of the argument has no `name`"),
            ("{{city}}", "`{{…}}` and `${…}` are literal text in steps; refer to arguments by `$args.NAME`"),
            ("$arg.city", "`$arg` is literal text; did you mean `$args`?"),
            ("costs $5", ""),
            ("$$arg", ""),
        ] {
            let (errors, warnings) =
                check(json!({"type": "steps", "steps": [{"id": "a", "tool": "t", "args": {"x": value}}]}));
            assert_eq!(errors, "", "{value}");
            let expected = if expected.is_empty() {
                String::new()
            } else {
                format!("`implementation.steps[0].args.x`: {expected}")
            };
            assert_eq!(warnings, expected);
        }
    }
}
