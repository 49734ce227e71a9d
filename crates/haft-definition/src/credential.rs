//! Names of credentials in definitions.

use haft_core::redact::looks_like_key;

use crate::dialect::Fields;

/// Reads the name of a credential. Rejects a key in its place, which would be stored, listed and exported in plain text.
pub(crate) fn credential(fields: &mut Fields<'_>, key: &'static str) -> Option<String> {
    let name = fields.text(key)?;
    if looks_like_key(&name) {
        let message = "expected the name of a credential, found what seems to be a key; store the key with \
                       `haft secret set NAME` and write NAME here";
        fields.error(key, "secret", message);
        return None;
    }
    Some(name)
}
