//! Names of attributes: `userName`, `name.givenName`, `urn:ietf:params:scim:schemas:core:2.0:User:userName`.

use crate::schema::{ENTERPRISE_SCHEMA, KNOWN_SCHEMAS};

/// The schema that a path names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Schema {
    /// That of the resource, or none.
    Core,
    /// The extension for employees, of which nothing is stored.
    Enterprise,
    /// One that haft does not know.
    Other,
}

/// The name of an attribute. An empty name stands for all attributes of the schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AttributePath {
    pub(crate) schema: Schema,
    pub(crate) name: String,
    pub(crate) sub: Option<String>,
}

impl AttributePath {
    /// Parses a name; `None` if it is none.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (schema, rest) = split_schema(text)?;
        if rest.is_empty() {
            return Some(Self { schema, name: String::new(), sub: None });
        }
        let (name, sub) = match rest.split_once('.') {
            Some((name, sub)) => (name, Some(sub)),
            None => (rest, None),
        };
        let is_plain = is_name(name) && sub.is_none_or(is_name);
        is_plain.then(|| Self { schema, name: name.to_owned(), sub: sub.map(str::to_owned) })
    }
}

/// Splits off the schema of a name.
fn split_schema(text: &str) -> Option<(Schema, &str)> {
    let starts_with = |text: &str, start: &str| {
        text.get(..start.len()).is_some_and(|found| found.eq_ignore_ascii_case(start))
    };
    if !starts_with(text, "urn:") {
        return (!text.is_empty()).then_some((Schema::Core, text));
    }
    let known = KNOWN_SCHEMAS.iter().filter(|schema| starts_with(text, schema)).find_map(|schema| {
        let rest = text.get(schema.len()..)?;
        let rest = if rest.is_empty() { rest } else { rest.strip_prefix(':')? };
        Some((if *schema == ENTERPRISE_SCHEMA { Schema::Enterprise } else { Schema::Core }, rest))
    });
    known.or_else(|| text.rsplit_once(':').map(|(_, rest)| (Schema::Other, rest)))
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || ['-', '_', '$'].contains(&c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_with_and_without_a_schema() {
        let check = |text: &str, expected: Option<(Schema, &str, Option<&str>)>| {
            let found = AttributePath::parse(text);
            let found = found.as_ref().map(|path| (path.schema, path.name.as_str(), path.sub.as_deref()));
            assert_eq!(found, expected, "{text}");
        };
        check("userName", Some((Schema::Core, "userName", None)));
        check("name.givenName", Some((Schema::Core, "name", Some("givenName"))));
        check("members.$ref", Some((Schema::Core, "members", Some("$ref"))));
        let user = "URN:ietf:params:scim:schemas:core:2.0:user";
        check(&format!("{user}:name.givenName"), Some((Schema::Core, "name", Some("givenName"))));
        check(user, Some((Schema::Core, "", None)));
        let enterprise = format!("{ENTERPRISE_SCHEMA}:manager.value");
        check(&enterprise, Some((Schema::Enterprise, "manager", Some("value"))));
        check("urn:example:2.0:User:badge", Some((Schema::Other, "badge", None)));
        for text in ["", "a b", "a..b", ".a", "a.", "a.b.c", "é", "a[b]"] {
            check(text, None);
        }
    }
}
