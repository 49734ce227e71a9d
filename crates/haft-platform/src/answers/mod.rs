//! The answers of runs, as the content of messages: written when a run ends or waits, on whatever node.

mod blocks;
mod content;
mod steps;
mod write;

pub use blocks::note;
pub use content::{content_parts, content_text};
pub use steps::all_steps;
pub use write::{complete_answer, repair_answers, write_answer};
