//! Helpers shared by the tests.

use std::path::Path;

use haft::{ToolDef, Tools};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Greet {
    /// The person to greet
    pub(crate) name: String,
}

pub(crate) fn greet() -> ToolDef {
    ToolDef::new("greet", |args: Greet| async move { format!("Hello, {}!", args.name) })
        .description("Greets someone by name.")
}

/// Returns a set with tools of these names, each of which returns its name.
pub(crate) fn named(names: &[&'static str]) -> Tools {
    let tools = Tools::new();
    for &name in names {
        tools.register(ToolDef::new(name, move |_: Value| async move { name })).unwrap();
    }
    tools
}

/// Writes a file and creates its parent folders.
pub(crate) fn write(folder: &Path, file: &str, text: &str) {
    let path = folder.join(file);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// Returns a definition that runs a function of the program.
pub(crate) fn of_function(name: &str, function: &str) -> String {
    format!(
        "name: {name}\ndescription: Says something\nparams: []\nimplementation: {{type: builtin, function: {function}}}\n"
    )
}
