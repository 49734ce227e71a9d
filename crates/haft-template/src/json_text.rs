//! Values in JSON documents that are written as text.

/// The position of the writer in a JSON document.
#[derive(Debug, Default)]
pub(super) struct JsonState {
    in_string: bool,
    /// The number of missing characters of an escape.
    escape: u8,
}

impl JsonState {
    /// Returns whether a whole JSON value is allowed here.
    pub(super) fn takes_values(&self) -> bool {
        !self.in_string
    }

    pub(super) fn literal(&mut self, text: &str, out: &mut String) {
        out.push_str(text);
        for c in text.chars() {
            match (self.in_string, self.escape, c) {
                (true, 5, 'u') => self.escape = 4,
                (true, 5, _) => self.escape = 0,
                (true, 1..=4, _) => self.escape -= 1,
                // Five means that a backslash was read: after `u` four digits follow, otherwise none.
                (true, _, '\\') => self.escape = 5,
                (true, _, '"') => self.in_string = false,
                (false, _, '"') => self.in_string = true,
                _ => {}
            }
        }
    }

    pub(super) fn text_value(&mut self, text: &str, out: &mut String) -> Result<(), &'static str> {
        if self.escape != 0 && !text.is_empty() {
            return Err("it would complete a backslash escape of the template");
        }
        let quoted = serde_json::Value::String(text.to_owned()).to_string();
        if self.in_string {
            let inner = quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
            out.push_str(inner.unwrap_or_default());
        } else {
            out.push_str(&quoted);
        }
        Ok(())
    }
}
