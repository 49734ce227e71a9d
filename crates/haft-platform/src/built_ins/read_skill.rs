//! The function of the tools that come with Agent Skills: returns the instructions of a skill, or one of its files.

use std::sync::Arc;

use haft_builtins::BuiltIn;
use haft_core::executor::CallContext;
use haft_core::outcome::{CallError, ErrorCode, Outcome};
use haft_core::problem::{Problem, excerpt};
use haft_core::toolset::PACKAGE_SETTING;
use haft_mcp::server::PackageSource as _;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::mcp_resources::McpPackages;

/// The largest file that is returned to a model, in bytes.
const MAX_FILE: u64 = 256 << 10;
/// How many names of files are returned.
const MAX_NAMES: usize = 500;

/// Reads the skill of one package.
pub(super) struct ReadSkill {
    packages: Arc<McpPackages>,
    package: Option<String>,
}

impl ReadSkill {
    pub(super) fn new(packages: Arc<McpPackages>) -> Self {
        Self { packages, package: None }
    }
}

#[derive(Deserialize)]
pub(super) struct Args {
    file: Option<String>,
}

impl BuiltIn for ReadSkill {
    type Args = Args;

    async fn call(&self, call: &CallContext, args: Args) -> Outcome {
        let failed = |message: String| CallError::new(ErrorCode::ExecutionFailed, message);
        let gone = || failed("the skill is not installed any more".to_owned());
        let packages = &self.packages;
        let package = self.package.as_deref().ok_or_else(gone)?;
        let skill = packages.skill(call.tenant(), package).await?.ok_or_else(gone)?;
        let Some(path) = args.file else {
            let others = skill.files.iter().map(|file| file.path.as_str()).filter(|path| *path != "SKILL.md");
            let files: Vec<&str> = others.take(MAX_NAMES).collect();
            return Ok(json!({"skill": skill.name, "instructions": skill.instructions, "files": files}));
        };
        let shown = excerpt(&path, 200);
        let wanted = path.strip_prefix("./").unwrap_or(&path);
        let Some(file) = skill.files.iter().find(|file| file.path == wanted) else {
            return Err(CallError::new(
                ErrorCode::NotFound,
                format!(
                    "the skill has no file `{shown}`; call the tool without `file` for the names of its files"
                ),
            ));
        };
        if file.size > MAX_FILE {
            let (size, limit) = (file.size, MAX_FILE >> 10);
            return Err(failed(format!("`{shown}` has {size} bytes; files up to {limit} KiB can be read")));
        }
        let bytes = packages.file(call.tenant(), package, wanted).await?.ok_or_else(gone)?;
        let text = String::from_utf8(bytes)
            .map_err(|_| failed(format!("`{shown}` is not a text; a script of the skill can use it")))?;
        Ok(json!({"skill": skill.name, "file": wanted, "content": text}))
    }

    fn with_config(&self, config: &Map<String, Value>) -> Option<Result<Self, Problem>> {
        let invalid =
            |message: &str| Err(Problem::new("implementation.config", "invalid_config", message.to_owned()));
        if config.keys().any(|key| key != PACKAGE_SETTING) {
            return Some(invalid("expected only `package`, which the installation of a skill sets"));
        }
        Some(match config.get(PACKAGE_SETTING).and_then(Value::as_str) {
            Some(package) => {
                Ok(Self { packages: Arc::clone(&self.packages), package: Some(package.to_owned()) })
            }
            None => invalid("`package` must be the hash of a package"),
        })
    }
}
