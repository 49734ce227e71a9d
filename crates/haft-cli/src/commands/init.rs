//! `haft init`: creates a home folder with a sample configuration and an example tool.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

use serde_json::{Value, json};

use crate::config;
use crate::context::Context;
use crate::error::CliError;

/// The example tool, which needs no key and no account.
const EXAMPLE: &str = include_str!("example.yaml");
/// The path of the example tool in the home folder.
const EXAMPLE_PATH: &str = "skills/examples/current-weather.yaml";

/// Runs the command.
pub(crate) fn run(context: &Context) -> Result<(), CliError> {
    let home = context.home()?;
    let mut files = Vec::new();
    for path in [home.clone(), home.join("skills"), home.join("skills/examples")] {
        let new =
            create_folder(&path).map_err(CliError::io(format!("create the folder `{}`", path.display())))?;
        files.push((path, new));
    }
    for (name, content) in [("haft.toml", config::sample().as_str()), (EXAMPLE_PATH, EXAMPLE)] {
        let path = home.join(name);
        let new = write_new(&path, content).map_err(CliError::io(format!("write `{}`", path.display())))?;
        files.push((path, new));
    }
    let state = |new: bool| if new { "created" } else { "kept" };
    let shown: Vec<Value> =
        files.iter().map(|(path, new)| json!({"path": path, "state": state(*new)})).collect();
    context.output.data(&json!({"home": home, "files": shown}), |output| {
        let rows = files.iter().map(|(path, new)| vec![state(*new).to_owned(), path.display().to_string()]);
        output.table(&["STATE", "PATH"], rows.collect())?;
        output.note("\nnext: start the server with `haft serve`, or list the tools with `haft tool list`");
        Ok(())
    })
}

/// Creates a folder that only its owner can access, and missing parents.
fn create_folder(path: &Path) -> std::io::Result<bool> {
    if path.is_dir() {
        return Ok(false);
    }
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path).map(|()| true)
}

/// Writes a file unless it exists.
fn write_new(path: &Path, content: &str) -> std::io::Result<bool> {
    match fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(mut file) => file.write_all(content.as_bytes()).map(|()| true),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use haft_core::catalog::FileForm;
    use haft_definition::dialect::{Defaults, read};

    #[test]
    fn the_example_has_no_warnings() {
        let parsed = read(super::EXAMPLE, FileForm::Yaml, &Defaults::default()).unwrap();
        assert_eq!((parsed.spec.name.as_str(), parsed.warnings), ("current-weather", Vec::new()));
    }
}
