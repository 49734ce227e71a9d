//! Workspaces in real folders.

mod model;
mod states;
