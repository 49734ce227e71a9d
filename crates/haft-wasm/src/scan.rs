//! Checks a module before it is compiled: its format, and the limits of the compiler.
//!
//! The compiler needs more than linear time for a long function and cannot be interrupted, so the size of functions is
//! limited.

use wasmparser::{Encoding, Parser, Payload};

/// The size limit of a function in bytes. Real programs stay far below it.
const MAX_FUNCTION_BYTES: usize = 512 * 1024;
/// How many functions a module can have.
const MAX_FUNCTIONS: usize = 200_000;
/// How deep components can nest.
const MAX_NESTING: usize = 8;

/// The format of a binary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Module,
    Component,
}

/// Why a binary is rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ScanError {
    #[error("not a WebAssembly binary: it does not start with `\\0asm`{0}")]
    Foreign(&'static str),
    #[error("damaged or truncated at byte {0}: {1}")]
    Damaged(u64, String),
    #[error("function size limit ({MAX_FUNCTION_BYTES} bytes) exceeded: {0} bytes")]
    LongFunction(usize),
    #[error("function count limit ({MAX_FUNCTIONS}) exceeded")]
    ManyFunctions,
    #[error("component nesting limit ({MAX_NESTING}) exceeded")]
    Deep,
}

/// Parses the structure; the compiler checks function bodies.
pub(crate) fn scan(bytes: &[u8]) -> Result<Format, ScanError> {
    if !bytes.starts_with(b"\0asm") {
        return Err(ScanError::Foreign(guess_format(bytes)));
    }
    let mut format = None;
    let (mut functions, mut depth) = (0_usize, 0_usize);
    for payload in Parser::new(0).parse_all(bytes) {
        let payload =
            payload.map_err(|error| ScanError::Damaged(error.offset() as u64, error.message().to_owned()))?;
        match payload {
            Payload::Version { encoding, .. } => {
                depth += 1;
                if depth > MAX_NESTING {
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
                if length > MAX_FUNCTION_BYTES {
                    return Err(ScanError::LongFunction(length));
                }
                if functions > MAX_FUNCTIONS {
                    return Err(ScanError::ManyFunctions);
                }
            }
            _ => {}
        }
    }
    format.ok_or_else(|| ScanError::Damaged(0, "empty".to_owned()))
}

/// Recognizes other common formats.
fn guess_format(bytes: &[u8]) -> &'static str {
    let text = std::str::from_utf8(bytes.get(..64).unwrap_or(bytes)).unwrap_or_default().trim_start();
    if bytes.is_empty() {
        " (empty)"
    } else if text.starts_with("(module") || text.starts_with("(component") {
        " (text format; convert it with `wasm-tools parse`)"
    } else if bytes.starts_with(b"\x7fELF") {
        " (native executable; build it for `wasm32-wasip2`)"
    } else {
        ""
    }
}
