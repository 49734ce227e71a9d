//! Puts the data of a result into an HTML page.

use std::fmt::Write as _;

use serde_json::Value;

/// Inserts the data as `window.__TOOL_DATA__`: at the end of the head, or else before everything.
pub fn with_data(page: &str, data: &Value) -> String {
    let script = format!("<script>window.__TOOL_DATA__ = {};</script>", script_text(data));
    let lower = page.to_ascii_lowercase();
    let position = lower.find("</head>").or_else(|| after_tag(&lower, "<body")).unwrap_or(0);
    let (before, after) = page.split_at(position);
    format!("{before}{script}{after}")
}

/// Returns the position after an opening tag.
fn after_tag(page: &str, tag: &str) -> Option<usize> {
    let start = page.find(tag)?;
    page.get(start..)?.find('>').map(|end| start + end + 1)
}

/// Writes JSON so that it cannot end the script element or the line.
fn script_text(data: &Value) -> String {
    let mut text = String::new();
    for character in data.to_string().chars() {
        match character {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                // Writing to a text cannot fail.
                let _ = write!(text, "\\u{:04x}", u32::from(character));
            }
            other => text.push(other),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_data_is_in_the_head_or_at_the_start() {
        let data = json!({"a": 1});
        let script = "<script>window.__TOOL_DATA__ = {\"a\":1};</script>";
        assert_eq!(
            with_data("<HEAD><title>x</title></HEAD>", &data),
            format!("<HEAD><title>x</title>{script}</HEAD>")
        );
        assert_eq!(with_data("<body class=x>y", &data), format!("<body class=x>{script}y"));
        assert_eq!(with_data("text", &data), format!("{script}text"));
        assert_eq!(with_data("", &data), script);
    }

    #[test]
    fn data_cannot_leave_its_script() {
        let hostile = json!({"a": "</script><script>alert(1)//\u{2028}<!--", "b": "&amp;"});
        let page = with_data("", &hostile);
        assert_eq!(page.matches("</script>").count(), 1, "{page}");
        assert!(!page.contains('\u{2028}') && !page.contains("<!--"), "{page}");
        let start = page.find('{').unwrap();
        let text = &page[start..=page.rfind('}').unwrap()];
        assert_eq!(serde_json::from_str::<Value>(text).unwrap(), hostile);
    }
}
