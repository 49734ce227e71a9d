//! The content of messages, as models read it.

use haft_agent::model::{ContentPart, ImageSource};
use serde_json::Value;

/// Returns the parts of the content of a message: a text, or an array of blocks.
pub fn content_parts(content: &Value) -> Vec<ContentPart> {
    match content {
        Value::Array(blocks) => blocks.iter().filter_map(block).collect(),
        Value::String(text) => vec![ContentPart::Text { text: text.clone() }],
        other => vec![ContentPart::Text { text: other.to_string() }],
    }
}

/// Returns the text of the content of a message.
pub fn content_text(content: &Value) -> String {
    let parts = content_parts(content).into_iter().filter_map(|part| match part {
        ContentPart::Text { text } => Some(text),
        _ => None,
    });
    parts.collect::<Vec<_>>().join("\n")
}

fn block(block: &Value) -> Option<ContentPart> {
    let text = |text: &str| Some(ContentPart::Text { text: text.to_owned() });
    if let Some(plain) = block.as_str() {
        return text(plain);
    }
    match block.get("type").and_then(Value::as_str) {
        Some("text" | "input_text" | "output_text") | None => {
            text(block.get("text").and_then(Value::as_str).unwrap_or_default())
        }
        Some("image" | "image_url" | "input_image") => {
            image(block).map(|source| ContentPart::Image { source })
        }
        Some("file") => {
            let path = block.get("path").or_else(|| block.get("name")).and_then(Value::as_str)?;
            text(&format!("[File in the workspace: `{path}`]"))
        }
        // What haft itself writes besides the text is in the steps of the run.
        Some("tool_use" | "note") => None,
        Some(_) => text(&block.to_string()),
    }
}

/// Reads an image in the spellings of the model APIs.
fn image(block: &Value) -> Option<ImageSource> {
    if let Some(source) = block.get("source") {
        return serde_json::from_value(source.clone()).ok();
    }
    let of_url = |value: &Value| value.as_str().map(ImageSource::from_url);
    let url = block.get("url").or_else(|| block.get("image_url"));
    if let Some(url) = url {
        return of_url(url).or_else(|| url.get("url").and_then(of_url));
    }
    let data = block.get("data")?.as_str()?;
    let media_type = block.get("media_type").or_else(|| block.get("mimeType"))?.as_str()?;
    Some(ImageSource::Base64 { media_type: media_type.to_owned(), data: data.to_owned() })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn blocks_become_parts() {
        let image = |media_type: &str, data: &str| ContentPart::Image {
            source: ImageSource::Base64 { media_type: media_type.to_owned(), data: data.to_owned() },
        };
        let text = |text: &str| ContentPart::Text { text: text.to_owned() };
        for (content, expected) in [
            (json!("a"), vec![text("a")]),
            (json!([{"type": "text", "text": "a"}, "b"]), vec![text("a"), text("b")]),
            (
                json!([{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA"}}]),
                vec![image("image/png", "AA")],
            ),
            (
                json!([{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}]),
                vec![image("image/png", "AA")],
            ),
            (
                json!([{"type": "image", "data": "AA", "mimeType": "image/gif"}]),
                vec![image("image/gif", "AA")],
            ),
            (json!([{"type": "file", "path": "a.csv"}]), vec![text("[File in the workspace: `a.csv`]")]),
            (json!([{"type": "tool_use", "id": "1"}, {"type": "note", "text": "x"}]), vec![]),
        ] {
            assert_eq!(content_parts(&content), expected, "{content}");
        }
    }
}
