//! Reads secrets from the output of configured commands, such as `op read` or `sops -d`.
//!
//! The command line comes from the configuration alone. The program has the rights of the server's user, except that it
//! cannot see haft's home folder. What it writes to standard error may hold anything, so nobody gets to see it.

use std::collections::BTreeMap;
use std::time::Duration;

use haft_core::name::TenantId;
use haft_core::secret::{ExternalSecretError, SourceKind};
use haft_sandbox::{Command, ExitReason, Level, Limit, Limits, SandboxError};

use super::cache::Lifetimes;
use super::settings::{SecretCommandSettings, has_tenant};
use super::value::{MAX_VALUE_BYTES, SecretValue};
use crate::process::Processes;

/// The commands by name.
pub(super) struct Commands {
    processes: Processes,
    commands: BTreeMap<String, SecretCommandSettings>,
}

impl Commands {
    pub(super) fn new(processes: Processes, commands: BTreeMap<String, SecretCommandSettings>) -> Self {
        Self { processes, commands }
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.commands.keys().map(String::as_str)
    }

    fn find(&self, name: &str) -> Result<&SecretCommandSettings, ExternalSecretError> {
        let unknown = || ExternalSecretError::NotConfigured(SourceKind::Command);
        self.commands.get(name).ok_or_else(unknown)
    }

    /// Checks that a command exists, and that a tenant may use it. The error does not tell which of the two is missing:
    /// a tenant does not learn the commands of others.
    pub(super) fn check(&self, tenant: &TenantId, name: &str) -> Result<(), ExternalSecretError> {
        if self.commands.get(name).is_some_and(|command| has_tenant(&command.tenants, tenant)) {
            return Ok(());
        }
        Err(ExternalSecretError::UnknownCommand { name: name.to_owned(), tenant: tenant.to_string() })
    }

    pub(super) fn lifetimes(&self, name: &str) -> Result<Lifetimes, ExternalSecretError> {
        Ok(Lifetimes { fresh: self.find(name)?.cache, stale: Duration::ZERO })
    }

    /// Runs a command and returns its standard output.
    pub(super) async fn run(&self, name: &str) -> Result<SecretValue, ExternalSecretError> {
        let settings = self.find(name)?;
        let failed = ExternalSecretError::CommandFailed;
        let sandbox = self.processes.sandbox();
        let not_started = |error: SandboxError| match error {
            SandboxError::MissingProgram(program) => {
                failed(format!("cannot start: program `{program}` not found"))
            }
            other => failed(format!("cannot start: {other}")),
        };
        let place = sandbox.place(Level::Host, None).map_err(not_started)?;
        let home = place.work().to_owned();
        let mut command = Command::new(place, &settings.command)
            .env("PATH", &self.processes.settings().path)
            .env("LANG", "C.UTF-8")
            .env("HOME", home);
        for (variable, value) in &settings.environment {
            command.env.retain(|(known, _)| known != variable.as_str());
            command = command.env(variable, value.expose());
        }
        command.network = true;
        let wall = settings.timeout;
        command.limits = Limits { wall, cpu: wall, output: MAX_VALUE_BYTES, ..Limits::default() };
        let finished = sandbox.run(command, &mut |_, _| {}).await.map_err(not_started)?;
        match finished.ending {
            ExitReason::Exited(0) => {}
            ExitReason::Exited(code) => return Err(failed(format!("exited with code {code}"))),
            ExitReason::Signalled(signal) => {
                return Err(failed(format!("was killed by signal {signal}")));
            }
            ExitReason::Stopped(Limit::Wall) => return Err(ExternalSecretError::TimedOut(wall)),
            ExitReason::Stopped(limit) => {
                return Err(failed(format!("exceeded the limit `{}`", limit.as_str())));
            }
        }
        if finished.stdout.left_out > 0 {
            return Err(ExternalSecretError::TooLarge(MAX_VALUE_BYTES));
        }
        SecretValue::from_bytes(finished.stdout.bytes)
    }
}
