//! `haft agent`: manages and runs agents.

mod approve;
mod ask;
mod command;
mod lines;
mod list;
mod printer;
mod show;
mod watch;
mod write;

pub(crate) use command::{Command, run};
pub(super) use lines::Lines;
pub(super) use watch::{Watch, ended};
