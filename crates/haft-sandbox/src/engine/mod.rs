//! The sandbox engines.

mod bubblewrap;
mod child;
mod container;
mod folder;
mod hidden;
mod landlock;
mod mount_table;
mod mounts;
mod shared;

pub(crate) use bubblewrap::{Bubblewrap, engine_failure};
pub(crate) use container::{Container, ContainerKill};
pub(crate) use folder::Folder;
pub(crate) use landlock::Landlock;
pub(crate) use mounts::{FILES, WORK};
pub(crate) use shared::{EngineContext, check};
