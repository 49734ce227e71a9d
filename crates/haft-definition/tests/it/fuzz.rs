//! Fuzz targets for every parser: the dialects, templates, page tokens.
//!
//! `cargo test` runs each for a moment with random input. To fuzz one in earnest, on a nightly
//! toolchain: `cargo bolero test -p haft-core fuzz::yaml_is_read_or_refused`.

use std::collections::BTreeMap;

use bolero::check;
use haft_core::catalog::FileForm;
use haft_core::page;
use haft_core::secret::Secret;
use haft_definition::dialect::{Defaults, read, write};
use haft_template::{EscapeContext, Notation, Scope, Template, Values};

use crate::roundtrip::FORMS;

/// Pieces that random bytes seldom hit upon; a byte of input picks one of them.
const PIECES: [&str; 48] = [
    "name: t\n",
    "---\n",
    "runtime: bash\n",
    "params:\n",
    "  - name: x\n",
    "implementation:\n",
    "  type: http\n",
    "  url: https://a.example\n",
    "  body:\n",
    "    {{if x}}\n",
    "    {{else}}\n",
    "    {{end}}\n",
    "    a: 1\n",
    "    - b\n",
    "{{if",
    "}}",
    "\"",
    "'",
    ": ",
    "- ",
    "  ",
    "\n",
    "\t",
    "#",
    "|\n",
    ">-\n",
    "&a ",
    "*a",
    "<<: *a\n",
    "{",
    "}",
    "[",
    "]",
    ",",
    "\"name\":",
    "\"t\"",
    "\"implementation\":",
    "\"type\":\"function\"",
    "\"function\":\"f\"",
    "0644",
    "1e999",
    "null",
    "\u{feff}",
    "\r\n",
    "!!binary ",
    "? ",
    "timeout: 30s\n",
    "é",
];

fn document(input: &[u8]) -> String {
    input.iter().map(|byte| PIECES.get(usize::from(*byte) % 64).copied().unwrap_or("z")).collect()
}

/// Reads anything; what is read must be written and read again as the same.
fn parse_or_reject(text: &str, form: FileForm) {
    match read(text, form, &Defaults::default()) {
        Err(problems) => {
            assert!(problems.iter().all(|problem| !problem.message.is_empty()) && !problems.is_empty());
        }
        Ok(reading) => {
            for form in FORMS {
                let written = write(&reading.spec, form, reading.enabled);
                let again = read(&written, form, &Defaults::default());
                assert_eq!(again.map(|again| again.spec).as_ref(), Ok(&reading.spec), "{form:?}\n{written}");
            }
        }
    }
}

fn fuzz(form: FileForm) {
    check!().for_each(|input: &[u8]| {
        parse_or_reject(&String::from_utf8_lossy(input), form);
        parse_or_reject(&document(input), form);
    });
}

#[test]
fn json_is_parsed_or_rejected() {
    fuzz(FileForm::Json);
}

#[test]
fn yaml_is_parsed_or_rejected() {
    fuzz(FileForm::Yaml);
}

#[test]
fn skills_are_parsed_or_rejected() {
    fuzz(FileForm::Skill);
}

#[test]
fn page_tokens_are_decoded_or_rejected() {
    check!().for_each(|input: &[u8]| {
        let text = String::from_utf8_lossy(input);
        if let Ok(position) = page::decode("tools", &text) {
            assert_eq!(page::decode("tools", &page::encode("tools", &position)), Ok(position));
        }
    });
}

/// No random value contains it.
const SECRET: &str = "a secret of twenty-nine letters";

/// Pieces of templates; the value put in is the rest of the input.
const TEMPLATE_PIECES: [&str; 24] = [
    "${x}",
    "${",
    "$${",
    "{{x}}",
    "{{",
    "}}",
    "{{if x}}",
    "{{else}}",
    "{{end}}",
    "{{x | default:",
    "10",
    "\"",
    "'",
    "${S}",
    "https://a.example/",
    "?q=",
    "&",
    "#",
    "/",
    "%",
    "{\"a\": ",
    "}",
    "\\",
    "${steps.one.b}",
];

#[test]
fn templates_are_parsed_or_rejected_and_values_stay_values() {
    let scope = {
        let schema = serde_json::json!({"properties": {"x": {"type": "string"}}});
        let mut scope = Scope::from_schema(&schema);
        scope.add_step("one");
        scope
    };
    check!().for_each(|input: &[u8]| {
        let (spelling, value) = input.split_at(input.len() / 2);
        let text: String = spelling
            .iter()
            .map(|b| TEMPLATE_PIECES.get(usize::from(*b) % 32).copied().unwrap_or("z"))
            .collect();
        let args = serde_json::json!({"x": String::from_utf8_lossy(value)});
        let steps = serde_json::json!({"one": {"b": 1}});
        let secrets = BTreeMap::from([("S", Secret::new(SECRET.to_owned()))]);
        let values = Values {
            args: args.as_object().unwrap(),
            steps: steps.as_object().unwrap(),
            secrets: &secrets,
            version: "1.0.0",
        };
        for notation in [Notation::Dollar, Notation::Braces] {
            let Ok(template) = Template::parse(notation, &text, &scope) else { continue };
            if let Ok(header) = template.render(EscapeContext::Header("X-A"), &values) {
                assert!(!header.text.contains(['\r', '\n', '\0']), "{text:?} {header:?}");
            }
            for place in [
                EscapeContext::Url,
                EscapeContext::Json,
                EscapeContext::Form,
                EscapeContext::Xml,
                EscapeContext::Text,
            ] {
                let shown = template.render_masked(place, &values);
                assert!(!shown.is_ok_and(|shown| shown.contains(SECRET)), "{text:?}");
                if place == EscapeContext::Form
                    && let Ok(form) = template.render(place, &values)
                {
                    let raw = text.matches(['&', '"', '\'']).count();
                    assert!(form.text.matches(['&', '"', '\'']).count() <= raw, "{text:?} {form:?}");
                }
            }
        }
    });
}
