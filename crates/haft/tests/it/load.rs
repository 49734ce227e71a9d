//! Loading folders of definitions.

use std::path::Path;

use haft::{ErrorCode, LoadReport, Tools};

use crate::support::{greet, of_function, write};

fn tools() -> Tools {
    let tools = Tools::new();
    tools.register_function(haft::ToolDef::new("work", |_: serde_json::Value| async { "done" })).unwrap();
    tools
}

/// Returns the errors, with paths relative to the folder.
fn errors(report: &LoadReport, folder: &Path) -> Vec<String> {
    let folder = format!("{}", folder.canonicalize().unwrap().display());
    report
        .failed
        .iter()
        .map(|error| error.to_string().replace(&format!("{folder}/"), "").replace(&folder, ""))
        .collect()
}

#[tokio::test]
async fn valid_files_load_and_errors_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    write(at, "good.yaml", &of_function("good", "work"));
    write(at, "deep/er/also_good.yml", &of_function("also_good", "work"));
    write(at, "waits.yaml", &of_function("waits", "nobody"));
    write(at, "a.skill", "---\nname: scripted\ndescription: x\nruntime: bash\n---\necho 1\n");
    write(
        at,
        "named.json",
        r#"{"description": "x", "implementation": {"type": "function", "function": "work"}}"#,
    );
    write(at, "tabs.yaml", "name: tabs\n\tdescription: x\n");
    write(at, "twice.yaml", "name: twice\nname: again\n");
    write(at, "types.yaml", "name: types\ndescription: x\nparams: 7\nimplementation: {type: http, url: 1}\n");
    write(
        at,
        "never.yaml",
        "name: never\ndescription: x\nparams: []\nexecution:\n  max_concurrency: 0\nimplementation: {type: http, url: https://a.example}\n",
    );
    write(at, "zz.yaml", &of_function("good", "work"));
    write(at, "million.yaml", &"x\n".repeat(1_000_000));
    write(at, "latin.yaml", "name: x\n");
    std::fs::write(at.join("latin.yaml"), b"name: x\n# \xff\n").unwrap();
    for ignored in ["README.md", ".hidden.yaml", "good.yaml~", "bundle.yaml", "toolset.yaml"] {
        write(at, ignored, "x");
    }
    let tools = tools();
    let report = tools.load_directory(at).unwrap();
    assert_eq!(report.loaded, ["scripted", "also_good", "good", "named", "waits"]);
    insta::assert_snapshot!(errors(&report, at).join("\n"));
    assert_eq!(report.not_ready.len(), 1);
    assert!(!report.is_clean());
    assert_eq!(tools.names(), ["also_good", "good", "named", "scripted", "waits"]);
    for name in ["good", "also_good", "named"] {
        assert_eq!(tools.execute(name, ()).await.unwrap(), "done", "{name}");
    }
    let error = tools.execute("tabs", ()).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::NotReady);
    assert_eq!(error.model_text(), "Tool call failed: `tabs` is not ready");
}

#[tokio::test]
async fn a_loop_of_links_is_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    write(at, "sub/good.yaml", &of_function("good", "work"));
    let link = |target: &str, name: &str| std::os::unix::fs::symlink(target, at.join(name)).unwrap();
    link("..", "sub/loop");
    link("../sub", "sub/self");
    link("a.yaml", "b.yaml");
    link("b.yaml", "a.yaml");
    link("sub/good.yaml", "same.yaml");
    link("/etc/hostname", "out.yaml");
    write(at, ".data/mounted.yaml", &of_function("mounted", "work"));
    link(".data/mounted.yaml", "mounted.yaml");
    let tools = tools();
    let report = tools.load_directory(at).unwrap();
    assert_eq!(report.loaded, ["mounted", "good"]);
    // Different paths of one file load the same tool.
    for (path, name) in [("same.yaml", "good"), ("sub/good.yaml", "good"), ("mounted.yaml", "mounted")] {
        assert_eq!(tools.load_file(at.join(path)).unwrap().name, name, "{path}");
    }
    let mut errors = errors(&report, at);
    errors.sort();
    insta::assert_snapshot!(errors.join("\n"));
}

#[test]
fn folders_that_are_too_deep_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let deep = "d/".repeat(20);
    write(folder.path(), &format!("{deep}x.yaml"), &of_function("x", "work"));
    let report = tools().load_directory(folder.path()).unwrap();
    assert_eq!(report.loaded, Vec::<String>::new());
    assert!(
        report.failed[0].to_string().ends_with("the folder is nested more than 16 levels deep; move it up")
    );
}

#[tokio::test]
async fn loading_again_brings_the_set_up_to_date() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    write(at, "a.yaml", &of_function("one", "work"));
    write(at, "b.yaml", &of_function("two", "work"));
    write(at, "c.yaml", &of_function("one", "work"));
    let tools = tools();
    let report = tools.load_directory(at).unwrap();
    assert_eq!(report.loaded, ["one", "two"]);
    assert_eq!(report.failed.len(), 1);

    // Nothing changed: no file is read again, and errors are reported again.
    let report = tools.load_directory(at).unwrap();
    assert_eq!((report.loaded.len(), report.failed.len()), (0, 1));

    std::fs::remove_file(at.join("a.yaml")).unwrap();
    write(at, "b.yaml", &of_function("three", "work"));
    let report = tools.load_directory(at).unwrap();
    assert_eq!((report.loaded, report.failed), (vec!["three".to_owned(), "one".to_owned()], vec![]));
    assert_eq!(tools.names(), ["one", "three"]);

    write(at, "b.yaml", "name: three\n");
    tools.load_directory(at).unwrap();
    assert_eq!(tools.names(), ["one", "three"]);
    let error = tools.execute("three", ()).await.unwrap_err();
    assert_eq!((error.code, tools.is_ready("three")), (ErrorCode::NotReady, false));
    assert_eq!(tools.not_ready().len(), 1);
    write(at, "b.yaml", &of_function("three", "work"));
    tools.load_directory(at).unwrap();
    assert_eq!(tools.execute("three", ()).await.unwrap(), "done");
    assert_eq!(tools.not_ready(), []);
}

#[test]
fn one_file_is_loaded_by_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    write(at, "a.yaml", &of_function("one", "work"));
    write(at, "x.txt", "x");
    write(at, "greet.yaml", &of_function("greet", "work"));
    let tools = tools();
    tools.register(greet()).unwrap();
    assert_eq!(tools.load_file(at.join("a.yaml")).unwrap().name, "one");
    assert_eq!(tools.load_file(at.join("a.yaml")).unwrap().name, "one");
    let error = |file: &str| tools.load_file(at.join(file)).unwrap_err().problems[0].to_string();
    assert_eq!(error("x.txt"), "unknown file type; expected `.skill`, `.yaml`, `.yml` or `.json`");
    assert_eq!(error("none.yaml"), "cannot read the file: No such file or directory (os error 2)");
    assert_eq!(
        error("greet.yaml"),
        "`name`: the name `greet` is already used by a function of the program; choose another"
    );
    let error = tools.load_directory(at.join("none")).unwrap_err();
    assert!(
        error.to_string().ends_with("none: cannot open the folder: No such file or directory (os error 2)")
    );
    let error = tools.load_directory(at.join("a.yaml")).unwrap_err();
    assert!(error.to_string().ends_with("not a folder; load it as a file"));
}

#[test]
fn a_single_definition_is_reported_like_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let text = of_function("say", "missing") + "colour: red\n";
    write(folder.path(), "say.yaml", &text);
    let describe = |loaded: haft::Loaded| {
        let warnings: Vec<String> = loaded.warnings.iter().map(ToString::to_string).collect();
        let not_ready = loaded.not_ready.map(|not_ready| not_ready.reason).unwrap_or_default();
        format!("{}: {}; {not_ready}", loaded.name, warnings.join("; "))
    };
    let of_file = describe(Tools::new().load_file(folder.path().join("say.yaml")).unwrap());
    insta::assert_snapshot!(of_file, @"say: line 5, column 1: `colour`: unknown field, ignored; line 4, column 33: `implementation.function`: function `missing` is not registered in this program");
    let of_text = describe(Tools::new().load_text(haft::FileForm::Yaml, &text).unwrap());
    assert_eq!(of_text, of_file);
    let report = Tools::new().load_directory(folder.path()).unwrap();
    let path = folder.path().canonicalize().unwrap().join("say.yaml").display().to_string();
    insta::assert_snapshot!(report.not_ready[0].to_string().replace(&path, "FILE"), @"`say` is not ready: FILE: line 4, column 33: `implementation.function`: function `missing` is not registered in this program");
    insta::assert_snapshot!(report.warnings[0].to_string().replace(&path, "FILE"), @"FILE: line 5, column 1: `colour`: unknown field, ignored");
}
