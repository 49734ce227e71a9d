//! Opaque page tokens: where the next page of a list starts.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// The default page size.
pub const DEFAULT_SIZE: u32 = 50;
/// The maximum page size.
pub const MAX_SIZE: u32 = 500;

/// The error of a page token that was not created by [`encode`] for this list.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid page token for this list; use `next_page_token` of the previous page, or omit it")]
pub struct PageTokenError;

/// Creates the token of a position; `list` distinguishes tokens of different lists.
pub fn encode(list: &str, position: &str) -> String {
    URL_SAFE_NO_PAD.encode(format!("1\n{list}\n{position}"))
}

/// Returns the position of a token.
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
    fn foreign_tokens_are_rejected() {
        for bad in ["", "x", "!!!", "MQ", &encode("calls", "7"), &"A".repeat(2000)] {
            assert_eq!(decode("tools", bad), Err(PageTokenError), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn tokens_round_trip(position in ".{0,100}") {
            prop_assert_eq!(decode("tools", &encode("tools", &position)), Ok(position));
        }

        #[test]
        fn any_text_is_decoded_or_rejected(token in ".{0,200}") {
            let _ = decode("tools", &token);
        }
    }
}
