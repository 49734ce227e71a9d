//! A later import over an earlier one.

use serde_json::{Value, json};
use uuid::Uuid;

use super::test_support::{document, import};
use crate::api::{ExistingTool, ImportOptions, MergePlan, MergeStep, merge};
use haft_core::id::ToolId;
use haft_core::implementation::{Auth, Implementation, Script, ScriptRuntime};
use haft_core::name::ToolName;
use haft_core::spec::{Policy, RateLimit, ToolSpec};

fn pets(paths: &Value) -> Value {
    document("3.0.3", paths, &json!({}))
}

fn first() -> Vec<ToolSpec> {
    let paths = json!({
        "/pets": {"get": {"operationId": "listPets", "summary": "Lists pets", "tags": ["pets"]}},
        "/pets/{id}": {"get": {"operationId": "getPet", "summary": "Finds a pet"}},
    });
    import(&pets(&paths), &ImportOptions::default()).tools.into_iter().map(|tool| tool.spec).collect()
}

fn second() -> Value {
    pets(&json!({
        "/pets": {"get": {
            "operationId": "listPets", "summary": "Lists all pets", "tags": ["animals"],
            "parameters": [{"name": "limit", "in": "query", "schema": {"type": "integer"}}],
        }},
        "/pets/{id}": {"get": {"operationId": "getPet", "summary": "Finds a pet"}},
    }))
}

fn id(number: u128) -> ToolId {
    ToolId(Uuid::from_u128(number))
}

fn over(specs: &[ToolSpec], document: &Value) -> MergePlan {
    let existing: Vec<ExistingTool<'_>> =
        specs.iter().enumerate().map(|(at, spec)| ExistingTool { id: id(at as u128 + 1), spec }).collect();
    merge(import(document, &ImportOptions::default()), &existing)
}

/// What each operation comes to, in words.
fn reported(merge: &MergePlan) -> Vec<String> {
    let steps = merge.steps.iter().map(|(imported, step)| {
        let operation = &imported.spec.origin.as_ref().unwrap().operation;
        match step {
            MergeStep::Create(spec) => format!("{operation}: create {}", spec.name),
            MergeStep::Update(update) => format!(
                "{operation}: update {} changed {} kept {}",
                update.spec.name,
                update.changed.join(","),
                update.kept.join(",")
            ),
            MergeStep::Unchanged(_) => format!("{operation}: unchanged"),
            MergeStep::Skip(reason) => format!("{operation}: skip, {reason}"),
        }
    });
    steps.chain(merge.missing.iter().map(|id| format!("missing {}", id.0.as_u128()))).collect()
}

#[test]
fn the_same_document_changes_nothing() {
    let document = pets(&json!({
        "/pets": {"get": {"operationId": "listPets", "summary": "Lists pets", "tags": ["pets"]}},
        "/pets/{id}": {"get": {"operationId": "getPet", "summary": "Finds a pet"}},
    }));
    assert_eq!(
        reported(&over(&[], &document)),
        ["GET /pets: create listPets", "GET /pets/{id}: create getPet"]
    );
    assert_eq!(reported(&over(&first(), &document)), ["GET /pets: unchanged", "GET /pets/{id}: unchanged"]);
}

#[test]
fn edits_of_users_are_kept() {
    let mut specs = first();
    let list = &mut specs[0];
    list.name = ToolName::new("all-pets").unwrap();
    list.description = "My own words".to_owned();
    list.policy = Policy::Elevated;
    list.requires_confirmation = true;
    list.execution.timeout_ms = Some(1234);
    list.execution.rate_limit = Some(RateLimit { calls: 1, per: "1m".to_owned() });
    let Implementation::Http(http) = &mut list.implementation else { panic!() };
    http.auth = Some(Auth::Bearer { token: "${MINE}".to_owned() });
    http.request.extract = Some("$.items".to_owned());
    http.timeout_ms = Some(99);
    let edited = specs[0].clone();

    let merge = over(&specs, &second());
    assert_eq!(
        reported(&merge),
        [
            "GET /pets: update all-pets changed display_name,category,tags,implementation,input_schema,origin kept description,auth",
            "GET /pets/{id}: unchanged",
        ]
    );
    let MergeStep::Update(update) = &merge.steps[0].1 else { panic!() };
    let (new, doc) = (&update.spec, &merge.steps[0].0.spec);
    let Implementation::Http(http) = &new.implementation else { panic!() };
    let mut expected = edited;
    expected.display_name = "Lists all pets".to_owned();
    expected.category = "animals".to_owned();
    expected.tags = vec!["animals".to_owned()];
    expected.input_schema = doc.input_schema.clone();
    expected.origin = doc.origin.clone();
    expected.implementation = Implementation::Http(http.clone());
    assert_eq!(*new, expected);
    assert_eq!(Value::Object(http.request.query.clone()), json!({"limit": "${limit}"}));
    assert_eq!(http.auth, Some(Auth::Bearer { token: "${MINE}".to_owned() }));
    assert_eq!((http.request.extract.as_deref(), http.timeout_ms), (Some("$.items"), Some(99)));
    // The digests are those of the document, so that the words stay a person's at the next import too.
    assert_eq!(reported(&over(std::slice::from_ref(new), &second()))[0], "GET /pets: unchanged");
}

#[test]
fn moved_operations_are_followed_and_removed_ones_reported() {
    let moved = pets(
        &json!({"/animals": {"get": {"operationId": "listPets", "summary": "Lists pets", "tags": ["pets"]}}}),
    );
    assert_eq!(
        reported(&over(&first(), &moved)),
        ["GET /animals: update listPets changed implementation,origin kept ", "missing 2"]
    );
    // Another operation of the same id takes no tool from the one that is still there.
    let twins = pets(&json!({
        "/a": {"get": {"operationId": "listPets", "summary": "Lists pets"}},
        "/pets": {"get": {"operationId": "listPets", "summary": "Lists pets", "tags": ["pets"]}},
    }));
    assert_eq!(
        reported(&over(&first(), &twins)),
        ["GET /a: create listPets-f302df", "GET /pets: unchanged", "missing 2"]
    );
    // Not chosen is not vanished.
    let mut options = ImportOptions::default();
    options.selection.tags = vec!["animals".to_owned()];
    let specs = first();
    let existing: Vec<ExistingTool<'_>> = specs.iter().map(|spec| ExistingTool { id: id(1), spec }).collect();
    let merge = merge(import(&second(), &options), &existing);
    assert_eq!((merge.steps.len(), merge.missing), (1, vec![]));
}

#[test]
fn names_of_other_tools_are_not_reused() {
    let mut foreign = first();
    for spec in &mut foreign {
        spec.origin = None;
    }
    assert_eq!(
        reported(&over(&foreign, &second())),
        ["GET /pets: create listPets-b0bd07", "GET /pets/{id}: create getPet-895c8d"]
    );
    let created = over(&foreign, &second());
    let MergeStep::Create(spec) = &created.steps[0].1 else { panic!() };
    let mut blocked = (**spec).clone();
    blocked.origin = None;
    foreign.push(blocked);
    assert_eq!(
        reported(&over(&foreign, &second()))[0],
        "GET /pets: skip, another tool of the bundle has the name `listPets`"
    );
    // Another document of the same bundle has nothing to do with this one.
    let mut other = first();
    for spec in &mut other {
        spec.origin.as_mut().unwrap().document = "Cats".to_owned();
    }
    assert_eq!(reported(&over(&other, &second()))[0], "GET /pets: create listPets-b0bd07");
}

#[test]
fn a_tool_with_another_implementation_is_not_changed() {
    let mut specs = first();
    specs[0].implementation = Implementation::Script(Script::new(ScriptRuntime::Bash, "true"));
    assert_eq!(
        reported(&over(&specs, &second()))[0],
        "GET /pets: skip, `listPets` is no longer an `http` tool; it was not changed"
    );
}
