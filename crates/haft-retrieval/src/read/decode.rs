//! From bytes to text: byte order marks, declared encodings, and guesses that cannot fail silently.

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};

use super::{Format, ReadError};

/// The share of control characters above which bytes are no text: one in this many.
const CONTROL_SHARE: usize = 200;

/// Decodes text: by its byte order mark, as UTF-8 or as declared, in this order; otherwise as Windows-1252.
pub(super) fn decode(bytes: &[u8], format: Format, media_type: Option<&str>) -> Result<String, ReadError> {
    if bytes.starts_with(b"\0\0\xfe\xff") || bytes.starts_with(b"\xff\xfe\0\0") {
        return Err(ReadError::Encoding("UTF-8 (it is UTF-32)"));
    }
    let declared = || declared(bytes, format, media_type);
    let (encoding, is_certain) = match Encoding::for_bom(bytes) {
        Some((encoding, _)) => (encoding, true),
        None => match utf16_without_bom(bytes) {
            Some(encoding) => (encoding, false),
            None if std::str::from_utf8(bytes).is_ok() => (UTF_8, true),
            None => match declared() {
                Some(encoding) => (encoding, true),
                None => (WINDOWS_1252, false),
            },
        },
    };
    let (text, _, has_errors) = encoding.decode(bytes);
    if has_errors {
        return Err(if is_certain { ReadError::Encoding(encoding.name()) } else { ReadError::Binary });
    }
    let controls = text.chars().filter(|c| is_unexpected(*c)).count();
    if text.contains('\0') || controls > text.len() / CONTROL_SHARE {
        return Err(ReadError::Binary);
    }
    Ok(text.into_owned())
}

fn is_unexpected(c: char) -> bool {
    c.is_control() && !matches!(c, '\t' | '\n' | '\r' | '\u{c}' | '\u{1b}' | '\u{85}')
}

/// Recognises UTF-16 by the zero bytes that its ASCII characters have on one side.
fn utf16_without_bom(bytes: &[u8]) -> Option<&'static Encoding> {
    let sample = bytes.get(..4096).unwrap_or(bytes);
    let pairs = sample.len() / 2;
    let zeros = |offset: usize| sample.iter().skip(offset).step_by(2).filter(|byte| **byte == 0).count();
    let (even, odd) = (zeros(0), zeros(1));
    if pairs < 4 {
        return None;
    }
    match (even * 10, odd * 10) {
        (0, odd) if odd > pairs * 4 => Some(UTF_16LE),
        (even, 0) if even > pairs * 4 => Some(UTF_16BE),
        _ => None,
    }
}

/// Returns the encoding that the media type or the HTML declares. A wrong UTF-8 declaration is known to be wrong here.
fn declared(bytes: &[u8], format: Format, media_type: Option<&str>) -> Option<&'static Encoding> {
    let of_type = media_type.and_then(|media_type| charset(media_type.as_bytes()));
    let of_html = || charset(bytes.get(..1024).unwrap_or(bytes)).filter(|_| format == Format::Html);
    of_type.or_else(of_html)
}

fn charset(text: &[u8]) -> Option<&'static Encoding> {
    let text = text.to_ascii_lowercase();
    let at = text.windows(8).position(|window| window == b"charset=")?;
    let value = text.get(at + 8..)?;
    let value = value.strip_prefix(b"\"").or_else(|| value.strip_prefix(b"'")).unwrap_or(value);
    let end = value.iter().position(|byte| !(byte.is_ascii_alphanumeric() || b"-_:".contains(byte)));
    Encoding::for_label(value.get(..end.unwrap_or(value.len()))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: &[u8]) -> Result<String, ReadError> {
        decode(bytes, Format::Text, None)
    }

    #[test]
    fn encodings_are_recognised() {
        let utf16 = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
        assert_eq!(text("Grüße".as_bytes()).unwrap(), "Grüße");
        assert_eq!(text(b"\xef\xbb\xbfGr\xc3\xbc\xc3\x9fe").unwrap(), "Grüße");
        assert_eq!(text(b"Gr\xfc\xdfe aus K\xf6ln").unwrap(), "Grüße aus Köln");
        assert_eq!(text(&[b"\xff\xfe".as_slice(), &utf16("Grüße")].concat()).unwrap(), "Grüße");
        assert_eq!(text(&utf16("Hello, world")).unwrap(), "Hello, world");
        let declared = decode(b"\xc3\xd2", Format::Text, Some("text/plain; charset=\"koi8-r\""));
        assert_eq!(declared.unwrap(), "цр");
        let html = decode(b"<meta charset='iso-8859-2'>\xb1", Format::Html, None);
        assert!(html.unwrap().ends_with('ą'));
    }

    #[test]
    fn bytes_that_are_no_text_are_rejected() {
        assert_eq!(text(b"\x7fELF\x02\x01\x01\0\0\0\0\0"), Err(ReadError::Binary));
        assert_eq!(text(b"text\0text"), Err(ReadError::Binary));
        assert_eq!(text(&(0..=255).collect::<Vec<u8>>()), Err(ReadError::Binary));
        assert_eq!(text(b"\xff\xfea"), Err(ReadError::Encoding("UTF-16LE")));
        assert!(matches!(text(b"\xff\xfe\0\0a\0\0\0"), Err(ReadError::Encoding(_))));
        let wrong = decode(b"\xff", Format::Text, Some("text/plain; charset=utf-8"));
        assert_eq!(wrong, Err(ReadError::Encoding("UTF-8")));
    }
}
