//! The description of GitHub's API: about 1,200 operations, 13 MB.

use std::collections::BTreeMap;

use haft_core::schema::Schema;
use haft_definition::check;
use haft_definition::export::{Format, definition, model_name};
use haft_import::api::{ExistingTool, ImportOptions, MergeStep, merge};
use haft_import::openapi::read;
use haft_testkit::prerequisite::{Prerequisite, skip};

/// Reads the document that `tools/setup test` fetches; without it there is nothing to test.
fn document() -> Option<String> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/test-data/github-openapi.json");
    let text = std::fs::read_to_string(path).ok();
    if text.is_none() {
        skip(Prerequisite::GithubDescription, "the description of GitHub's API has not been fetched");
    }
    text
}

#[test]
fn all_of_github_is_imported() {
    let Some(text) = document() else { return };
    let import = read(&text, &ImportOptions::default()).unwrap();
    assert!(import.operations.len() > 1100, "{}", import.operations.len());
    assert_eq!((import.tools.len(), import.skipped.as_slice()), (import.operations.len(), [].as_slice()));
    let mut doubts: BTreeMap<&str, usize> = BTreeMap::new();
    for tool in &import.tools {
        assert_eq!(check::definition(&tool.spec).errors, [], "{}", tool.spec.name);
        for warning in &tool.warnings {
            *doubts.entry(warning.code.as_str()).or_default() += 1;
        }
    }
    // Whatever else the document will say: its schemas are taken whole.
    for code in ["schema_cut", "schema_dropped", "missing_reference", "unknown_type", "unsupported_pattern"] {
        assert_eq!(doubts.get(code), None, "{doubts:?}");
    }
    let specs: Vec<_> = import.tools.iter().map(|tool| tool.spec.clone()).collect();
    let names: std::collections::HashSet<_> = specs.iter().map(|spec| &spec.name).collect();
    assert_eq!(names.len(), specs.len());
    let existing: Vec<_> = specs
        .iter()
        .enumerate()
        .map(|(at, spec)| ExistingTool { id: haft_core::id::ToolId(uuid::Uuid::from_u128(at as u128)), spec })
        .collect();
    let merged = merge(import, &existing);
    assert!(merged.missing.is_empty());
    assert!(merged.steps.iter().all(|(_, step)| matches!(step, MergeStep::Unchanged(_))));
}

/// Every operation exports a valid schema, and most of them a strict one.
#[test]
fn all_of_github_is_exported_to_every_model() {
    let Some(text) = document() else { return };
    let import = read(&text, &ImportOptions::default()).unwrap();
    let (mut strictly, mut tokens) = (0, 0);
    for tool in &import.tools {
        let name = tool.spec.name.as_str();
        for (format, place) in [
            (Format::OpenAiStrict, "/function/parameters"),
            (Format::OpenAiResponses, "/parameters"),
            (Format::Anthropic, "/input_schema"),
            (Format::Gemini, "/parametersJsonSchema"),
        ] {
            let reported = definition(&tool.spec, &model_name(name), format);
            let schema = reported.value.pointer(place).unwrap();
            assert!(Schema::compile("told", schema).is_ok(), "{name} {format:?}");
            let is_strict = reported.value.pointer("/function/strict") == Some(&true.into());
            assert_eq!(reported.warnings.is_empty(), is_strict || format != Format::OpenAiStrict, "{name}");
            strictly += usize::from(is_strict);
            tokens += if format == Format::OpenAiResponses { reported.tokens } else { 0 };
        }
    }
    let all = import.tools.len();
    assert!(strictly * 10 > all * 8, "{strictly} of {all}");
    assert!((250 * all..400 * all).contains(&tokens), "{tokens} tokens of {all}");
}
