//! Addresses of model servers in exported files: secrets become `${VAR}`.

use haft_core::redact::is_sensitive_parameter;
use url::Url;

/// Returns the address of a model with references instead of secrets; `None` if it has no secrets.
pub(super) fn hide_in_url(text: &str) -> Option<String> {
    let mut url = Url::parse(text).ok()?;
    let has_secret_parameter = url.query_pairs().any(|(name, _)| is_sensitive_parameter(&name));
    if url.password().is_none() && !has_secret_parameter {
        return None;
    }
    // The references are added to the text, because an address would escape them.
    let has_password = url.password().is_some();
    let pairs: Vec<(String, String)> = url
        .query_pairs()
        .map(|(name, value)| {
            let value =
                if is_sensitive_parameter(&name) { "HAFT_SECRET".to_owned() } else { value.into_owned() };
            (name.into_owned(), value)
        })
        .collect();
    if !pairs.is_empty() {
        url.query_pairs_mut().clear().extend_pairs(pairs);
    }
    if has_password {
        url.set_password(Some("HAFT_SECRET")).ok()?;
    }
    Some(url.as_str().replace("HAFT_SECRET", "${MODEL_SECRET}"))
}
