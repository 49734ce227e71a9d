//! Values as escapes of a Python literal.

use std::fmt::Write as _;

/// The kind of a literal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Literal {
    Text,
    Bytes,
}

/// Writes a text for any literal of that kind that is not raw.
pub(super) fn escape(text: &str, literal: Literal, out: &mut String) {
    match literal {
        Literal::Text => {
            for (index, c) in text.chars().enumerate() {
                // The first one is always escaped: it could complete an escape before it, such as `\1`.
                let written = match u32::from(c) {
                    _ if index > 0 && is_plain(c) => {
                        out.push(c);
                        Ok(())
                    }
                    code @ 0..=0xff => write!(out, "\\x{code:02x}"),
                    code @ 0x100..=0xffff => write!(out, "\\u{code:04x}"),
                    code => write!(out, "\\U{code:08x}"),
                };
                debug_assert!(written.is_ok(), "writing to a string cannot fail");
            }
        }
        Literal::Bytes => {
            for (index, byte) in text.bytes().enumerate() {
                if index > 0 && is_plain(char::from(byte)) {
                    out.push(char::from(byte));
                } else {
                    let written = write!(out, "\\x{byte:02x}");
                    debug_assert!(written.is_ok(), "writing to a string cannot fail");
                }
            }
        }
    }
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == ' '
}
