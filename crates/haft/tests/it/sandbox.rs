//! Folders for file tools.

use haft::{Context, FileForm, ToolDef, Tools};
use serde_json::{Value, json};

use crate::support::write;

const READ: &str = "name: read_file\ndescription: Reads\nparams: [{name: path, type: string, required: true}]\n\
                    implementation: {type: file_read, path: '{{path}}'}\n";

fn write_to(name: &str, root: &str) -> String {
    format!(
        "name: {name}\ndescription: Writes\nparams: [{{name: path, type: string, required: true}}, \
         {{name: content, type: string, required: true}}]\n\
         implementation: {{type: file_write, path: '{{{{path}}}}', content: '{{{{content}}}}', root: {root}, mkdir: true}}\n"
    )
}

#[tokio::test]
async fn paths_cannot_escape_the_sandbox() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "data/file.txt", "inside");
    std::os::unix::fs::symlink("/etc", folder.path().join("link")).unwrap();
    let tools = Tools::builder().sandbox(folder.path()).build().unwrap();
    tools.load_text(FileForm::Yaml, READ).unwrap();
    assert_eq!(tools.execute("read_file", json!({"path": "data/file.txt"})).await.unwrap(), "inside");
    for path in ["/etc/passwd", "../../../etc/passwd", "link/passwd", "data/../../x"] {
        let error = tools.execute("read_file", json!({"path": path})).await.unwrap_err();
        let text = error.model_text();
        assert!(text.starts_with("Tool call failed: path escapes sandbox"), "{path}: {text}");
        assert_eq!(error.code, haft::ErrorCode::PathEscapes);
    }
}

#[tokio::test]
async fn several_sandboxes_and_one_of_them_read_only() {
    let folder = tempfile::tempdir().unwrap();
    let paths = ["workspace", "outputs", "readonly"].map(|name| (name, folder.path().join(name)));
    for (_, path) in &paths {
        std::fs::create_dir(path).unwrap();
    }
    let tools = Tools::builder().sandboxes(paths).read_only("readonly").build().unwrap();
    tools.load_text(FileForm::Yaml, &write_to("save", "outputs")).unwrap();
    tools.load_text(FileForm::Yaml, &write_to("spoil", "readonly")).unwrap();
    tools.load_text(FileForm::Yaml, &write_to("lost", "nowhere")).unwrap();
    tools.execute("save", json!({"path": "a/b.txt", "content": "x"})).await.unwrap();
    assert_eq!(std::fs::read_to_string(folder.path().join("outputs/a/b.txt")).unwrap(), "x");
    let not_ready: Vec<String> = tools.not_ready().iter().map(ToString::to_string).collect();
    assert_eq!(
        not_ready,
        [
            "`lost` is not ready: `implementation.root`: unknown sandbox `nowhere`; available: `workspace`, \
             `outputs`, `readonly`",
            "`spoil` is not ready: `implementation.root`: sandbox `readonly` is read-only",
        ]
    );
}

#[tokio::test]
async fn without_a_sandbox_file_tools_are_not_ready() {
    let tools = Tools::new();
    tools.load_text(FileForm::Yaml, READ).unwrap();
    assert_eq!(
        tools.not_ready().remove(0).reason,
        "`implementation.type`: file tools need a sandbox folder; set it with `Tools::builder().sandbox(path)`"
    );
}

#[tokio::test]
async fn a_function_sees_the_workspace() {
    let folder = tempfile::tempdir().unwrap();
    let tools = Tools::builder()
        .sandbox(folder.path())
        .tool(ToolDef::with_context("where", |context: Context, _: Value| async move {
            context.workspace.map(|workspace| workspace.path.to_string_lossy().into_owned())
        }))
        .build()
        .unwrap();
    let path = folder.path().canonicalize().unwrap();
    assert_eq!(tools.execute("where", ()).await.unwrap(), path.to_str().unwrap());
}
