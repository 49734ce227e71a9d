//! The files, network and environment granted to a guest.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use haft_core::executor::CallContext;
use haft_core::implementation::{FileAccess, Wasm};
use haft_core::name::TenantId;
use haft_core::outcome::{CallError, ErrorCode};
use haft_core::problem::{Problem, excerpt};
use haft_core::secret::Secret;
use haft_core::spec::ToolSpec;
use haft_template::{EscapeContext, Notation, Scope, Template, Values};
use serde_json::{Map, Value};
use wasmtime_wasi::FsPerms;

use crate::settings::{TenantFolders, WasmFolder, WasmNetwork, WasmSettings};

/// The size limit of a variable, as for processes.
const MAX_VARIABLE_BYTES: usize = 128 * 1024;

/// The code of the problem of a folder that does not exist.
const UNKNOWN_ROOT: &str = "unknown_root";

/// The name by which tools use the workspace of a call.
const WORKSPACE: &str = "workspace";

/// What is granted to the guests of one tool.
#[derive(Default)]
pub(crate) struct Grants {
    env: Vec<(String, Template)>,
    version: String,
    files: Vec<(String, FileAccess)>,
    folders: Vec<WasmFolder>,
    tenants: Option<Arc<dyn TenantFolders>>,
    pub(crate) network: Option<WasmNetwork>,
}

/// A folder of a guest.
pub(crate) struct Folder {
    pub(crate) root: WasmFolder,
    /// Its path in the guest.
    pub(crate) guest_path: String,
    pub(crate) access: FsPerms,
}

impl Grants {
    /// Checks the requests of a definition against the settings.
    pub(crate) fn new(wasm: &Wasm, spec: &ToolSpec, settings: &WasmSettings) -> Result<Self, Vec<Problem>> {
        let (mut grants, mut problems) = (Self::default(), Vec::new());
        let scope = Scope::from_schema(&spec.input_schema.value());
        for (name, text) in &wasm.env {
            match Template::parse(Notation::Braces, text, &scope) {
                Ok(template) => grants.env.push((name.clone(), template)),
                Err(error) => problems.push(error.to_problem(format!("implementation.env.{name}"))),
            }
        }
        let of_default = settings.tenants.as_ref();
        let of_default = of_default.map(|tenants| tenants.folders(&TenantId::default_tenant()));
        let known = of_default.as_ref().unwrap_or(&settings.folders);
        for (name, access) in &wasm.files {
            let is_of_tenant = settings.tenants.as_ref().is_some_and(|tenants| tenants.contains(name));
            match folder(name, *access, known) {
                Err(problem) if !is_of_tenant || problem.code != UNKNOWN_ROOT => problems.push(problem),
                // Checked again in each call, with the folders of its tenant.
                _ => grants.files.push((name.clone(), *access)),
            }
        }
        grants.folders.clone_from(&settings.folders);
        grants.tenants.clone_from(&settings.tenants);
        if spec.network {
            grants.network.clone_from(&settings.network);
            if grants.network.is_none() {
                let message = "network access is unavailable for `wasm` tools in this program; remove it";
                problems.push(Problem::new("network", "unsupported", message));
            }
        }
        spec.version.as_str().clone_into(&mut grants.version);
        if problems.is_empty() { Ok(grants) } else { Err(problems) }
    }

    /// Returns whether a guest has files or network.
    pub(crate) fn has_io(&self) -> bool {
        self.network.is_some() || !self.files.is_empty()
    }

    /// Returns whether the guests use the workspace of a call.
    pub(crate) fn uses_workspace(&self) -> bool {
        self.files.iter().any(|(name, _)| name == WORKSPACE)
    }

    /// Returns the folders of a call.
    pub(crate) fn folders(&self, call: &CallContext) -> Result<Vec<Folder>, CallError> {
        let of_tenant = self.tenants.as_ref().map(|tenants| tenants.folders(call.tenant()));
        let mut known = of_tenant.unwrap_or_else(|| self.folders.clone());
        if let Some(workspace) = &call.workspace {
            known.retain(|root| root.name != WORKSPACE);
            known.push(WasmFolder {
                name: WORKSPACE.to_owned(),
                path: workspace.path.clone(),
                read_only: workspace.read_only,
                make: false,
            });
        }
        let folders = self.files.iter().map(|(name, access)| folder(name, *access, &known));
        folders.collect::<Result<_, _>>().map_err(|problem| {
            CallError::new(ErrorCode::NotReady, problem.to_string()).for_model("this tool is unavailable")
        })
    }

    /// Renders the environment of a call.
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
        let rendered = self.env.iter().map(|(name, template)| {
            let value = template.render(EscapeContext::Text, &values)?.text;
            variable(name, value)
        });
        rendered.collect()
    }
}

fn variable(name: &str, value: String) -> Result<(String, String), CallError> {
    if value.contains('\0') {
        let message = format!("variable `{name}` contains a NUL character");
        return Err(CallError::new(ErrorCode::InvalidArguments, message));
    }
    if name.len() + value.len() >= MAX_VARIABLE_BYTES {
        let message = format!("variable `{name}` exceeds the limit of 128 KiB");
        return Err(CallError::new(ErrorCode::TooLarge, message));
    }
    Ok((name.to_owned(), value))
}

fn folder(name: &str, access: FileAccess, known: &[WasmFolder]) -> Result<Folder, Problem> {
    let field = || format!("implementation.files.{}", excerpt(name, 64));
    let Some(root) = known.iter().find(|root| root.name == name) else {
        let names: Vec<String> = known.iter().map(|root| format!("`{}`", root.name)).collect();
        let configured = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        let message = format!("not configured in `files.sandboxes`; configured: {configured}");
        return Err(Problem::new(field(), UNKNOWN_ROOT, message));
    };
    if access == FileAccess::Write && root.read_only {
        let message = "the folder is read-only; use `read`";
        return Err(Problem::new(field(), "read_only_root", message));
    }
    let access = match access {
        FileAccess::Read => FsPerms::ReadOnly,
        FileAccess::Write => FsPerms::ReadWrite,
    };
    Ok(Folder { root: root.clone(), guest_path: format!("/{name}"), access })
}

/// What is granted to a guest in one call.
pub(crate) struct CallGrants {
    pub(crate) tool: Arc<Grants>,
    pub(crate) folders: Vec<Folder>,
    pub(crate) env: Vec<(String, String)>,
}
