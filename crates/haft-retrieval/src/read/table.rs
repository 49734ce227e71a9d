//! Rows of tables as text that can be read without the table.

/// The names of the columns of a table.
#[derive(Debug, Default)]
pub(super) struct Table {
    header: Option<Vec<String>>,
}

impl Table {
    /// Sets the names of the columns.
    pub(super) fn set_header(&mut self, cells: Vec<String>) {
        self.header = Some(cells);
    }

    /// Tells whether the names of the columns are known.
    pub(super) fn has_header(&self) -> bool {
        self.header.is_some()
    }

    /// Returns the cells of a header as text, for a table without rows.
    pub(super) fn header_text(&self) -> String {
        self.header.as_deref().unwrap_or_default().join(" | ")
    }

    /// Returns a row as `name: value | name: value`; empty cells are left out.
    pub(super) fn row(&self, cells: &[String]) -> String {
        let header = self.header.as_deref().unwrap_or_default();
        let mut text = String::new();
        for (column, cell) in cells.iter().enumerate() {
            if cell.is_empty() {
                continue;
            }
            if !text.is_empty() {
                text.push_str(" | ");
            }
            if let Some(name) = header.get(column).filter(|name| !name.is_empty()) {
                text.push_str(name);
                text.push_str(": ");
            }
            text.push_str(cell);
        }
        text
    }
}
