//! Which attributes a response has: `attributes` and `excludedAttributes` of RFC 7644, section 3.9.

use serde_json::{Map, Value};

use crate::error::{ScimError, ScimType};
use crate::path::{AttributePath, Schema};

/// The most named attributes.
const MAX_NAMES: usize = 64;

/// The attributes of a response.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Projection {
    /// All of them.
    #[default]
    All,
    /// Only these.
    Only(Vec<Name>),
    /// All but these.
    Without(Vec<Name>),
}

/// The name of an attribute or of a part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name(AttributePath);

impl Projection {
    /// Reads the names of a request.
    pub fn parse<'a>(
        attributes: impl Iterator<Item = &'a str>,
        excluded: impl Iterator<Item = &'a str>,
    ) -> Result<Self, ScimError> {
        let (only, without) = (names(attributes)?, names(excluded)?);
        Ok(match (only.is_empty(), without.is_empty()) {
            (false, _) => Self::Only(only),
            (true, false) => Self::Without(without),
            (true, true) => Self::All,
        })
    }

    /// Returns whether responses may have an attribute.
    pub fn includes(&self, attribute: &str) -> bool {
        let is = |name: &&Name| name.0.name.eq_ignore_ascii_case(attribute);
        match self {
            Self::All => true,
            Self::Only(names) => names.iter().any(|name| is(&name)),
            Self::Without(names) => !names.iter().any(|name| is(&name) && name.0.sub.is_none()),
        }
    }

    /// Removes what a response does not have; `schemas` and `id` stay.
    pub fn apply(&self, resource: &mut Map<String, Value>) {
        resource.retain(|key, _| key == "schemas" || key == "id" || self.includes(key));
        let (Self::Only(names) | Self::Without(names)) = self else { return };
        for (key, value) in resource.iter_mut() {
            let own = names.iter().filter(|name| name.0.name.eq_ignore_ascii_case(key));
            let own: Vec<&str> = own.filter_map(|name| name.0.sub.as_deref()).collect();
            let is_whole =
                names.iter().any(|name| name.0.name.eq_ignore_ascii_case(key) && name.0.sub.is_none());
            if own.is_empty() || is_whole {
                continue;
            }
            let is_named = |part: &str| own.iter().any(|name| name.eq_ignore_ascii_case(part));
            let keeps = |part: &str| is_named(part) == matches!(self, Self::Only(_));
            match value {
                Value::Object(parts) => parts.retain(|part, _| keeps(part)),
                Value::Array(values) => {
                    for parts in values.iter_mut().filter_map(Value::as_object_mut) {
                        parts.retain(|part, _| keeps(part));
                    }
                }
                _ => {}
            }
        }
    }
}

fn names<'a>(texts: impl Iterator<Item = &'a str>) -> Result<Vec<Name>, ScimError> {
    let mut names = Vec::new();
    for text in texts.map(str::trim).filter(|text| !text.is_empty()) {
        // What is unknown selects nothing.
        let path = AttributePath::parse(text).filter(|path| path.schema == Schema::Core);
        let absent = || AttributePath { schema: Schema::Other, name: String::new(), sub: None };
        names.push(Name(path.unwrap_or_else(absent)));
        if names.len() > MAX_NAMES {
            let detail = format!("more than {MAX_NAMES} names in `attributes` or `excludedAttributes`");
            return Err(ScimError::new(ScimType::InvalidValue, detail));
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn named_attributes_are_selected() {
        let check = |attributes: &str, excluded: &str, expected: Value| {
            let resource = json!({
                "schemas": ["s"], "id": "1", "userName": "ann",
                "name": {"givenName": "Ann", "familyName": "Smith"},
                "emails": [{"value": "a@b.example", "type": "work"}],
            });
            let projection = Projection::parse(attributes.split(','), excluded.split(',')).unwrap();
            let mut found = resource.as_object().unwrap().clone();
            projection.apply(&mut found);
            found.remove("schemas").unwrap();
            found.remove("id").unwrap();
            assert_eq!(Value::Object(found), expected, "{attributes} {excluded}");
        };
        let (name, emails) = (
            json!({"givenName": "Ann", "familyName": "Smith"}),
            json!([{"value": "a@b.example", "type": "work"}]),
        );
        check("", "", json!({"userName": "ann", "name": name, "emails": emails}));
        check("USERNAME", "", json!({"userName": "ann"}));
        check(
            " userName , emails.value",
            "",
            json!({"userName": "ann", "emails": [{"value": "a@b.example"}]}),
        );
        check(
            "urn:ietf:params:scim:schemas:core:2.0:User:name.givenName",
            "",
            json!({"name": {"givenName": "Ann"}}),
        );
        check("", "name,emails.type,id", json!({"userName": "ann", "emails": [{"value": "a@b.example"}]}));
        check("members,a b", "", json!({}));
        check("", "a b", json!({"userName": "ann", "name": name, "emails": emails}));
        let many = vec!["a"; MAX_NAMES + 1];
        assert!(Projection::parse(many.into_iter(), [].into_iter()).is_err());
    }
}
