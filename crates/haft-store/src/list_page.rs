//! A page of a list that is ordered by name.

/// Which items of a list to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListPage {
    /// The name of the last item before the page.
    pub after: Option<String>,
    /// How many further items are left out.
    pub skip: u32,
    /// The largest number of items.
    pub limit: u32,
}

impl ListPage {
    /// The whole list.
    pub const ALL: ListPage = ListPage { after: None, skip: 0, limit: i32::MAX.unsigned_abs() };

    /// Returns the end of a query whose first parameter is the tenant: `$2` is the name before the page.
    pub(crate) fn sql(&self, column: &str) -> String {
        format!("AND {column} > $2 ORDER BY {column} LIMIT {} OFFSET {}", self.limit, self.skip)
    }

    /// Returns the value of `$2`: every name is after the empty one.
    pub(crate) fn start(&self) -> &str {
        self.after.as_deref().unwrap_or_default()
    }
}
