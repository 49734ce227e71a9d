//! The text of PDF files.
//!
//! The reader is our own, because a hostile file must not hang or exhaust the server: it finds objects by scanning, never
//! follows offsets, and counts every decompressed byte, every resolved reference and every operator against a limit.
//! It reads text only: no images, no scripts, no decryption.

mod encoding;
mod file;
mod font;
mod lexer;
#[cfg(test)]
mod pdf_tests;
mod text;

use super::output::{Output, squeeze};
use super::{Format, ReadError};
use crate::BlockKind;
use file::File;

const fn damaged(problem: &'static str) -> ReadError {
    ReadError::Damaged { format: Format::Pdf, problem }
}

/// Reads a PDF.
pub(super) fn read(bytes: &[u8], output: &mut Output<'_>) -> Result<(), ReadError> {
    let mut file = File::open(bytes, output.limits)?;
    if let Some(title) = file.title() {
        output.set_title(&title);
    }
    let pages = file.pages()?;
    if pages.is_empty() {
        return Err(damaged("it has no pages"));
    }
    let mut fonts = font::Fonts::default();
    for (number, page) in pages.iter().enumerate() {
        let number = u32::try_from(number + 1).unwrap_or(u32::MAX);
        for paragraph in text::paragraphs(&mut file, page, &mut fonts)? {
            output.append(BlockKind::Paragraph, squeeze(&paragraph), Some(number))?;
        }
    }
    file.check_work()
}
