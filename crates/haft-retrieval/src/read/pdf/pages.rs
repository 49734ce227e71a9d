//! Reads the pages of a file.

use super::file::File;
use super::{font, text};
use crate::BlockKind;
use crate::read::output::{Output, squeeze};
use crate::read::{Format, ReadError};

/// Returns the error of a damaged file.
pub(super) const fn damaged(problem: &'static str) -> ReadError {
    ReadError::Damaged { format: Format::Pdf, problem }
}

/// Reads a PDF.
pub(in crate::read) fn read(bytes: &[u8], output: &mut Output<'_>) -> Result<(), ReadError> {
    let mut file = File::open(bytes, output.limits, output.deadline)?;
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
