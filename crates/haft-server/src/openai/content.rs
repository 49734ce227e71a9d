//! The content of messages: a text, or parts with texts and images.

use haft_agent::model::{ContentPart, ImageSource};
use haft_core::problem::excerpt;
use serde_json::Value;

use super::error::OpenAiError;
use super::fields::{Fields, wrong};

/// Reads the content of a message: `null` has no parts.
pub(super) fn parts(value: Option<&Value>, path: &str) -> Result<Vec<ContentPart>, OpenAiError> {
    match value {
        None => Ok(Vec::new()),
        Some(Value::String(text)) => Ok(vec![ContentPart::Text { text: text.clone() }]),
        Some(Value::Array(list)) => {
            let read = list.iter().enumerate().map(|(index, value)| part(value, &format!("{path}[{index}]")));
            read.collect()
        }
        Some(other) => Err(wrong(path, "a string or an array of content parts", other)),
    }
}

/// Reads the content of a message that can only have text.
pub(super) fn text(value: Option<&Value>, path: &str) -> Result<String, OpenAiError> {
    let mut texts = Vec::new();
    for (index, part) in parts(value, path)?.into_iter().enumerate() {
        match part {
            ContentPart::Text { text } => texts.push(text),
            _ => return Err(OpenAiError::invalid(format!("{path}[{index}]"), "expected a text part")),
        }
    }
    Ok(texts.join("\n"))
}

/// Reads one part, in the spelling of chat completions and of responses.
fn part(value: &Value, path: &str) -> Result<ContentPart, OpenAiError> {
    let fields = Fields::of(value, path)?;
    match fields.required_text("type")? {
        "text" | "input_text" | "output_text" => {
            Ok(ContentPart::Text { text: fields.required_text("text")?.to_owned() })
        }
        "refusal" => Ok(ContentPart::Text { text: fields.required_text("refusal")?.to_owned() }),
        "image_url" => {
            let image = fields.object("image_url")?.ok_or_else(|| fields.missing("image_url"))?;
            image_at(image.required_text("url")?, &image.path("url"))
        }
        "input_image" => match fields.text("image_url")? {
            Some(url) => image_at(url, &fields.path("image_url")),
            None => Err(OpenAiError::unsupported(
                fields.path("file_id"),
                "haft stores no files of this API; send the image as `image_url`",
            )),
        },
        other => Err(OpenAiError::unsupported(
            fields.path("type"),
            format!("content parts of type `{}` are not supported; use text or an image", excerpt(other, 40)),
        )),
    }
}

fn image_at(url: &str, path: &str) -> Result<ContentPart, OpenAiError> {
    if !["data:image/", "https://", "http://"].iter().any(|start| url.starts_with(start)) {
        let message = "expected an `https` address or a `data:image/…;base64,` URL";
        return Err(OpenAiError::invalid(path, message));
    }
    let source = ImageSource::from_url(url);
    if url.starts_with("data:") && matches!(source, ImageSource::Url { .. }) {
        return Err(OpenAiError::invalid(path, "the `data:` URL must be in base64"));
    }
    Ok(ContentPart::Image { source })
}
