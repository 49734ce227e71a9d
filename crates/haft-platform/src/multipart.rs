//! Files in a `multipart/form-data` body that is in memory.

use bytes::Bytes;
use haft_core::problem::excerpt;

/// The most parts of one body.
const MAX_PARTS: usize = 1000;
/// The longest headers of a part.
const MAX_HEADERS: usize = 16 * 1024;

/// A part of a form.
#[derive(Debug, PartialEq)]
pub struct Part {
    /// The name of the field.
    pub field: String,
    /// The name of the file, if it is one.
    pub file: Option<String>,
    /// The declared media type.
    pub media_type: Option<String>,
    /// The content.
    pub bytes: Bytes,
}

/// Reads a form; the error says what is wrong with it.
pub fn parse(content_type: &str, body: &Bytes) -> Result<Vec<Part>, String> {
    let boundary = boundary(content_type).ok_or("the `Content-Type` has no valid `boundary`")?;
    let delimiter = format!("\r\n--{boundary}").into_bytes();
    let first = format!("--{boundary}").into_bytes();
    let mut at = if body.starts_with(&first) {
        first.len()
    } else {
        find(body, &delimiter, 0).ok_or("the form has no part")? + delimiter.len()
    };
    let mut parts = Vec::new();
    loop {
        let rest = body.get(at..).unwrap_or_default();
        if rest.starts_with(b"--") {
            return Ok(parts);
        }
        let line = find(body, b"\r\n", at).ok_or("the form ends within a part")?;
        let end = find(body, &delimiter, line).ok_or("the form ends within a part")?;
        parts.push(part(&body.slice(line..end))?);
        if parts.len() > MAX_PARTS {
            return Err(format!("the form has more than {MAX_PARTS} parts"));
        }
        at = end + delimiter.len();
    }
}

fn boundary(content_type: &str) -> Option<String> {
    let value = parameter(content_type, "boundary")?;
    let is_valid = (1..=70).contains(&value.len()) && value.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    is_valid.then_some(value)
}

/// Returns a parameter of a header, such as `name` in `form-data; name="a"`.
fn parameter(header: &str, name: &str) -> Option<String> {
    let mut rest = header.split_once(';')?.1;
    loop {
        let (key, value) = rest.split_once('=')?;
        let value = value.trim_start();
        let (text, after) = if let Some(quoted) = value.strip_prefix('"') {
            let (text, end) = unquoted(quoted)?;
            (text, quoted.get(end..)?)
        } else {
            let end = value.find(';').unwrap_or(value.len());
            (value.get(..end)?.trim().to_owned(), value.get(end..)?)
        };
        if key.trim().eq_ignore_ascii_case(name) {
            return Some(text);
        }
        rest = after.split_once(';')?.1;
    }
}

/// Returns a text up to its closing quote, and where it continues after that.
fn unquoted(quoted: &str) -> Option<(String, usize)> {
    let mut text = String::new();
    let mut characters = quoted.char_indices();
    loop {
        match characters.next()? {
            // Browsers escape a quote as `%22`; others write a backslash.
            (_, '\\') => text.push(characters.next()?.1),
            (at, '"') => return Some((text, at + 1)),
            (_, other) => text.push(other),
        }
    }
}

/// Reads a part from the line break before its headers on.
fn part(bytes: &Bytes) -> Result<Part, String> {
    let end = find(bytes, b"\r\n\r\n", 0).filter(|end| *end <= MAX_HEADERS);
    let end = end.ok_or("a part of the form has no headers")?;
    let headers = String::from_utf8_lossy(bytes.get(..end).unwrap_or_default()).into_owned();
    let header = |wanted: &str| {
        headers.lines().filter_map(|line| line.split_once(':')).find_map(|(name, value)| {
            name.trim().eq_ignore_ascii_case(wanted).then(|| value.trim().to_owned())
        })
    };
    let disposition =
        header("content-disposition").ok_or("a part of the form has no `Content-Disposition`")?;
    let field = parameter(&disposition, "name").ok_or("a part of the form has no name")?;
    Ok(Part {
        field: excerpt(&field, 100),
        file: parameter(&disposition, "filename").filter(|name| !name.is_empty()),
        media_type: header("content-type"),
        bytes: bytes.slice(end + 4..),
    })
}

/// Returns where a sequence of bytes starts, from a position on.
fn find(bytes: &[u8], sequence: &[u8], from: usize) -> Option<usize> {
    let first = *sequence.first()?;
    let mut at = from;
    loop {
        let rest = bytes.get(at..)?;
        at += rest.iter().position(|byte| *byte == first)?;
        if bytes.get(at..)?.starts_with(sequence) {
            return Some(at);
        }
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORM: &str = "multipart/form-data; boundary=\"x y\"";

    #[test]
    fn files_and_fields_are_found() {
        let body = "--x y\r\nContent-Disposition: form-data; name=\"metadata\"\r\n\r\n{}\r\n--x y\r\n\
                    content-disposition: form-data; name=\"file\"; filename=\"a \\\"b\\\".md\"\r\nContent-Type: text/markdown\r\n\r\n\
                    # A\r\n--x\r\n\r\n--x y--\r\n";
        let parts = parse(FORM, &Bytes::from(body)).unwrap();
        let expected = [
            Part { field: "metadata".into(), file: None, media_type: None, bytes: Bytes::from("{}") },
            Part {
                field: "file".into(),
                file: Some("a \"b\".md".into()),
                media_type: Some("text/markdown".into()),
                bytes: Bytes::from("# A\r\n--x\r\n"),
            },
        ];
        assert_eq!(parts, expected);
        assert_eq!(parse(FORM, &Bytes::from("--x y--")).unwrap(), []);
    }

    #[test]
    fn broken_forms_are_reported() {
        for (content_type, body) in [
            ("multipart/form-data", "--x--"),
            (FORM, ""),
            (FORM, "--x y\r\n"),
            (FORM, "--x y\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\ntext"),
            (FORM, "--x y\r\nno headers\r\n--x y--"),
            (FORM, "--x y\r\nContent-Type: a\r\n\r\n\r\n--x y--"),
            (FORM, "--x y\r\nContent-Disposition: form-data; name=\"a\r\n\r\n\r\n--x y--"),
        ] {
            assert!(parse(content_type, &Bytes::from(body)).is_err(), "{body}");
        }
    }
}
