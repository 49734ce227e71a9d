//! What the claims of a login say about the person.

use haft_oauth::jwt::Claims;

use crate::people::valid_email;

/// The longest name, in characters.
const MAX_NAME: usize = 64;

/// The person as the issuer describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoginClaims {
    pub subject: String,
    pub name: String,
    /// The e-mail address, if the issuer has verified it.
    pub verified_email: Option<String>,
}

impl LoginClaims {
    /// Reads the claims. An e-mail address counts only if `email_verified` is exactly `true`.
    pub fn read(claims: &Claims) -> Self {
        let text = |name: &str| claims.get(name).and_then(|value| value.as_str());
        let is_verified = claims.get("email_verified") == Some(&serde_json::Value::Bool(true));
        let verified_email = text("email").filter(|_| is_verified).and_then(valid_email);
        let subject = text("sub").unwrap_or_default().to_owned();
        let candidates =
            [text("name"), text("preferred_username"), verified_email.as_deref(), Some(&subject)];
        let name = candidates.into_iter().flatten().map(plain_name).find(|name| !name.is_empty());
        let name = name.unwrap_or_else(|| "unnamed".to_owned());
        Self { subject, name, verified_email }
    }
}

/// Returns a text as a name: without control characters, on one line, and not too long.
fn plain_name(text: &str) -> String {
    let words: Vec<&str> =
        text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty()).collect();
    words.join(" ").chars().take(MAX_NAME).collect::<String>().trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_verified_addresses_count() {
        for (claims, name, email) in [
            (
                json!({"sub": "1", "name": " Ann\n Smith ", "email": "ann@a.test", "email_verified": true}),
                "Ann Smith",
                Some("ann@a.test"),
            ),
            (
                json!({"sub": "1", "email": "ann@a.test", "email_verified": true}),
                "ann@a.test",
                Some("ann@a.test"),
            ),
            (json!({"sub": "1", "email": "ann@a.test", "email_verified": "true"}), "1", None),
            (json!({"sub": "1", "email": "ann@a.test", "email_verified": 1}), "1", None),
            (json!({"sub": "1", "email": "ann@a.test"}), "1", None),
            (json!({"sub": "1", "email": "not an address", "email_verified": true}), "1", None),
            (json!({"sub": "1", "name": "\u{7}", "preferred_username": "ann"}), "ann", None),
        ] {
            let read = LoginClaims::read(claims.as_object().unwrap());
            assert_eq!((read.name.as_str(), read.verified_email.as_deref()), (name, email), "{claims}");
        }
        let long = json!({"sub": "1", "name": "x".repeat(100)});
        assert_eq!(LoginClaims::read(long.as_object().unwrap()).name.len(), MAX_NAME);
    }
}
