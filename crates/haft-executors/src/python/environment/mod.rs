//! Private environments for the Python packages that tools declare.
//!
//! An environment is a folder of installed packages in `python-envs` of the home folder. Its name is the hash of
//! everything that decides its content, so tools with the same requirements share it. It is built once, inside the
//! sandbox, in a folder of another name that is renamed when it is complete, and never changed afterwards. Interpreters
//! see it read-only.

mod build;
mod collect;
mod dependencies;
mod environments;
mod failure;
mod installer;
mod interpreter;
mod key;
mod lock;
mod progress;
mod settings;
mod wheels;

pub use collect::CollectedEnvironments;
pub(crate) use dependencies::Dependencies;
pub(super) use environments::CallPackages;
pub use environments::PythonEnvironments;
pub use key::EnvironmentKey;
pub use settings::PythonSettings;
