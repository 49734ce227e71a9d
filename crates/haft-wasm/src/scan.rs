//! Looks at a module before it is compiled: what it is, and whether the compiler can bear it.
//!
//! The compiler needs more than linear time for a long function, and nothing can interrupt it, so the size of
//! functions is bounded before it starts.

use wasmparser::{Encoding, Parser, Payload};

/// The largest function in bytes. Real programs stay far below it.
const FUNCTION: usize = 512 * 1024;
/// The most functions.
const FUNCTIONS: usize = 200_000;
/// How deep components may nest.
const NESTED: usize = 8;

/// What the bytes are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Module,
    Component,
}

/// Why the bytes are not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ScanError {
    #[error("is not WebAssembly: it does not begin with `\\0asm`{0}")]
    Foreign(&'static str),
    #[error("is damaged or cut off at byte {0}: {1}")]
    Damaged(u64, String),
    #[error("has a function of {0} bytes, more than the {FUNCTION} that are compiled")]
    LongFunction(usize),
    #[error("has more than {FUNCTIONS} functions")]
    ManyFunctions,
    #[error("has components nested deeper than {NESTED}")]
    Deep,
}

/// Reads the structure; the bodies of functions are left to the compiler.
pub(crate) fn scan(bytes: &[u8]) -> Result<Format, ScanError> {
    if !bytes.starts_with(b"\0asm") {
        return Err(ScanError::Foreign(guess(bytes)));
    }
    let mut format = None;
    let (mut functions, mut depth) = (0_usize, 0_usize);
    for payload in Parser::new(0).parse_all(bytes) {
        let payload =
            payload.map_err(|error| ScanError::Damaged(error.offset() as u64, error.message().to_owned()))?;
        match payload {
            Payload::Version { encoding, .. } => {
                depth += 1;
                if depth > NESTED {
                    return Err(ScanError::Deep);
                }
                format.get_or_insert(match encoding {
                    Encoding::Module => Format::Module,
                    Encoding::Component => Format::Component,
                });
            }
            Payload::End(_) => depth = depth.saturating_sub(1),
            Payload::CodeSectionEntry(body) => {
                functions += 1;
                let length = body.range().len();
                if length > FUNCTION {
                    return Err(ScanError::LongFunction(length));
                }
                if functions > FUNCTIONS {
                    return Err(ScanError::ManyFunctions);
                }
            }
            _ => {}
        }
    }
    format.ok_or_else(|| ScanError::Damaged(0, "it is empty".to_owned()))
}

/// Says what people often give instead.
fn guess(bytes: &[u8]) -> &'static str {
    let text = std::str::from_utf8(bytes.get(..64).unwrap_or(bytes)).unwrap_or_default().trim_start();
    if bytes.is_empty() {
        " (it is empty)"
    } else if text.starts_with("(module") || text.starts_with("(component") {
        " (it looks like the text format; convert it with `wasm-tools parse`)"
    } else if bytes.starts_with(b"\x7fELF") {
        " (it is compiled code of a machine; build it for `wasm32-wasip2`)"
    } else {
        ""
    }
}
