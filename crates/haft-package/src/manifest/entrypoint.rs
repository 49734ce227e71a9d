//! Finds the function of a Python tool in its package.

use haft_core::problem::{Problem, excerpt, nearest};

use crate::files::PackageFiles;
use crate::path::PackagePath;
use crate::python_source::{Defined, defines};

/// The folder that modules may be relative to, besides the root of the package.
const TOOLS: &str = "tools";

/// The field of an entrypoint in a definition.
pub(super) const FIELD: &str = "implementation.entrypoint";

/// Checks that a package contains the function `module:function`; returns the entrypoint relative to the root of the
/// package.
pub(super) fn resolve(entrypoint: &str, files: &PackageFiles) -> Result<String, Problem> {
    let is_dotted = |text: &str| text.split('.').all(is_identifier);
    let (module, function) = entrypoint
        .split_once(':')
        .filter(|(module, function)| is_dotted(module) && is_dotted(function))
        .ok_or_else(|| {
            let shown = excerpt(entrypoint, 60);
            problem(
                "invalid_entrypoint",
                format!(
                    "invalid entrypoint `{shown}`; expected `module:function`, such as `tools.search:run`"
                ),
            )
        })?;
    let (module, file) = find(module, files).ok_or_else(|| missing_module(module, files))?;
    let Some(source) = files.text(&file) else {
        return Ok(format!("{module}:{function}"));
    };
    let name = function.split('.').next().unwrap_or(function);
    match defines(source, name) {
        Defined::Yes | Defined::Unknown => Ok(format!("{module}:{function}")),
        Defined::No => {
            let message = format!(
                "`{file}` has no function `{name}` at its top level; add it, or correct the entrypoint"
            );
            Err(problem("missing_function", message))
        }
        Defined::NotCallable => {
            let message = format!("`{name}` in `{file}` is a value, not a function");
            Err(problem("not_callable", message))
        }
    }
}

/// Returns the module relative to the root, and its file.
fn find(module: &str, files: &PackageFiles) -> Option<(String, String)> {
    [module.to_owned(), format!("{TOOLS}.{module}")].into_iter().find_map(|module| {
        let path = module.replace('.', "/");
        let file = [format!("{path}.py"), format!("{path}/__init__.py")];
        file.into_iter().find(|file| files.has(file)).map(|file| (module, file))
    })
}

fn missing_module(module: &str, files: &PackageFiles) -> Problem {
    let path = module.replace('.', "/");
    let sources = files.iter().map(|(path, _)| path).filter(|path| path.extension() == "py");
    let sources = sources.map(PackagePath::as_str);
    let similar = nearest(&format!("{path}.py"), sources)
        .map(|path| format!("; did you mean `{}`?", path.trim_end_matches(".py").replace('/', ".")))
        .unwrap_or_default();
    let shown = excerpt(&path, 80);
    let in_tools = module.split('.').next() == Some(TOOLS);
    let message = if in_tools {
        format!("`{shown}.py` is not in the package{similar}")
    } else {
        format!("neither `{shown}.py` nor `{TOOLS}/{shown}.py` is in the package{similar}")
    };
    problem("missing_module", message)
}

fn problem(code: &str, message: String) -> Problem {
    Problem::new(FIELD, code, message)
}

fn is_identifier(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next().is_some_and(|first| first.is_alphabetic() || first == '_')
        && chars.all(|letter| letter.is_alphanumeric() || letter == '_')
}
