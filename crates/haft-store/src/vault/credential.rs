//! A credential: a plain value or fields, and what it is for.

use std::collections::BTreeMap;

use haft_core::Timestamp;
use haft_core::catalog::StoreError;
use haft_core::problem::Problem;
use haft_core::secret::{MASK, Secret, SecretError};
use serde_json::{Map, Value};

/// The category of a credential that names none.
pub const DEFAULT_CATEGORY: &str = "custom";

const MAX_NAME_BYTES: usize = 128;
const MAX_VALUE_BYTES: usize = 64 * 1024;
/// The maximum number of fields.
const MAX_FIELDS: usize = 32;
/// The longest category, provider key or variant.
const MAX_KEY_BYTES: usize = 64;
/// The longest description, in characters.
const MAX_DESCRIPTION: usize = 500;
/// The fields that `${NAME}` stands for, in order of precedence.
const PRIMARY_FIELDS: [&str; 5] = ["value", "api_key", "token", "password", "secret"];

/// A credential to store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credential {
    /// The secret.
    pub value: CredentialValue,
    /// Its purpose.
    pub purpose: CredentialPurpose,
}

/// The secret of a credential.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CredentialValue {
    /// One value.
    Plain(Secret),
    /// Several values by name, such as `client_id` and `client_secret`.
    Fields(BTreeMap<String, Secret>),
}

/// What a credential is for. Tools find it by this if they do not name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CredentialPurpose {
    /// The category, such as `custom` or `llm_provider`.
    pub category: String,
    /// The provider, such as `web_search`.
    pub provider_key: Option<String>,
    /// The variant of the provider, such as `serper`.
    pub provider_variant: Option<String>,
    /// A description for people.
    pub description: String,
}

impl Default for CredentialPurpose {
    fn default() -> Self {
        Self {
            category: DEFAULT_CATEGORY.to_owned(),
            provider_key: None,
            provider_variant: None,
            description: String::new(),
        }
    }
}

impl CredentialPurpose {
    /// Returns whether it is for a provider.
    pub(super) fn is_for(&self, category: &str, key: &str, variant: Option<&str>) -> bool {
        self.category == category
            && self.provider_key.as_deref() == Some(key)
            && self.provider_variant.as_deref() == variant
    }
}

/// A credential without its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CredentialInfo {
    /// Its name, as in `${NAME}`.
    pub name: String,
    /// Its purpose.
    pub purpose: CredentialPurpose,
    /// The names of its fields; `None` for a plain value.
    pub fields: Option<Vec<String>>,
    /// When it was first stored.
    pub created_at: Timestamp,
    /// When it last changed.
    pub modified_at: Timestamp,
    /// Why it cannot be decrypted, and the fix.
    pub error: Option<String>,
}

impl Credential {
    /// Creates a credential with a plain value.
    pub fn plain(value: Secret) -> Self {
        Self { value: CredentialValue::Plain(value), purpose: CredentialPurpose::default() }
    }

    /// Returns the names of its fields.
    pub(super) fn field_names(&self) -> Option<Vec<&str>> {
        match &self.value {
            CredentialValue::Plain(_) => None,
            CredentialValue::Fields(fields) => Some(fields.keys().map(String::as_str).collect()),
        }
    }

    /// Returns the text that is encrypted: the value, or the fields as a JSON object.
    pub(super) fn text(&self) -> Secret {
        match &self.value {
            CredentialValue::Plain(value) => value.clone(),
            CredentialValue::Fields(fields) => {
                let fields: Map<String, Value> =
                    fields.iter().map(|(name, value)| (name.clone(), value.expose().into())).collect();
                Secret::new(Value::Object(fields).to_string())
            }
        }
    }

    /// Checks the name and the content.
    pub(super) fn check(&self, name: &str) -> Result<(), StoreError> {
        let mut problems = Vec::new();
        check_name(name, &mut problems);
        match &self.value {
            CredentialValue::Plain(value) => check_value("value", value, &mut problems),
            CredentialValue::Fields(fields) => check_fields(fields, &mut problems),
        }
        let purpose = &self.purpose;
        let keys = [
            ("category", Some(&purpose.category)),
            ("provider_key", purpose.provider_key.as_ref()),
            ("provider_variant", purpose.provider_variant.as_ref()),
        ];
        for (field, text) in keys {
            if text.is_some_and(|text| !is_key(text)) {
                let message =
                    format!("expected 1 to {MAX_KEY_BYTES} lower-case letters, digits, `_`, `-` or `.`");
                problems.push(Problem::new(field, "invalid_name", message));
            }
        }
        if purpose.provider_variant.is_some() && purpose.provider_key.is_none() {
            let message = "a variant needs a `provider_key`";
            problems.push(Problem::new("provider_variant", "missing_field", message));
        }
        if purpose.description.chars().count() > MAX_DESCRIPTION {
            let message = format!("exceeds the limit of {MAX_DESCRIPTION} characters");
            problems.push(Problem::new("description", "too_large", message));
        }
        if problems.is_empty() { Ok(()) } else { Err(StoreError::Invalid(problems)) }
    }
}

fn check_name(name: &str, problems: &mut Vec<Problem>) {
    let mut letters = name.chars();
    let start = letters.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    let rest = letters.all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-'));
    if !start || !rest || name.len() > MAX_NAME_BYTES {
        let message = format!(
            "invalid name: start with a letter or `_`, continue with letters, digits, `_`, `.` or `-`; at most {MAX_NAME_BYTES} characters"
        );
        problems.push(Problem::new("name", "invalid_name", message));
    }
}

fn check_value(field: &str, value: &Secret, problems: &mut Vec<Problem>) {
    if value.expose().is_empty() {
        problems.push(Problem::new(field, "empty", "the value is empty"));
    } else if value.expose() == MASK {
        problems.push(Problem::new(
            field,
            "masked",
            "`***` is the mask of a hidden value; pass the value itself",
        ));
    } else if value.expose().len() > MAX_VALUE_BYTES {
        let message = format!("{} bytes exceed the limit of {MAX_VALUE_BYTES}", value.expose().len());
        problems.push(Problem::new(field, "too_large", message));
    }
}

fn check_fields(fields: &BTreeMap<String, Secret>, problems: &mut Vec<Problem>) {
    if fields.is_empty() || fields.len() > MAX_FIELDS {
        let message = format!("expected 1 to {MAX_FIELDS} fields, found {}", fields.len());
        problems.push(Problem::new("payload", "invalid_value", message));
    }
    for (name, value) in fields.iter().take(MAX_FIELDS) {
        let is_name = !name.is_empty()
            && name.len() <= MAX_KEY_BYTES
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if !is_name {
            let message = format!("invalid field name: expected 1 to {MAX_KEY_BYTES} letters, digits or `_`");
            problems.push(Problem::new("payload", "invalid_name", message));
            continue;
        }
        check_value(&format!("payload.{name}"), value, problems);
    }
    let size: usize = fields.values().map(|value| value.expose().len()).sum();
    if size > MAX_VALUE_BYTES {
        let message = format!("{size} bytes exceed the limit of {MAX_VALUE_BYTES}");
        problems.push(Problem::new("payload", "too_large", message));
    }
}

fn is_key(text: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '-' | '.');
    !text.is_empty() && text.len() <= MAX_KEY_BYTES && text.chars().all(is_letter)
}

/// A decrypted credential.
pub(super) struct OpenCredential {
    /// The value, or the fields as a JSON object.
    pub(super) text: Secret,
    fields: Option<BTreeMap<String, Secret>>,
    pub(super) purpose: CredentialPurpose,
    pub(super) modified_at: Timestamp,
}

impl OpenCredential {
    pub(super) fn new(
        text: Secret,
        is_structured: bool,
        purpose: CredentialPurpose,
        modified_at: Timestamp,
    ) -> Self {
        let fields: Option<BTreeMap<String, String>> =
            is_structured.then(|| serde_json::from_str(text.expose()).unwrap_or_default());
        let fields =
            fields.map(|fields| fields.into_iter().map(|(name, value)| (name, Secret::new(value))).collect());
        Self { text, fields, purpose, modified_at }
    }

    /// Returns the value of a field.
    pub(super) fn field(&self, name: &str) -> Option<&Secret> {
        self.fields.as_ref()?.get(name)
    }

    /// Returns the value that the name alone stands for.
    pub(super) fn primary(&self, name: &str) -> Result<Secret, SecretError> {
        let Some(fields) = &self.fields else { return Ok(self.text.clone()) };
        let named = PRIMARY_FIELDS.iter().find_map(|field| fields.get(*field));
        let only = || fields.values().next().filter(|_| fields.len() == 1);
        named.or_else(only).cloned().ok_or_else(|| {
            let names: Vec<String> = fields.keys().map(|field| format!("`${{{name}.{field}}}`")).collect();
            let source = format!("it has several fields; name one: {}", names.join(", "));
            SecretError { name: name.to_owned(), source: source.into() }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(text: &str) -> Secret {
        Secret::new(text.to_owned())
    }

    fn structured(fields: &[(&str, &str)]) -> Credential {
        let fields = fields.iter().map(|(name, value)| ((*name).to_owned(), secret(value))).collect();
        Credential { value: CredentialValue::Fields(fields), purpose: CredentialPurpose::default() }
    }

    #[test]
    fn the_name_alone_stands_for_the_primary_field() {
        let primary = |fields: &[(&str, &str)]| {
            let text = structured(fields).text();
            let open = OpenCredential::new(text, true, CredentialPurpose::default(), Timestamp::UNIX_EPOCH);
            open.primary("x").map(|value| value.expose().to_owned()).map_err(|error| error.source.to_string())
        };
        assert_eq!(primary(&[("endpoint", "e"), ("token", "t")]), Ok("t".to_owned()));
        assert_eq!(primary(&[("token", "t"), ("api_key", "k")]), Ok("k".to_owned()));
        assert_eq!(primary(&[("other", "o")]), Ok("o".to_owned()));
        assert_eq!(
            primary(&[("a", "1"), ("b", "2")]),
            Err("it has several fields; name one: `${x.a}`, `${x.b}`".to_owned())
        );
    }

    #[test]
    fn invalid_fields_are_named() {
        let problems = |credential: Credential| credential.check("x").map_err(|error| error.to_string());
        assert_eq!(problems(structured(&[("api_key", "k")])), Ok(()));
        let error = problems(structured(&[("api_key", ""), ("a b", "x")])).unwrap_err();
        assert!(error.contains("`payload.api_key`") && error.contains("invalid field name"), "{error}");
        assert!(problems(structured(&[])).unwrap_err().contains("1 to 32 fields"));
        let mut credential = structured(&[("a", "b")]);
        credential.purpose.provider_variant = Some("serper".to_owned());
        credential.purpose.category = "My Category".to_owned();
        let error = problems(credential).unwrap_err();
        assert!(error.contains("`category`") && error.contains("`provider_key`"), "{error}");
    }
}
