//! The checks of `cargo xtask tidy`: dependencies between crates and modules, file sizes, reasons for exceptions.

mod arrows;
mod cycles;
mod dependencies;
mod finding;
mod layers;
mod lock;
mod run;
mod sources;

pub(crate) use run::check;
