//! Chats that an agent answers: from a message to a run, and from a run to an answer.

mod answer;
mod conversation;
mod export;
mod manage;

pub use answer::{
    InsertPosition, MessageRequest, PostedMessage, answer_again, check_content, post_message, stop,
};
pub use export::markdown;
pub use manage::{
    ChatFields, active_manifest, all_messages, create, delete, listed_scope, manifest_at, readable,
    require_message, shown_branch, update, writable,
};
