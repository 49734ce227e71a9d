//! Definition files: where they are, and how they are read, written and noticed.

pub(crate) mod bundle_file;
pub(crate) mod definition;
pub(crate) mod folder;
pub(crate) mod history;
pub(crate) mod layout;
pub(crate) mod lock;
mod nested;
pub(crate) mod read;
pub(crate) mod scan;
pub(crate) mod stamp;
pub(crate) mod write;

pub(crate) use folder::Files;
