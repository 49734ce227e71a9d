//! A chat as a Markdown document.

use std::fmt::Write as _;

use haft_core::chat::{Chat, Message, MessageRole};
use serde_json::Value;

/// Writes a branch of a chat as Markdown.
pub fn markdown(chat: &Chat, branch: &[Message]) -> String {
    let title = if chat.title.is_empty() { "Chat" } else { &chat.title };
    let mut text = format!("# {title}\n");
    // Writing to a string cannot fail.
    let _ = write!(text, "\n{}", chat.created_at.strftime("%Y-%m-%d %H:%M UTC"));
    if let Some(agent) = &chat.agent {
        let _ = write!(text, " · agent `{agent}`");
    }
    text.push('\n');
    for message in branch {
        let author = match message.role {
            MessageRole::User => "User",
            MessageRole::Assistant => "Assistant",
            MessageRole::Tool => "Tool",
            MessageRole::System => "Note",
        };
        let _ = write!(text, "\n## {author}\n");
        match &message.content {
            Value::Array(blocks) => blocks.iter().for_each(|block| write_block(block, &mut text)),
            Value::String(content) => paragraph(content, &mut text),
            other => paragraph(&other.to_string(), &mut text),
        }
    }
    text
}

fn paragraph(content: &str, text: &mut String) {
    let _ = write!(text, "\n{}\n", content.trim_end());
}

fn write_block(block: &Value, text: &mut String) {
    let field = |name: &str| block.get(name).and_then(Value::as_str).unwrap_or_default();
    match field("type") {
        "text" => paragraph(field("text"), text),
        "note" => paragraph(&format!("_{}_", field("text")), text),
        "tool_use" => {
            let args = block.get("args").filter(|args| !args.is_null());
            let args = args.map(|args| serde_json::to_string_pretty(args).unwrap_or_default());
            let _ = write!(text, "\n**Tool `{}`**: {}\n", field("name"), field("status"));
            if let Some(args) = args {
                let fence = fence(&args);
                let _ = write!(text, "\n{fence}json\n{args}\n{fence}\n");
            }
        }
        "image" => paragraph("_(image)_", text),
        _ => paragraph(&block.to_string(), text),
    }
}

/// Returns a fence that is longer than any in the text.
fn fence(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or_default();
    "`".repeat(longest.max(2) + 1)
}

#[cfg(test)]
mod tests {
    use super::fence;

    #[test]
    fn fences_are_longer_than_those_in_the_text() {
        assert_eq!(fence("a"), "```");
        assert_eq!(fence("a ``` b"), "````");
    }
}
