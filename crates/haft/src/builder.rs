//! [`Builder`]: configures a set of tools.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use haft_core::secret::{Secret, SecretSource};
use haft_core::workspace::WorkspaceFolder;
use haft_executors::egress::{EgressRules, RulesError, check_host};
use haft_executors::files::{Files, Root, RootsError};
use haft_runtime::clock::SystemClock;
use haft_runtime::limits::LimitSettings;
use haft_runtime::pipeline::{Pipeline, PipelineParts};
use haft_runtime::stages::Stage;

use crate::def::ToolDef;
use crate::error::BuildError;
use crate::resources::Resources;
use crate::secrets::Secrets;
use crate::set::ToolSet;
use crate::tools::Tools;

/// The default limit of concurrent calls.
const DEFAULT_MAX_RUNNING: usize = 10_000;

/// The name of the sandbox that [`Builder::sandbox`] adds.
const WORKSPACE: &str = "workspace";

/// Configures what tools may use. Created by [`Tools::builder`].
///
/// ```
/// use haft::Tools;
/// use serde_json::json;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path();
/// std::fs::write(path.join("note.txt"), "hello")?;
/// let tools = Tools::builder().sandbox(path).build()?;
/// tools.load_text(
///     haft::FileForm::Yaml,
///     "name: read_file\ndescription: Reads a file\nparams: [{name: path, type: string, required: true}]\n\
///      implementation: {type: file_read, path: '{{path}}'}\n",
/// )?;
/// assert_eq!(tools.execute("read_file", json!({"path": "note.txt"})).await?, "hello");
/// let error = tools.execute("read_file", json!({"path": "../../etc/passwd"})).await.unwrap_err();
/// assert!(error.model_text().starts_with("Tool call failed: path escapes sandbox"));
/// # Ok(())
/// # }
/// ```
#[must_use = "a builder does nothing until `build` is called"]
pub struct Builder {
    sandboxes: Vec<(String, PathBuf)>,
    read_only: Vec<String>,
    secrets: Secrets,
    egress: EgressRules,
    max_running: usize,
    max_value_bytes: u64,
    elevated: bool,
    layers: Vec<Arc<dyn Stage>>,
    tools: Vec<ToolDef>,
    #[cfg(feature = "builtins")]
    built_ins: bool,
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            sandboxes: Vec::new(),
            read_only: Vec::new(),
            secrets: Secrets::default(),
            egress: EgressRules::default(),
            max_running: DEFAULT_MAX_RUNNING,
            max_value_bytes: u64::MAX,
            elevated: true,
            layers: Vec::new(),
            tools: Vec::new(),
            #[cfg(feature = "builtins")]
            built_ins: false,
        }
    }
}

impl Builder {
    /// Confines file tools to this folder, which must exist. It is also the workspace in the
    /// [`Context`](crate::Context) of functions.
    pub fn sandbox(self, path: impl AsRef<Path>) -> Self {
        self.sandboxes([(WORKSPACE, path)])
    }

    /// Confines file tools to several named folders. The first one is the workspace and the default of definitions
    /// without `root:`.
    pub fn sandboxes<N, P>(mut self, folders: impl IntoIterator<Item = (N, P)>) -> Self
    where
        N: Into<String>,
        P: AsRef<Path>,
    {
        let folders = folders.into_iter().map(|(name, path)| (name.into(), path.as_ref().to_owned()));
        self.sandboxes.extend(folders);
        self
    }

    /// Makes the sandbox with this name read-only.
    pub fn read_only(mut self, name: impl Into<String>) -> Self {
        self.read_only.push(name.into());
        self
    }

    /// Sets a secret that definitions use as `${NAME}`. It is redacted from outcomes and errors.
    pub fn secret(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.secrets.values.insert(name.into(), Secret::new(value.into()));
        self
    }

    /// Adds a source of secrets, which is queried for names that [`Builder::secret`] has not set.
    pub fn secret_source(mut self, source: Arc<dyn SecretSource>) -> Self {
        self.secrets.sources.push(source);
        self
    }

    /// Allows definitions to read these environment variables; no others are ever read. They come after all other
    /// sources and are read at each call, so changes take effect.
    pub fn env<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.secrets.environment.extend(names.into_iter().map(Into::into));
        self
    }

    /// Restricts tools to these hosts (`api.example.com`, `*.example.com`). Default: every public host.
    pub fn allowed_hosts<H: Into<String>>(mut self, hosts: impl IntoIterator<Item = H>) -> Self {
        self.egress.allowed_hosts.extend(hosts.into_iter().map(Into::into));
        self
    }

    /// Allows tools to connect to these private or loopback hosts, addresses or networks (`127.0.0.1:8080`,
    /// `10.0.0.0/8`).
    pub fn private_hosts<H: Into<String>>(mut self, hosts: impl IntoIterator<Item = H>) -> Self {
        self.egress.private_hosts.extend(hosts.into_iter().map(Into::into));
        self
    }

    /// Limits the number of concurrent calls; further calls fail with `overloaded`. Default: 10,000.
    pub fn max_running_calls(mut self, max: usize) -> Self {
        self.max_running = max;
        self
    }

    /// Limits the size of the value of every tool. A definition can set a lower limit (default: 4 MiB).
    pub fn max_value_bytes(mut self, max: u64) -> Self {
        self.max_value_bytes = max;
        self
    }

    /// Rejects calls of tools that are elevated or need confirmation. By default a program may call them.
    pub fn deny_elevated(mut self) -> Self {
        self.elevated = false;
        self
    }

    /// Adds a middleware layer around every call. The layer that was added last sees a call first and its outcome
    /// last.
    pub fn layer(mut self, stage: impl Stage + 'static) -> Self {
        self.layers.push(Arc::new(stage));
        self
    }

    /// Registers a tool, as [`Tools::register`] does.
    pub fn tool(mut self, def: ToolDef) -> Self {
        self.tools.push(def);
        self
    }

    /// Adds the built-in tools: `exec`, `bash`, `send_email`, `send_whatsapp`, `http_request`, `web_fetch`, `web_search`,
    /// `json_transform`, `datetime_utils`, and with a sandbox also `read_file`, `write_file`, `append_file` and
    /// `list_files`. A tool of the program overrides a built-in tool with the same name; [`Tools::filter`] selects
    /// some of them.
    ///
    /// `send_email`, `send_whatsapp` and `web_search` read their settings (`SMTP_HOST`, `SERPER_API_KEY`, …) from the secrets, and from
    /// environment variables listed in [`Builder::env`]. `exec` and `bash` are elevated, so [`Builder::deny_elevated`]
    /// rejects them. Requires the feature `builtins`.
    ///
    /// ```
    /// use haft::Tools;
    /// use serde_json::json;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// let tools = Tools::builder().sandbox(folder.path()).built_ins().build()?;
    /// tools.execute("write_file", json!({"path": "notes/a.txt", "content": "hello"})).await?;
    /// assert_eq!(tools.execute("read_file", json!({"path": "notes/a.txt"})).await?, "hello");
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(feature = "builtins")]
    pub fn built_ins(mut self) -> Self {
        self.built_ins = true;
        self
    }

    /// Builds the set.
    pub fn build(mut self) -> Result<Tools, BuildError> {
        for (setting, is_zero) in
            [("max_running_calls", self.max_running == 0), ("max_value_bytes", self.max_value_bytes == 0)]
        {
            if is_zero {
                return Err(BuildError::Zero(setting));
            }
        }
        check_hosts(&self.egress)?;
        let roots = roots(&self.sandboxes, &self.read_only)?;
        let workspace = roots.first().and_then(|root| {
            // Names that are invalid are rejected with the roots.
            let name = root.name.parse().ok()?;
            let (path, read_only) = (root.path.clone(), root.read_only);
            Some(Arc::new(WorkspaceFolder { name, path, read_only }))
        });
        let files = if roots.is_empty() { None } else { Some(Files::new(roots)?) };
        let defs = std::mem::take(&mut self.tools);
        let resources = Resources::new(std::mem::take(&mut self.egress), files);
        #[cfg(feature = "builtins")]
        let built_ins = self.built_ins;
        let tools = self.assemble(&resources, workspace);
        for def in defs {
            tools.register(def)?;
        }
        #[cfg(feature = "builtins")]
        if built_ins {
            tools.set().add_built_ins(haft_builtins::built_ins(&resources.for_built_ins()?)?);
        }
        Ok(tools)
    }

    /// Creates the set from validated settings.
    pub(crate) fn assemble(self, resources: &Resources, workspace: Option<Arc<WorkspaceFolder>>) -> Tools {
        let set = ToolSet::new(resources, self.max_value_bytes, self.elevated);
        let mut stages: Vec<Arc<dyn Stage>> = self.layers;
        stages.reverse();
        let pipeline = Pipeline::new(PipelineParts {
            registry: Arc::clone(set.registry()),
            ledger: None,
            waiting: None,
            policy: Arc::default(),
            observer: None,
            rejections: None,
            secrets: Arc::new(self.secrets),
            clock: Arc::new(SystemClock),
            stages,
            max_running: self.max_running,
            limits: LimitSettings::default(),
            tenant_limits: None,
            workspace,
            workspaces: None,
            results: None,
        });
        Tools::from_parts(Arc::new(set), Arc::new(pipeline))
    }
}

fn check_hosts(rules: &EgressRules) -> Result<(), RulesError> {
    for (setting, entries) in
        [("allowed_hosts", &rules.allowed_hosts), ("private_hosts", &rules.private_hosts)]
    {
        for entry in entries {
            check_host(entry).map_err(|reason| RulesError::Pattern {
                setting,
                entry: entry.clone(),
                reason,
            })?;
        }
    }
    Ok(())
}

fn roots(folders: &[(String, PathBuf)], read_only: &[String]) -> Result<Vec<Root>, BuildError> {
    let mut roots = Vec::new();
    for (name, path) in folders {
        // The canonical path: replacing a symbolic link later does not move the sandbox.
        let canonical = path.canonicalize().and_then(|path| {
            let is_folder = std::fs::metadata(&path)?.is_dir();
            if is_folder { Ok(path) } else { Err(std::io::ErrorKind::NotADirectory.into()) }
        });
        match canonical {
            Ok(path) => roots.push(Root::new(name, path)),
            Err(source) => {
                return Err(BuildError::Folder { name: name.clone(), path: path.clone(), source });
            }
        }
    }
    for name in read_only {
        let root = roots.iter_mut().find(|root| root.name == *name);
        root.ok_or_else(|| RootsError::Unknown(name.clone()))?.read_only = true;
    }
    Ok(roots)
}
