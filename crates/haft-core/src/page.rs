//! Opaque page tokens: where the next page of a list starts.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// The size of a page where none is asked for.
pub const DEFAULT_SIZE: u32 = 50;
/// The largest page.
pub const MAX_SIZE: u32 = 500;

/// Says that a token was not made by [`encode`] for this list.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the page token is not one of this list; take it from `next_page_token` of the page before, or leave it out"
)]
pub struct PageTokenError;

/// Makes the token of a position in a list; `list` keeps tokens of different lists apart.
pub fn encode(list: &str, position: &str) -> String {
    URL_SAFE_NO_PAD.encode(format!("1\n{list}\n{position}"))
}

/// Reads a token back to its position.
pub fn decode(list: &str, token: &str) -> Result<String, PageTokenError> {
    if token.len() > 1024 {
        return Err(PageTokenError);
    }
    let bytes = URL_SAFE_NO_PAD.decode(token).map_err(|_| PageTokenError)?;
    let text = String::from_utf8(bytes).map_err(|_| PageTokenError)?;
    let rest = text.strip_prefix("1\n").ok_or(PageTokenError)?;
    let position = rest.strip_prefix(list).and_then(|rest| rest.strip_prefix('\n')).ok_or(PageTokenError)?;
    Ok(position.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn foreign_tokens_are_refused() {
        for bad in ["", "x", "!!!", "MQ", &encode("calls", "7"), &"A".repeat(2000)] {
            assert_eq!(decode("tools", bad), Err(PageTokenError), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn tokens_are_read_back(position in ".{0,100}") {
            prop_assert_eq!(decode("tools", &encode("tools", &position)), Ok(position));
        }

        #[test]
        fn any_text_is_refused_or_read(token in ".{0,200}") {
            let _ = decode("tools", &token);
        }
    }
}
