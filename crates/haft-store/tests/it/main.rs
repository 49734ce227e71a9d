//! The store: everything that does not concern files is tested on both engines.

mod bundles;
mod catalog;
mod credentials;
mod disk;
mod harness;
mod ledger;
mod nodes;
mod processes;
mod property;
mod reload;
mod search;
mod tokens;
