//! Calls built-in tools as the pipeline does: validates the arguments, then runs the function.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use haft_builtins::{BuiltInParts, BuiltIns, PlatformSettings, built_ins};
use haft_core::BoxFuture;
use haft_core::executor::{CallContext, Prepared};
use haft_core::id::CallId;
use haft_core::name::TenantId;
use haft_core::outcome::{CallError, ErrorCode, Outcome};
use haft_core::problem::Problem;
use haft_core::schema::Schema;
use haft_core::secret::{Secret, SecretError, SecretSource};
use haft_executors::egress::{Egress, EgressRules};
use haft_executors::files::{Files, Root};
use haft_runtime::clock::SystemClock;
use serde_json::Value;

/// The stored credentials of a test.
pub(crate) struct StoredSecrets(HashMap<String, String>);

impl SecretSource for StoredSecrets {
    fn secret<'a>(
        &'a self,
        _: &'a TenantId,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Option<Secret>, SecretError>> {
        let found = self.0.get(name).cloned().map(Secret::new);
        Box::pin(std::future::ready(Ok(found)))
    }
}

/// The built-in tools of a test.
pub(crate) struct Harness {
    tools: BuiltIns,
    stored: Arc<StoredSecrets>,
    timeout: Duration,
    pub(crate) folder: tempfile::TempDir,
}

/// The options of a [`Harness`].
#[derive(Default)]
pub(crate) struct Setup<'a> {
    pub(crate) stored: &'a [(&'a str, &'a str)],
    pub(crate) platform: &'a [(&'a str, &'a str)],
    /// Whether connections to loopback are denied.
    pub(crate) deny_loopback: bool,
    pub(crate) read_only: bool,
    pub(crate) timeout: Option<Duration>,
}

impl Harness {
    pub(crate) fn new(setup: &Setup<'_>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let to_map = |pairs: &[(&str, &str)]| {
            pairs
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect::<HashMap<_, _>>()
        };
        let private_hosts =
            if setup.deny_loopback { vec![] } else { vec!["127.0.0.1".to_owned(), "localhost".to_owned()] };
        let root = Root { read_only: setup.read_only, ..Root::new("workspace", folder.path().to_owned()) };
        let parts = BuiltInParts {
            egress: Egress::new(&EgressRules { allowed_hosts: vec![], private_hosts }).unwrap(),
            files: Some(Files::new(vec![root]).unwrap()),
            clock: Arc::new(SystemClock),
            emails_per_minute: haft_builtins::EMAILS_PER_MINUTE,
            platform: PlatformSettings::new(
                to_map(setup.platform).into_iter().map(|(name, value)| (name, Secret::new(value))),
            ),
        };
        let tools = built_ins(&parts).unwrap();
        let timeout = setup.timeout.unwrap_or(Duration::from_secs(30));
        Self { tools, stored: Arc::new(StoredSecrets(to_map(setup.stored))), timeout, folder }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Calls a tool; returns its outcome and the secrets that it used.
    pub(crate) async fn call_with_secrets(&self, name: &str, args: Value) -> (Outcome, Vec<Secret>) {
        let spec = self.tools.specs.iter().find(|spec| spec.name.as_str() == name).unwrap();
        let check = |schema: &Value, value: &Value| Schema::compile("schema", schema).unwrap().check(value);
        if let Err(violations) = check(&spec.input_schema.value(), &args) {
            return (Err(CallError::new(ErrorCode::InvalidArguments, format!("{violations:?}"))), Vec::new());
        }
        let tenant = TenantId::default_tenant();
        let deadline = Instant::now() + self.timeout;
        let call =
            CallContext::new(CallId(uuid::Uuid::nil()), tenant, deadline, Arc::clone(&self.stored) as _);
        let function = self.tools.functions.get(name).unwrap();
        let outcome = function.run(&call, args.as_object().unwrap()).await;
        if let Ok(value) = &outcome {
            assert_eq!(check(&spec.output_schema.value(), value), Ok(()), "{value}");
        }
        (outcome, call.exposed())
    }

    pub(crate) async fn call(&self, name: &str, args: Value) -> Outcome {
        self.call_with_secrets(name, args).await.0
    }

    /// Returns the function of a tool with the `config` of a definition.
    pub(crate) fn configured(&self, name: &str, config: &Value) -> Result<Arc<dyn Prepared>, Problem> {
        self.tools.functions.get(name).unwrap().with_config(config.as_object().unwrap())
    }

    /// Calls a tool with the `config` of a definition.
    pub(crate) async fn call_configured(&self, name: &str, config: &Value, args: Value) -> Outcome {
        let function = self.configured(name, config).unwrap();
        let (tenant, deadline) = (TenantId::default_tenant(), Instant::now() + self.timeout);
        let call =
            CallContext::new(CallId(uuid::Uuid::nil()), tenant, deadline, Arc::clone(&self.stored) as _);
        function.run(&call, args.as_object().unwrap()).await
    }

    /// Calls a tool that must fail; returns code and message.
    pub(crate) async fn fail(&self, name: &str, args: Value) -> (ErrorCode, String) {
        let error = self.call(name, args).await.unwrap_err();
        (error.code, error.message)
    }

    pub(crate) fn specs(&self) -> &[haft_core::spec::ToolSpec] {
        &self.tools.specs
    }
}
