//! CSV: the first record has the names of the columns, every other one is a row.

use std::ops::Range;

use super::output::{Output, squeeze};
use super::table::Table;
use super::{Format, ReadError};
use crate::BlockKind;

/// The maximum number of columns.
const MAX_COLUMNS: usize = 10_000;

/// Reads CSV. The delimiter is the one that the first line has most of.
pub(super) fn read(source: &str, file_name: Option<&str>, output: &mut Output<'_>) -> Result<(), ReadError> {
    let is_tsv = file_name.is_some_and(|name| name.to_ascii_lowercase().ends_with(".tsv"));
    let delimiter =
        if is_tsv { b'\t' } else { delimiter(source.lines().find(|line| !line.trim().is_empty())) };
    let mut records = Records { source, at: 0, line: 1, delimiter };
    let mut table = Table::default();
    let mut header_range = 0..0;
    while let Some((cells, range)) = records.next()? {
        if cells.iter().all(String::is_empty) {
            continue;
        }
        if table.has_header() {
            output.push(BlockKind::TableRow, table.row(&cells), range)?;
        } else {
            table.set_header(cells);
            header_range = range;
        }
    }
    if output.blocks.is_empty() {
        output.push(BlockKind::TableRow, table.header_text(), header_range)?;
    }
    Ok(())
}

fn delimiter(line: Option<&str>) -> u8 {
    let line = line.unwrap_or_default();
    let count = |delimiter: u8| line.matches(char::from(delimiter)).count();
    let candidates = [b'|', b'\t', b';', b','];
    candidates
        .into_iter()
        .max_by_key(|delimiter| count(*delimiter))
        .filter(|best| count(*best) > 0)
        .unwrap_or(b',')
}

struct Records<'a> {
    source: &'a str,
    at: usize,
    line: usize,
    delimiter: u8,
}

/// The cells of a record and its range.
type Record = (Vec<String>, Range<usize>);

impl Records<'_> {
    /// Returns the cells of the next record and its range.
    fn next(&mut self) -> Result<Option<Record>, ReadError> {
        let start = self.at;
        if start >= self.source.len() {
            return Ok(None);
        }
        let mut cells = Vec::new();
        loop {
            let (cell, end) = self.cell()?;
            cells.push(squeeze(&cell));
            if cells.len() > MAX_COLUMNS {
                return Err(self.error(format!("more than {MAX_COLUMNS} columns")));
            }
            if end != Some(self.delimiter) {
                let record = self.source.get(start..self.at).unwrap_or_default().trim_end();
                return Ok(Some((cells, start..start + record.len())));
            }
        }
    }

    /// Returns the next cell and the byte that ends it, which is passed over.
    fn cell(&mut self) -> Result<(String, Option<u8>), ReadError> {
        let bytes = self.source.as_bytes();
        let mut cell = String::new();
        if bytes.get(self.at) == Some(&b'"') {
            let opened = self.line;
            self.at += 1;
            loop {
                let Some(length) = self.source.get(self.at..).and_then(|rest| rest.find('"')) else {
                    self.line = opened;
                    return Err(self.error("quoted field is not closed".to_owned()));
                };
                let part = self.source.get(self.at..self.at + length).unwrap_or_default();
                self.line += part.matches('\n').count();
                cell.push_str(part);
                self.at += length + 1;
                if bytes.get(self.at) != Some(&b'"') {
                    break;
                }
                cell.push('"');
                self.at += 1;
            }
        }
        let rest = bytes.get(self.at..).unwrap_or_default();
        let length =
            rest.iter().position(|byte| *byte == self.delimiter || *byte == b'\n').unwrap_or(rest.len());
        cell.push_str(self.source.get(self.at..self.at + length).unwrap_or_default());
        let end = rest.get(length).copied();
        self.line += usize::from(end == Some(b'\n'));
        self.at += length + usize::from(end.is_some());
        Ok((cell, end))
    }

    fn error(&self, problem: String) -> ReadError {
        ReadError::InvalidLine { format: Format::Csv, line: self.line, problem }
    }
}
