//! The definitions of the built-in tools.

use haft_definition::check;
use serde_json::Value;

use crate::harness::{Harness, Setup};

#[test]
fn every_definition_is_valid_and_described() {
    for spec in Harness::new(&Setup::default()).specs() {
        let checked = check::definition(spec);
        assert_eq!((checked.errors, checked.warnings), (vec![], vec![]), "{}", spec.name);
        assert!((40..=400).contains(&spec.description.len()), "{}: {}", spec.name, spec.description.len());
        assert!(!spec.category.is_empty() && !spec.tags.is_empty(), "{}", spec.name);
        assert_eq!(spec.input_schema.value()["additionalProperties"], Value::Bool(false), "{}", spec.name);
        for (name, property) in spec.input_schema.value()["properties"].as_object().unwrap() {
            assert!(
                property["description"].as_str().is_some_and(|text| text.len() > 5),
                "{}.{name}",
                spec.name
            );
        }
    }
}

#[test]
fn the_list_of_built_in_tools() {
    let harness = Harness::new(&Setup::default());
    let names: Vec<String> =
        harness.specs().iter().map(|spec| format!("{} ({})", spec.name, spec.policy.as_str())).collect();
    insta::assert_snapshot!(names.join("\n"), @r#"
    read_file (allow)
    write_file (allow)
    append_file (allow)
    list_files (allow)
    exec (elevated)
    bash (elevated)
    send_email (allow)
    send_whatsapp (allow)
    http_request (allow)
    web_fetch (allow)
    web_search (allow)
    json_transform (allow)
    datetime_utils (allow)
    "#);
}
