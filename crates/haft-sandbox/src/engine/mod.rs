//! The engines: what confines a process on this machine.

mod bubblewrap;
mod child;
mod container;
mod folder;
mod hidden;
mod landlock;
mod mounts;
mod shared;

pub(crate) use bubblewrap::{Bubblewrap, engine_failure};
pub(crate) use container::{Container, Removal};
pub(crate) use folder::Folder;
pub(crate) use landlock::Landlock;
pub(crate) use mounts::{FILES, WORK};
pub(crate) use shared::{Workshop, check};
