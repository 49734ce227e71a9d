//! What was passed on of an answer while the model writes it.

/// The text of one answer that was passed on in pieces. A watcher that comes late, or on another node, gets the whole
/// answer at its end only; [`SentText::rest`] is what it has not got yet.
#[derive(Debug, Default)]
pub struct SentText(String);

impl SentText {
    /// Notes a piece.
    pub fn add(&mut self, piece: &str) {
        self.0.push_str(piece);
    }

    /// Ends the answer: returns the rest of its text. If pieces in the middle were missed, that is nothing.
    pub fn rest<'a>(&mut self, whole: &'a str) -> &'a str {
        let sent = std::mem::take(&mut self.0);
        whole.strip_prefix(sent.as_str()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_is_what_was_not_passed_on() {
        let mut sent = SentText::default();
        assert_eq!(sent.rest("whole"), "whole");
        sent.add("Let ");
        sent.add("me");
        assert_eq!(sent.rest("Let me look."), " look.");
        sent.add("me look.");
        assert_eq!(sent.rest("Let me look."), "");
        assert_eq!(sent.rest("next"), "next");
    }
}
