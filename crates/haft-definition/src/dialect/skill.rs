//! The `.skill` dialect: front matter and a body; in JSON the body is a field.

use super::canonical;
use super::draft::{self, Draft, Finished};
use super::fields::Fields;
use super::implementation;
use super::reading::Defaults;
use haft_core::implementation::{Implementation, Notation, Script, ScriptRuntime};

#[derive(Clone, Copy)]
enum Runtime {
    Script(ScriptRuntime),
    Wasm,
}

pub(super) fn read(mut fields: Fields<'_>, body: Option<String>, defaults: &Defaults) -> Option<Finished> {
    let mut draft = Draft::default();
    draft::names(&mut fields, &mut draft, "name", defaults);
    draft.input_schema = draft::input_schema(&mut fields);
    draft.output_schema = draft::output_schema(&mut fields);
    if ["implementation", "impl", "implementation_config"].iter().any(|key| fields.has(key)) {
        other_implementation(&mut fields, &mut draft, body.as_deref());
    } else {
        draft.implementation = script(&mut fields, body);
    }
    draft.finish(fields, defaults)
}

/// A `.skill` may have any implementation, and then no body.
fn other_implementation(fields: &mut Fields<'_>, draft: &mut Draft, body: Option<&str>) {
    canonical::implementation(fields, draft, Notation::Dollar);
    if body.is_some_and(|body| !body.trim().is_empty()) {
        fields.error(
            "implementation",
            "conflicting_fields",
            "there is also a script after the second `---`; remove one, or use `runtime` instead",
        );
    }
    canonical::repeated_script(fields, draft);
}

fn script(fields: &mut Fields<'_>, text: Option<String>) -> Option<Implementation> {
    let runtimes = [
        ("bash", Runtime::Script(ScriptRuntime::Bash)),
        ("python", Runtime::Script(ScriptRuntime::Python)),
        ("wasm", Runtime::Wasm),
    ];
    if !fields.has("runtime") {
        fields.missing("runtime", "`bash`, `python` or `wasm`");
    }
    let runtime = fields.choice("runtime", &runtimes);
    let body = match (fields.has("body"), text) {
        (true, Some(text)) if !text.trim().is_empty() => {
            fields.error(
                "body",
                "conflicting_fields",
                "there is also a script after the second `---`; remove one",
            );
            return None;
        }
        (true, _) => Some(fields.text("body")?),
        (false, text) => text,
    };
    fields.ignore(&["body"]);
    match runtime? {
        Runtime::Script(runtime) => {
            if body.is_none() {
                fields.missing("body", "the text of the script");
            }
            let output = implementation::output_format(fields);
            let dependencies = implementation::dependencies(fields);
            body.map(|body| Implementation::Script(Script { runtime, body, output, dependencies }))
        }
        Runtime::Wasm => wasm(fields, body.as_deref().unwrap_or_default()),
    }
}

/// A module is a file of the bundle, or base64 in the body.
fn wasm(fields: &mut Fields<'_>, body: &str) -> Option<Implementation> {
    let file = fields.text("file");
    let base64: String = body.split_whitespace().collect();
    let base64 = (!base64.is_empty()).then_some(base64);
    if file.is_none() && base64.is_none() {
        fields.missing("file", "the module file, or the module in base64 as the body");
        return None;
    }
    Some(Implementation::Wasm(implementation::wasm(fields, file, base64)))
}

#[cfg(test)]
#[path = "skill_tests.rs"]
mod tests;
