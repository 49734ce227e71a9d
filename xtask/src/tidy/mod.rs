//! What keeps the house in order: arrows between crates, sizes of files, reasons for exceptions.

mod arrows;
mod dependencies;
mod finding;
mod layers;
mod lock;
mod run;
mod sources;

pub(crate) use run::check;
