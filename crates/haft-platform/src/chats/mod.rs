//! Chats that an agent answers: from a message to a run, and from a run to an answer.

mod answer;
mod blocks;
mod content;
mod conversation;
mod export;
mod manage;

pub use answer::{
    Asked, Place, Question, answer_again, ask, check_content, complete_answer, repair_answers, stop,
    write_answer,
};
pub use content::content_parts;
pub use export::markdown;
pub use manage::{
    ChatFields, all_messages, create, delete, listed_scope, manifest_at, readable, shown_branch, update,
    writable,
};
