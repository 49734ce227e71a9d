//! What a source returned.

use std::collections::BTreeMap;

use haft_core::problem::excerpt;
use haft_core::secret::{ExternalSecretError, Secret};
use serde_json::{Map, Value};

/// The maximum size of a value in bytes.
pub(super) const MAX_VALUE_BYTES: usize = 64 * 1024;

/// The keys that stand for the whole secret, in order of precedence; the same as of stored credentials.
const USUAL_KEYS: [&str; 5] = ["value", "api_key", "token", "password", "secret"];

/// What a source returned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SecretValue {
    /// A text.
    Text(Secret),
    /// A text for each key.
    Fields(BTreeMap<String, Secret>),
}

impl SecretValue {
    /// Reads a text, without the line breaks at its end.
    pub(super) fn from_bytes(bytes: Vec<u8>) -> Result<Self, ExternalSecretError> {
        if bytes.len() > MAX_VALUE_BYTES {
            return Err(ExternalSecretError::TooLarge(MAX_VALUE_BYTES));
        }
        let mut text = String::from_utf8(bytes).map_err(|_| ExternalSecretError::NotText)?;
        text.truncate(text.trim_end_matches(['\n', '\r']).len());
        if text.is_empty() { Err(ExternalSecretError::Empty) } else { Ok(Self::Text(Secret::new(text))) }
    }

    /// Returns the text, or that of a key; without a key, that of the usual one.
    pub(super) fn select(&self, key: Option<&str>) -> Result<Secret, ExternalSecretError> {
        let fields = match self {
            Self::Text(text) => return Ok(text.clone()),
            Self::Fields(fields) => fields,
        };
        let found = if let Some(key) = key {
            fields.get(key).ok_or_else(|| ExternalSecretError::NoKey(excerpt(key, 80)))?
        } else {
            let usual = USUAL_KEYS.iter().find_map(|key| fields.get(*key));
            let only = || fields.values().next().filter(|_| fields.len() == 1);
            usual.or_else(only).ok_or(ExternalSecretError::SeveralKeys)?
        };
        if found.expose().is_empty() { Err(ExternalSecretError::Empty) } else { Ok(found.clone()) }
    }

    /// Returns the text, or that of a key; without a key, all keys as a JSON object.
    pub(super) fn credential(&self, key: Option<&str>) -> Result<Secret, ExternalSecretError> {
        match (self, key) {
            (Self::Fields(fields), None) => {
                let fields = fields.iter().map(|(name, value)| (name.clone(), Value::from(value.expose())));
                Ok(Secret::new(Value::Object(fields.collect::<Map<_, _>>()).to_string()))
            }
            (Self::Text(_), _) | (Self::Fields(_), Some(_)) => self.select(key),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(pairs: &[(&str, &str)]) -> SecretValue {
        let pairs = pairs.iter().map(|(name, text)| ((*name).to_owned(), Secret::new((*text).to_owned())));
        SecretValue::Fields(pairs.collect())
    }

    #[test]
    fn a_key_or_the_usual_one_is_selected() {
        let select = |value: &SecretValue, key: Option<&str>| {
            value.select(key).map(|secret| secret.expose().to_owned()).map_err(|error| error.to_string())
        };
        let both = fields(&[("username", "ada"), ("password", "pw")]);
        assert_eq!(select(&both, Some("username")), Ok("ada".to_owned()));
        assert_eq!(select(&both, None), Ok("pw".to_owned()));
        assert_eq!(select(&both, Some("port")), Err("the secret has no key `port`".to_owned()));
        assert_eq!(select(&fields(&[("a", "1")]), None), Ok("1".to_owned()));
        let several = "the secret has several keys; name one, as in `vault:PATH#KEY`";
        assert_eq!(select(&fields(&[("a", "1"), ("b", "2")]), None), Err(several.to_owned()));
        assert_eq!(select(&fields(&[("a", "")]), None), Err("the value is empty".to_owned()));
        let all = both.credential(None).unwrap();
        assert_eq!(all.expose(), r#"{"password":"pw","username":"ada"}"#);
        assert_eq!(both.credential(Some("password")).unwrap().expose(), "pw");
    }

    #[test]
    fn a_text_loses_the_line_breaks_at_its_end() {
        let read = |bytes: &[u8]| match SecretValue::from_bytes(bytes.to_vec()) {
            Ok(value) => value.select(None).unwrap().expose().to_owned(),
            Err(error) => error.to_string(),
        };
        assert_eq!(read(b"key\n"), "key");
        assert_eq!(read(b" a\nb \r\n"), " a\nb ");
        assert_eq!(read(b"\n"), "the value is empty");
        assert_eq!(read(b"\xff\xfe"), "the value is not UTF-8 text");
        assert_eq!(read(&vec![b'x'; MAX_VALUE_BYTES + 1]), "the value exceeds the limit of 65536 bytes");
    }
}
