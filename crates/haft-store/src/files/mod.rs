//! Definition files in the home folder: layout, scanning, writing and backups.

pub(crate) mod bundle_file;
pub(crate) mod definition;
pub(crate) mod folder;
pub(crate) mod history;
pub(crate) mod journal;
pub(crate) mod layout;
pub(crate) mod lock;
mod nested;
pub(crate) mod reserve;
pub(crate) mod scan;
pub(crate) mod stamp;
pub(crate) mod write;

pub(crate) use folder::Files;
