//! What a definition asks for, and what of it a guest is given.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use haft_core::executor::CallContext;
use haft_core::implementation::{FileAccess, Wasm};
use haft_core::outcome::{CallError, ErrorCode};
use haft_core::problem::{Problem, excerpt};
use haft_core::secret::Secret;
use haft_core::spec::ToolSpec;
use haft_template::{EscapeContext, Notation, Scope, Template, Values};
use serde_json::{Map, Value};
use wasmtime_wasi::FsPerms;

use crate::settings::{WasmFolder, WasmNetwork, WasmSettings};

/// The most bytes of one variable, as processes have it.
const MAX_LENGTH: usize = 128 * 1024;

/// What the guests of one tool may do besides computing.
#[derive(Default)]
pub(crate) struct Granted {
    env: Vec<(String, Template)>,
    version: String,
    pub(crate) folders: Vec<Folder>,
    pub(crate) network: Option<WasmNetwork>,
}

/// A folder that a guest sees.
pub(crate) struct Folder {
    pub(crate) root: WasmFolder,
    /// Where the guest finds it.
    pub(crate) seen_at: String,
    pub(crate) access: FsPerms,
}

impl Granted {
    /// Looks whether a definition asks for what there is.
    pub(crate) fn new(wasm: &Wasm, spec: &ToolSpec, settings: &WasmSettings) -> Result<Self, Vec<Problem>> {
        let (mut granted, mut problems) = (Self::default(), Vec::new());
        let scope = Scope::from_schema(&spec.input_schema);
        for (name, text) in &wasm.env {
            match Template::parse(Notation::Braces, text, &scope) {
                Ok(template) => granted.env.push((name.clone(), template)),
                Err(error) => problems.push(error.to_problem(format!("implementation.env.{name}"))),
            }
        }
        for (name, access) in &wasm.files {
            match folder(name, *access, &settings.folders) {
                Ok(folder) => granted.folders.push(folder),
                Err(problem) => problems.push(problem),
            }
        }
        if spec.network {
            granted.network.clone_from(&settings.network);
            if granted.network.is_none() {
                let message = "there is no network for `wasm` tools in this program; remove it";
                problems.push(Problem::new("network", "unsupported", message));
            }
        }
        spec.version.as_str().clone_into(&mut granted.version);
        if problems.is_empty() { Ok(granted) } else { Err(problems) }
    }

    /// Tells whether a guest can wait for something outside of it.
    pub(crate) fn reaches_out(&self) -> bool {
        self.network.is_some() || !self.folders.is_empty()
    }

    /// Fills in the environment of a call.
    pub(crate) async fn environment(
        &self,
        call: &CallContext,
        args: &Map<String, Value>,
    ) -> Result<Vec<(String, String)>, CallError> {
        if self.env.is_empty() {
            return Ok(Vec::new());
        }
        let names: BTreeSet<&str> = self.env.iter().flat_map(|(_, template)| template.secrets()).collect();
        let mut secrets: BTreeMap<&str, Secret> = BTreeMap::new();
        for name in names {
            if let Some(secret) = call.secret(name).await? {
                secrets.insert(name, secret);
            }
        }
        let values = Values { args, steps: &Map::new(), secrets: &secrets, version: &self.version };
        let filled = self.env.iter().map(|(name, template)| {
            let value = template.render(EscapeContext::Text, &values)?.text;
            variable(name, value)
        });
        filled.collect()
    }
}

fn variable(name: &str, value: String) -> Result<(String, String), CallError> {
    if value.contains('\0') {
        let message = format!("`{name}` contains a NUL character, which no variable can hold");
        return Err(CallError::new(ErrorCode::InvalidArguments, message));
    }
    if name.len() + value.len() >= MAX_LENGTH {
        let message = format!("`{name}` is longer than the 128 KiB that a variable can hold");
        return Err(CallError::new(ErrorCode::TooLarge, message));
    }
    Ok((name.to_owned(), value))
}

fn folder(name: &str, access: FileAccess, known: &[WasmFolder]) -> Result<Folder, Problem> {
    let field = || format!("implementation.files.{}", excerpt(name, 64));
    let Some(root) = known.iter().find(|root| root.name == name) else {
        let names: Vec<String> = known.iter().map(|root| format!("`{}`", root.name)).collect();
        let there_are = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        let message = format!(
            "no sandbox is called so in `files.sandboxes` of the configuration; there are {there_are}"
        );
        return Err(Problem::new(field(), "unknown_root", message));
    };
    if access == FileAccess::Write && root.read_only {
        let message = "the sandbox is read-only; write `read`";
        return Err(Problem::new(field(), "read_only_root", message));
    }
    let access = match access {
        FileAccess::Read => FsPerms::ReadOnly,
        FileAccess::Write => FsPerms::ReadWrite,
    };
    Ok(Folder { root: root.clone(), seen_at: format!("/{name}"), access })
}

/// What a guest is given in one call.
pub(crate) struct Given {
    pub(crate) granted: Arc<Granted>,
    pub(crate) env: Vec<(String, String)>,
}
