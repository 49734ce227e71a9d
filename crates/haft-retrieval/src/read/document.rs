//! Reads one document by its format.

use super::output::Output;
use super::{Format, ReadError, ReadLimits, csv, decode, docx, html, json_lines, markdown, pdf, text};
use crate::{Document, Language};

/// What is known about a document besides its bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReadOptions<'a> {
    /// The media type, such as `text/html; charset=utf-8`.
    pub media_type: Option<&'a str>,
    /// The name of the file, whose extension decides if there is no specific media type.
    pub file_name: Option<&'a str>,
    /// The limits.
    pub limits: ReadLimits,
}

/// Reads a document.
pub fn read(bytes: &[u8], options: &ReadOptions<'_>) -> Result<Document, ReadError> {
    let limits = &options.limits;
    if bytes.len() > limits.max_bytes {
        return Err(ReadError::TooLarge { bytes: bytes.len(), limit: limits.max_bytes });
    }
    if bytes.is_empty() {
        return Err(ReadError::Empty);
    }
    let format = Format::detect(bytes, options.media_type, options.file_name)?;
    let mut output = Output::new(limits);
    match format {
        Format::Pdf => pdf::read(bytes, &mut output)?,
        Format::Docx => docx::read(bytes, &mut output)?,
        Format::Text | Format::Markdown | Format::Html | Format::Csv | Format::JsonLines => {
            let source = decode::decode(bytes, format, options.media_type)?;
            if source.trim().is_empty() {
                return Err(ReadError::Empty);
            }
            match format {
                Format::Markdown => markdown::read(&source, &mut output)?,
                Format::Html => html::read(&source, &mut output)?,
                Format::Csv => csv::read(&source, options.file_name, &mut output)?,
                Format::JsonLines => json_lines::read(&source, &mut output)?,
                Format::Text | Format::Pdf | Format::Docx => text::read(&source, &mut output)?,
            }
            output.source = source;
        }
    }
    if output.blocks.is_empty() {
        return Err(ReadError::NoText { format });
    }
    let sample: String =
        output.blocks.iter().take(200).flat_map(|block| [block.text.as_str(), " "]).collect();
    Ok(Document {
        format,
        title: output.title,
        language: Language::detect(&sample),
        text: output.source,
        blocks: output.blocks,
    })
}
