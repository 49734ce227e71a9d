//! The environment of a tool's process: a few fixed variables, the arguments, and the secrets that the tool names.

use std::ffi::OsString;
use std::path::Path;

use bytes::Bytes;
use haft_core::executor::CallContext;
use haft_core::outcome::{CallError, ErrorCode};
use haft_core::schema;
use haft_core::secret::ExternalReference;
use haft_core::spec::ToolSpec;
use haft_sandbox::{Bind, File, SandboxLayout};
use haft_template::{SecretName, reserved_variable};
use serde_json::{Map, Value};

/// The maximum size of one variable with its name, as Linux sets it.
const MAX_VARIABLE_BYTES: usize = 131_072;

/// The file with all arguments, whatever their size.
const ARGS_FILE: &str = "args.json";

/// The mount point of the workspace in an isolated sandbox.
const WORKSPACE: &str = "/workspace";

/// Returns how a process of the call gets its workspace, if it has one.
pub(crate) fn workspace_bind(call: &CallContext) -> Option<Bind> {
    call.workspace.as_deref().map(|workspace| {
        if workspace.read_only {
            Bind::read_only(&workspace.path, WORKSPACE)
        } else {
            Bind::writable(&workspace.path, WORKSPACE)
        }
    })
}

/// The variables of one process.
pub(crate) struct Environment {
    pub(crate) variables: Vec<(OsString, OsString)>,
    /// All arguments as JSON.
    pub(crate) args: String,
    /// Arguments that are too large for a variable, as text.
    pub(crate) large: Vec<(String, String)>,
}

impl Environment {
    /// Creates the environment that every process gets.
    pub(crate) fn new(path: &str, place: &SandboxLayout, call: &CallContext) -> Self {
        let mut environment =
            Self { variables: Vec::with_capacity(12), args: String::new(), large: Vec::new() };
        environment.set("PATH", path);
        environment.set("HOME", place.work());
        environment.set("TMPDIR", place.work());
        environment.set("LANG", "C.UTF-8");
        if let Some(bind) = workspace_bind(call) {
            environment.set("HAFT_WORKSPACE", place.seen_at(&bind));
        }
        environment
    }

    /// Sets a variable that haft defines.
    pub(crate) fn set(&mut self, name: impl Into<OsString>, value: impl AsRef<Path>) {
        let name = name.into();
        self.variables.retain(|(known, _)| *known != name);
        self.variables.push((name, value.as_ref().as_os_str().to_owned()));
    }

    /// Adds a variable that the tool defines.
    pub(crate) fn add(&mut self, name: &str, value: &str) -> Result<(), CallError> {
        reject_nul(name, value)?;
        if name.len() + value.len() + 1 >= MAX_VARIABLE_BYTES {
            let message = format!("`{name}` exceeds the limit of 128 KiB for an environment variable");
            return Err(CallError::new(ErrorCode::TooLarge, message));
        }
        self.variables.retain(|(known, _)| known != name);
        self.variables.push((name.into(), value.into()));
        Ok(())
    }

    /// Adds the declared arguments: each as a variable, unless its name would change how the interpreter runs, and
    /// all of them as JSON in `HAFT_ARGS` and in the file that `HAFT_ARGS_FILE` names. A tool that reads the file
    /// accepts arguments that are too large for a variable.
    pub(crate) fn add_arguments(
        &mut self,
        spec: &ToolSpec,
        args: &Map<String, Value>,
        place: &SandboxLayout,
        reads_file: bool,
    ) -> Result<File, CallError> {
        let declared = Value::Object(declared(spec, args));
        self.args = declared.to_string();
        check_size(spec, self.args.len())?;
        for (name, value) in declared.as_object().into_iter().flatten() {
            let text = text_of(value);
            reject_nul(name, &text)?;
            if reserved_variable(name) || value.is_null() {
                continue;
            }
            match self.add(name, &text) {
                Err(_) if reads_file => self.large.push((name.to_owned(), text)),
                Err(error) => {
                    let hint = format!("{}; read it from the file in HAFT_ARGS_FILE", error.message);
                    let shorter = format!("{}: shorten it", error.message);
                    return Err(CallError { message: hint, ..error }.for_model(shorter));
                }
                Ok(()) => {}
            }
        }
        let args = self.args.clone();
        if args.len() + 10 < MAX_VARIABLE_BYTES {
            self.set("HAFT_ARGS", args);
        } else {
            self.large.push(("HAFT_ARGS".to_owned(), args));
        }
        self.set("HAFT_ARGS_FILE", place.files().join(ARGS_FILE));
        Ok(File { name: ARGS_FILE, content: Bytes::from(self.args.clone()) })
    }

    /// Rejects arguments that are together too large for the variable `HAFT_ARGS`.
    pub(crate) fn require_args_variable(&self) -> Result<(), CallError> {
        if self.large.is_empty() {
            return Ok(());
        }
        let message = "the arguments exceed the limit of 128 KiB for an environment variable";
        let hint =
            format!("{message}, and the tool reads HAFT_ARGS; read the file in HAFT_ARGS_FILE instead");
        Err(CallError::new(ErrorCode::TooLarge, hint).for_model(format!("{message}: shorten them")))
    }

    /// Adds the secrets that a tool names; returns the names of those that do not exist. Those outside of haft have no name
    /// for a variable: templates read them.
    pub(crate) async fn add_secrets(
        &mut self,
        call: &CallContext,
        names: &[SecretName],
    ) -> Result<Vec<String>, CallError> {
        let mut missing = Vec::new();
        let stored = names.iter().filter(|secret| ExternalReference::parse(&secret.name).is_none());
        for SecretName { name, .. } in stored {
            match call.secret(name).await? {
                Some(secret) => self.add(name, secret.expose())?,
                None => missing.push(name.clone()),
            }
        }
        Ok(missing)
    }
}

/// Returns the declared arguments that have a value, from the call or from the schema's default.
pub(crate) fn declared(spec: &ToolSpec, args: &Map<String, Value>) -> Map<String, Value> {
    let schema = spec.input_schema.value();
    let declared = schema::declared_properties(&schema).into_iter();
    let with_value = declared.filter_map(|(name, schema)| {
        let value = args.get(name).or_else(|| schema.get("default"))?;
        Some((name.to_owned(), value.clone()))
    });
    with_value.collect()
}

/// Returns an argument as the value of a variable: a string as it is, everything else as JSON.
pub(crate) fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Converts variables to strings.
pub(crate) fn texts(variables: Vec<(OsString, OsString)>) -> Vec<(String, String)> {
    let text = |value: OsString| value.to_string_lossy().into_owned();
    variables.into_iter().map(|(name, value)| (text(name), text(value))).collect()
}

fn reject_nul(name: &str, value: &str) -> Result<(), CallError> {
    if value.contains('\0') {
        let message = format!("`{name}` contains a NUL character, which cannot be passed to a process");
        return Err(CallError::new(ErrorCode::InvalidArguments, message));
    }
    Ok(())
}

/// Returns the names of the required secrets.
pub(crate) fn required(secrets: &[SecretName]) -> impl Iterator<Item = &str> {
    secrets.iter().filter(|secret| secret.required).map(|secret| secret.name.as_str())
}

/// Rejects arguments that exceed `max_request_bytes`.
pub(crate) fn check_size(spec: &ToolSpec, bytes: usize) -> Result<(), CallError> {
    let max = spec.execution.limits.max_request_bytes;
    if bytes as u64 <= max {
        return Ok(());
    }
    let text = format!("the arguments have {bytes} bytes, which exceeds the limit of {max}");
    let hint = format!("{text}; raise `execution.limits.max_request_bytes`");
    Err(CallError::new(ErrorCode::TooLarge, hint).for_model(text))
}
