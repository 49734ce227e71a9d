//! The errors of opening an installation.

use std::path::PathBuf;

use haft_agent::model::ModelEgressError;
use haft_core::catalog::StoreError;
use haft_core::name::NameError;
use haft_executors::egress::RulesError;
use haft_executors::files::RootsError;
use haft_executors::secret_sources::SourceSettingsError;
use haft_sandbox::SandboxError;
use haft_workspace::WorkspaceError;

use crate::local_token::LocalTokenError;
use crate::policy::LoadPolicyError;

/// An error that prevents an installation from opening.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The home folder cannot be created.
    #[error("cannot create the home folder `{}`", path.display())]
    Home {
        /// The folder.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The local token cannot be read or created.
    #[error(transparent)]
    LocalToken(#[from] LocalTokenError),
    /// The egress rules are invalid.
    #[error(transparent)]
    Egress(#[from] RulesError),
    /// The sources of secrets outside of haft are invalid.
    #[error(transparent)]
    SecretSources(#[from] SourceSettingsError),
    /// The sandbox cannot be prepared.
    #[error("cannot prepare the sandbox")]
    Sandbox(#[from] SandboxError),
    /// The folders of file tools are invalid.
    #[error("invalid setting `files`: {0}")]
    Files(#[from] RootsError),
    /// A built-in tool has an invalid name.
    #[error("cannot create the built-in tools")]
    BuiltIns(#[from] NameError),
    /// The stored policy cannot be used.
    #[error("cannot load the policy")]
    Policy(#[from] LoadPolicyError),
    /// The folder of the files of workspaces cannot be opened.
    #[error("cannot open the workspaces")]
    Workspaces(#[from] WorkspaceError),
    /// The addresses of model servers are invalid.
    #[error("invalid setting `models.private_urls`: {0}")]
    Models(#[from] ModelEgressError),
    /// The store cannot be opened.
    #[error("cannot open the store")]
    Store(#[from] StoreError),
}
