//! Plain text: paragraphs between empty lines.

use super::{ReadError, output::Output};
use crate::BlockKind;

/// Reads plain text.
pub(super) fn read(source: &str, output: &mut Output<'_>) -> Result<(), ReadError> {
    let mut start = None;
    let mut at = 0;
    let mut end = 0;
    for line in source.split_inclusive('\n') {
        if line.trim().is_empty() {
            push(source, start.take(), end, output)?;
        } else {
            start.get_or_insert(at + (line.len() - line.trim_start().len()));
            end = at + line.trim_end().len();
        }
        at += line.len();
    }
    push(source, start, end, output)
}

fn push(source: &str, start: Option<usize>, end: usize, output: &mut Output<'_>) -> Result<(), ReadError> {
    let Some((start, text)) = start.and_then(|start| Some((start, source.get(start..end)?))) else {
        return Ok(());
    };
    output.push(BlockKind::Paragraph, text.to_owned(), start..end)
}
