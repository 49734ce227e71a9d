//! Follows changes of definition files, of other processes on the same home folder and of other nodes; recovers the work
//! of dead processes.

mod changes;
mod definitions;
mod listen;
mod recovery;
mod resources;

pub(crate) use changes::RemoteChanges;
pub(crate) use definitions::watch as definition_files;
pub(crate) use listen::listen;
pub(crate) use recovery::Recovery;
pub(crate) use resources::watch as resource_files;
