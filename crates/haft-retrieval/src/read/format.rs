//! The formats, and how one is recognised.

use serde::{Deserialize, Serialize};

use super::ReadError;

/// A format that can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// Plain text.
    Text,
    /// Markdown.
    Markdown,
    /// HTML.
    Html,
    /// PDF.
    Pdf,
    /// The document format of Microsoft Word.
    Docx,
    /// Comma-separated values, or another delimiter.
    Csv,
    /// One JSON value per line.
    JsonLines,
}

impl std::fmt::Display for Format {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Text => "text",
            Self::Markdown => "Markdown",
            Self::Html => "HTML",
            Self::Pdf => "PDF",
            Self::Docx => "DOCX",
            Self::Csv => "CSV",
            Self::JsonLines => "JSON Lines",
        })
    }
}

/// The first bytes of an OLE file: an encrypted DOCX, or a document of an older Word.
const OLE: &[u8] = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1";
/// The name of the stream that holds an encrypted DOCX, in UTF-16.
const ENCRYPTED_PACKAGE: &[u8] = b"E\0n\0c\0r\0y\0p\0t\0e\0d\0P\0a\0c\0k\0a\0g\0e\0";

impl Format {
    /// Returns the format by its signature, else by the media type, else by the file name; text if nothing is known.
    pub fn detect(
        bytes: &[u8],
        media_type: Option<&str>,
        file_name: Option<&str>,
    ) -> Result<Self, ReadError> {
        if let Some(format) = by_signature(bytes)? {
            return Ok(format);
        }
        let by_type = media_type.map(by_media_type).transpose()?.flatten();
        let declared = match (by_type, file_name) {
            // Servers send text/plain for everything that they do not know.
            (None | Some(Self::Text), Some(name)) => by_file_name(name)?.or(by_type),
            (by_type, _) => by_type,
        };
        match declared {
            Some(format @ (Self::Pdf | Self::Docx)) => {
                Err(ReadError::Damaged { format, problem: "the signature of the format is missing" })
            }
            Some(format) => Ok(format),
            None => Ok(sniff(bytes)),
        }
    }
}

fn by_signature(bytes: &[u8]) -> Result<Option<Format>, ReadError> {
    // Some PDF files have bytes in front of the header.
    let head = bytes.get(..1024).unwrap_or(bytes);
    if head.starts_with(b"%PDF-") || head.windows(5).any(|window| window == b"%PDF-") && head.contains(&0) {
        return Ok(Some(Format::Pdf));
    }
    if bytes.starts_with(b"PK\x03\x04") || bytes.starts_with(b"PK\x05\x06") {
        return Ok(Some(Format::Docx));
    }
    if bytes.starts_with(OLE) {
        let directory = bytes.get(..4 << 20).unwrap_or(bytes);
        if directory.windows(ENCRYPTED_PACKAGE.len()).any(|window| window == ENCRYPTED_PACKAGE) {
            return Err(ReadError::Encrypted { format: Format::Docx });
        }
        return Err(ReadError::Unsupported("Word 97-2003 document".to_owned()));
    }
    Ok(None)
}

fn by_media_type(media_type: &str) -> Result<Option<Format>, ReadError> {
    let essence = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    Ok(match essence.as_str() {
        "" | "application/octet-stream" | "binary/octet-stream" => None,
        "text/markdown" | "text/x-markdown" => Some(Format::Markdown),
        "text/html" | "application/xhtml+xml" => Some(Format::Html),
        "application/pdf" | "application/x-pdf" => Some(Format::Pdf),
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document" => Some(Format::Docx),
        "text/csv" | "text/tab-separated-values" | "application/csv" => Some(Format::Csv),
        "application/jsonl"
        | "application/x-ndjson"
        | "application/ndjson"
        | "application/jsonlines"
        | "application/x-jsonlines" => Some(Format::JsonLines),
        other if other.starts_with("text/") || other == "application/json" || other == "application/xml" => {
            Some(Format::Text)
        }
        other => return Err(ReadError::Unsupported(other.chars().take(100).collect())),
    })
}

fn by_file_name(name: &str) -> Result<Option<Format>, ReadError> {
    let Some((_, extension)) = name.rsplit_once('.') else { return Ok(None) };
    Ok(match extension.to_ascii_lowercase().as_str() {
        "md" | "markdown" | "mdx" => Some(Format::Markdown),
        "html" | "htm" | "xhtml" => Some(Format::Html),
        "pdf" => Some(Format::Pdf),
        "docx" => Some(Format::Docx),
        "csv" | "tsv" => Some(Format::Csv),
        "jsonl" | "ndjson" => Some(Format::JsonLines),
        "doc" | "xls" | "xlsx" | "ppt" | "pptx" | "odt" | "rtf" | "epub" | "zip" | "png" | "jpg" | "jpeg"
        | "gif" | "mp3" | "mp4" | "exe" => {
            return Err(ReadError::Unsupported(format!(".{}", extension.to_ascii_lowercase())));
        }
        // Everything else may be text; its bytes decide.
        _ => None,
    })
}

fn sniff(bytes: &[u8]) -> Format {
    let head = bytes.get(..512).unwrap_or(bytes).trim_ascii_start().to_ascii_lowercase();
    let is_html = head.starts_with(b"<!doctype html") || head.starts_with(b"<html");
    if is_html { Format::Html } else { Format::Text }
}
