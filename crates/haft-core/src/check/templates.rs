//! Whether arguments are named in the notation of their place.

use super::Checked;
use crate::implementation::{Implementation, Notation};
use crate::spec::ToolSpec;

/// Warns of arguments in the other notation: one would be taken for a secret, the other sent as it stands.
pub(super) fn check(spec: &ToolSpec, checked: &mut Checked) {
    let Implementation::Http(http) = &spec.implementation else { return };
    let Ok(text) = serde_json::to_string(&spec.implementation) else { return };
    for name in spec.declared_arguments() {
        let (dollar, braces) = (format!("${{{name}}}"), format!("{{{{{name}}}}}"));
        match http.templates {
            Notation::Braces if text.contains(&dollar) => checked.warn(
                "implementation",
                "template_notation",
                format!("`{dollar}` names a secret here; write `{braces}` for the argument"),
            ),
            Notation::Dollar if text.contains(&braces) => checked.warn(
                "implementation",
                "template_notation",
                format!("`{braces}` is sent as it stands; write `{dollar}` for the argument"),
            ),
            Notation::Braces | Notation::Dollar => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::name::ToolName;
    use crate::spec::ToolSpec;
    use serde_json::json;

    #[test]
    fn the_other_notation_is_told() {
        for (templates, url, expected) in [
            (
                "braces",
                "https://a.example/${city}",
                "`${city}` names a secret here; write `{{city}}` for the argument",
            ),
            (
                "dollar",
                "https://a.example/{{city}}",
                "`{{city}}` is sent as it stands; write `${city}` for the argument",
            ),
            ("braces", "https://a.example/{{city}}?key=${KEY}", ""),
            ("dollar", "https://a.example/${city}", ""),
        ] {
            let implementation = json!({"type": "http", "url": url, "templates": templates});
            let mut spec =
                ToolSpec::new(ToolName::new("t").unwrap(), serde_json::from_value(implementation).unwrap());
            spec.input_schema = json!({"type": "object", "properties": {"city": {"type": "string"}}});
            let mut checked = super::Checked::default();
            super::check(&spec, &mut checked);
            let said: Vec<_> = checked.warnings.iter().map(|warning| warning.message.as_str()).collect();
            assert_eq!(said.join(""), expected, "{url}");
        }
    }
}
