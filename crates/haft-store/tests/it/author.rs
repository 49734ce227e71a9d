//! The text of a definition is preserved as its author wrote it.

use std::fs;

use haft_core::catalog::{FileForm, NewTool, SourceText, StoreError, ToolChange, Transition};
use haft_core::name::Version;
use haft_core::tool::Tool;
use haft_definition::dialect::{self, Defaults};

use crate::harness::{Harness, new_tool, spec};

const YAML: &str = "# Asked for by the pilots.\nname:   weather\ndescription: 'one'   # short\nparams:\n  - {name: q, \
                    type: string, required: true}\n\nimplementation:\n    type: http\n    url: https://example.com/{{q}}\n";

/// Returns a new tool with a text.
fn new(text: &str, form: FileForm) -> NewTool {
    let reading = dialect::read(text, form, &Defaults::default()).unwrap();
    let text = Some(SourceText { form, text: text.to_owned() });
    NewTool { form, text, enabled: reading.enabled.unwrap_or(true), ..new_tool("web", reading.spec) }
}

/// Returns a change with a text.
fn change(text: &str, form: FileForm) -> ToolChange {
    let NewTool { spec, text, enabled, .. } = new(text, form);
    ToolChange { spec, text, status: None, enabled: Some(enabled) }
}

fn file(harness: &Harness, tool: &Tool) -> String {
    fs::read_to_string(harness.path(tool.path.as_deref().unwrap())).unwrap()
}

fn backups(harness: &Harness) -> usize {
    fs::read_dir(harness.path("tool-history")).unwrap().count()
}

#[tokio::test]
async fn the_text_of_the_author_is_preserved_in_every_form() {
    for (form, text) in [
        (FileForm::Yaml, YAML.to_owned()),
        (FileForm::Yaml, YAML.replace('\n', "\r\n")),
        (FileForm::Yaml, format!("{YAML}enabled: false # for now\n")),
        (FileForm::Yaml, format!("\u{feff}{YAML}unknown: kept as well\n")),
        (FileForm::Skill, "---\nname: weather\nruntime: bash # not sh\n---\n\necho 1  \n\n".to_owned()),
        (
            FileForm::Json,
            "{\"name\": \"weather\",\n\n   \"implementation\": {\"type\":\"exec\", \"command\": \"ls\"}}"
                .to_owned(),
        ),
        // `tool.json`
        (
            FileForm::Json,
            "{\n \"name\": \"weather\", \"type\": \"go\", \"impl\": {\"function\": \"f\"}, \"argSchema\": {}}"
                .to_owned(),
        ),
    ] {
        let mut harness = Harness::sqlite().await;
        let tool = harness.store.catalog().create_tool(new(&text, form)).await.unwrap();
        assert_eq!(file(&harness, &tool), text);
        // The files agree with the index.
        harness.assert_consistent().await;
        let report = harness.store.catalog().reindex().await.unwrap();
        assert_eq!((report.tools, report.unreadable), (1, 0));
        harness.restart().await;
        assert_eq!(harness.mirror().named("weather"), Some(&tool), "{text}");
    }
}

#[tokio::test]
async fn changed_comments_do_not_create_a_revision() {
    let harness = Harness::sqlite().await;
    let tool = harness.store.catalog().create_tool(new(YAML, FileForm::Yaml)).await.unwrap();
    let announced = harness.sink.announced();
    let commented = YAML.replace("# short", "# as short as can be");
    let after =
        harness.store.catalog().update_tool(tool.id, change(&commented, FileForm::Yaml)).await.unwrap();
    assert_eq!((&after, file(&harness, &tool)), (&tool, commented.clone()));
    assert_eq!((harness.sink.announced(), backups(&harness)), (announced, 1));
    // The same text again is no change.
    harness.store.catalog().update_tool(tool.id, change(&commented, FileForm::Yaml)).await.unwrap();
    assert_eq!(backups(&harness), 1);
    assert_eq!(harness.store.catalog().reindex().await.unwrap().changed, 0);

    let edited = commented.replace("'one'", "two");
    let after = harness.store.catalog().update_tool(tool.id, change(&edited, FileForm::Yaml)).await.unwrap();
    assert_eq!((after.revision, file(&harness, &tool), backups(&harness)), (2, edited, 2));
    harness.assert_consistent().await;
}

#[tokio::test]
async fn text_that_differs_from_the_definition_is_replaced() {
    let harness = Harness::sqlite().await;
    let tool = harness.store.catalog().create_tool(new(YAML, FileForm::Yaml)).await.unwrap();
    // Another form.
    let json = "{\n\"name\": \"weather\", \"implementation\": {\"type\": \"exec\", \"command\": \"ls\"}\n}";
    let tool = harness.store.catalog().update_tool(tool.id, change(json, FileForm::Json)).await.unwrap();
    assert!(file(&harness, &tool).contains("command: ls"), "{}", file(&harness, &tool));
    // A text that differs from the definition, such as a mask.
    let text = YAML.replace("'one'", "\"***\"");
    let masked = ToolChange { spec: spec("weather", "three"), ..change(&text, FileForm::Yaml) };
    let tool = harness.store.catalog().update_tool(tool.id, masked).await.unwrap();
    assert!(file(&harness, &tool).contains("description: three"), "{}", file(&harness, &tool));
    // A text with another value of `enabled`.
    let on = format!("{YAML}enabled: true\n");
    let off = ToolChange { enabled: Some(false), ..change(&on, FileForm::Yaml) };
    let tool = harness.store.catalog().update_tool(tool.id, off).await.unwrap();
    assert!(
        !tool.enabled && file(&harness, &tool).ends_with("enabled: false\n"),
        "{}",
        file(&harness, &tool)
    );
    harness.assert_consistent().await;
}

#[tokio::test]
async fn missing_fields_come_from_the_file_name() {
    let harness = Harness::sqlite().await;
    let second = |text: &str, form| {
        let mut new = new(text, form);
        new.spec.version = Version::new("2.0.0").unwrap();
        new
    };
    // `weather.yaml` would be version 1.0.0.
    let tool = harness.store.catalog().create_tool(second(YAML, FileForm::Yaml)).await.unwrap();
    assert!(file(&harness, &tool).contains("version: "), "{}", file(&harness, &tool));
    let json = "{\"name\": \"climate\",\n\"implementation\": {\"type\": \"exec\", \"command\": \"ls\"}}";
    let tool = harness.store.catalog().create_tool(second(json, FileForm::Json)).await.unwrap();
    assert_eq!(file(&harness, &tool), json);
    harness.assert_consistent().await;
}

#[tokio::test]
async fn relabelling_keeps_the_text() {
    for (form, text, expected) in [
        (FileForm::Yaml, YAML.to_owned(), YAML.replace("weather\n", "weather\nversion: \"1.1.0\"\n")),
        (
            FileForm::Yaml,
            YAML.replace("weather\n", "weather\nversion: 1.0.0 # first\n"),
            YAML.replace("weather\n", "weather\nversion: 1.1.0 # first\n"),
        ),
        (
            FileForm::Json,
            "{ \"name\": \"weather\",\n \"implementation\": {\"type\":\"exec\",\n\"command\": \"ls\"}}"
                .to_owned(),
            // Named after its version.
            "{ \"name\": \"weather\",\n \"implementation\": {\"type\":\"exec\",\n\"command\": \"ls\"}}"
                .to_owned(),
        ),
    ] {
        let harness = Harness::sqlite().await;
        let tool = harness.store.catalog().create_tool(new(&text, form)).await.unwrap();
        let step = Transition::Relabel(Version::new("1.1.0").unwrap());
        let tool = harness.store.catalog().transition(tool.id, step).await.unwrap();
        assert_eq!((tool.revision, tool.spec.version.as_str()), (2, "1.1.0"));
        assert_eq!(file(&harness, &tool), expected);
        harness.assert_consistent().await;
        assert_eq!(harness.store.catalog().reindex().await.unwrap().changed, 0);
    }
}

#[tokio::test]
async fn an_unreadable_file_can_be_replaced_by_a_definition() {
    let harness = Harness::sqlite().await;
    harness.write("skills/web/weather@3.0.0.yaml", "name: [");
    harness.store.catalog().reindex().await.unwrap();
    let path = "skills/web/weather@3.0.0.yaml".to_owned();
    let announced = harness.sink.announced();
    let mut update = change(YAML, FileForm::Yaml);
    update.spec.version = Version::new("3.0.0").unwrap();
    let tool = harness.store.catalog().mend_file(path.clone(), update.clone()).await.unwrap();
    assert_eq!(
        (tool.path.as_deref(), tool.qualified().as_str(), file(&harness, &tool).as_str()),
        (Some(path.as_str()), "web:weather@3.0.0", YAML)
    );
    assert_eq!(
        (harness.mirror().unreadable.len(), harness.sink.announced() - announced, backups(&harness)),
        (0, 1, 1)
    );
    harness.assert_consistent().await;
    // The file is valid now, and no other file can be written this way.
    for path in [path, "skills/web/bundle.yaml".to_owned(), "../haft.toml".to_owned()] {
        let error = harness.store.catalog().mend_file(path.clone(), update.clone()).await.unwrap_err();
        assert_eq!(error.to_string(), format!("unreadable file `{path}` not found"));
    }
    // A second file of the same tool stays unchanged.
    harness.write("skills/web/other.yaml", "name: [");
    harness.store.catalog().reindex().await.unwrap();
    let taken = harness.store.catalog().mend_file("skills/web/other.yaml".to_owned(), update).await;
    assert!(matches!(taken, Err(StoreError::Conflict(_))), "{taken:?}");
    assert_eq!(fs::read_to_string(harness.path("skills/web/other.yaml")).unwrap(), "name: [");
    harness.assert_consistent().await;
}
