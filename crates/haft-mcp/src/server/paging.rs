//! Pages of lists.

use rmcp::ErrorData;

/// How many items one page of a list has.
pub(super) const PAGE_SIZE: usize = 200;

/// Returns one page of a list with the cursor of the next one; the cursor comes from the page before.
pub(super) fn page<T, W>(
    all: &[T],
    cursor: Option<&str>,
    write: impl Fn(&T) -> W,
) -> Result<(Vec<W>, Option<String>), ErrorData> {
    let start = match cursor {
        None => 0,
        Some(text) => text.parse().ok().filter(|start| *start <= all.len()).ok_or_else(|| {
            ErrorData::invalid_params("invalid cursor; list from the start without one", None)
        })?,
    };
    let end = all.len().min(start.saturating_add(PAGE_SIZE));
    let items = all.iter().skip(start).take(PAGE_SIZE).map(write).collect();
    Ok((items, (end < all.len()).then(|| end.to_string())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_has_pages() {
        let all: Vec<u32> = (0..450).collect();
        let (mut cursor, mut pages) = (None, Vec::new());
        loop {
            let (items, next) = page(&all, cursor.as_deref(), |number| *number).unwrap();
            pages.push(items.len());
            cursor = next;
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(pages, [200, 200, 50]);
        for wrong in ["x", "-1", "451", "99999999999999999999999", ""] {
            assert!(page(&all, Some(wrong), |number| *number).is_err(), "{wrong}");
        }
    }
}
