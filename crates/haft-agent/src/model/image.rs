//! Images in requests and answers.

use serde::{Deserialize, Serialize};

/// Where the bytes of an image are.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ImageSource {
    /// In the message.
    Base64 {
        /// The media type, such as `image/png`.
        media_type: String,
        /// The bytes in base64.
        data: String,
    },
    /// At an address that the provider fetches.
    Url {
        /// The address.
        url: String,
    },
}

impl std::fmt::Debug for ImageSource {
    /// Shows the size of an image and not its bytes.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Base64 { media_type, data } => write!(f, "Base64({media_type}, {} characters)", data.len()),
            Self::Url { url } => write!(f, "Url({url})"),
        }
    }
}

impl ImageSource {
    /// Reads an address; a `data:` URL becomes the bytes in it.
    pub fn from_url(url: &str) -> Self {
        let inline = url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
        match inline {
            Some((media_type, data)) => {
                Self::Base64 { media_type: media_type.to_owned(), data: data.to_owned() }
            }
            None => Self::Url { url: url.to_owned() },
        }
    }

    /// Returns an address; bytes become a `data:` URL.
    pub fn to_url(&self) -> String {
        match self {
            Self::Base64 { media_type, data } => format!("data:{media_type};base64,{data}"),
            Self::Url { url } => url.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_urls_become_bytes_and_back() {
        for url in ["data:image/png;base64,iVBORw0K", "https://example.com/a.png", "data:text/plain,x"] {
            assert_eq!(ImageSource::from_url(url).to_url(), url);
        }
        let bytes = ImageSource::Base64 { media_type: "image/png".to_owned(), data: "iVBORw0K".to_owned() };
        assert_eq!(ImageSource::from_url("data:image/png;base64,iVBORw0K"), bytes);
        assert_eq!(format!("{bytes:?}"), "Base64(image/png, 8 characters)");
    }
}
