//! What the body of a request, or a patched resource, says about a user or a group.

use serde_json::{Map, Value};

use crate::MAX_VALUES;
use crate::error::{ScimError, ScimType};
use crate::json::{self, get, stored_attributes};
use crate::schema::ResourceType;

/// The longest text, in characters.
const MAX_TEXT: usize = 256;

/// A user.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UserFields {
    /// The name with which the identity provider identifies the user.
    pub user_name: String,
    /// The id that the identity provider has for the user.
    pub external_id: Option<String>,
    /// The whole name.
    pub formatted_name: Option<String>,
    /// The given name.
    pub given_name: Option<String>,
    /// The family name.
    pub family_name: Option<String>,
    /// The name to show.
    pub display_name: Option<String>,
    /// The primary e-mail address; otherwise the one of type `work`, or the first one.
    pub email: Option<String>,
    /// Whether the user has access; `None` if the request does not say.
    pub active: Option<bool>,
}

/// A group.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GroupFields {
    /// The name.
    pub display_name: String,
    /// The id that the identity provider has for the group.
    pub external_id: Option<String>,
    /// The ids of the members; `None` if the request does not say.
    pub members: Option<Vec<String>>,
}

impl UserFields {
    /// Reads a user.
    pub fn read(body: &Map<String, Value>) -> Result<Self, ScimError> {
        let body = stored_attributes(ResourceType::User, body);
        let name = match body.get("name") {
            None => Map::new(),
            Some(Value::Object(name)) => name.clone(),
            Some(_) => return Err(invalid("name", "expected an object")),
        };
        Ok(Self {
            user_name: required(&body, "userName")?,
            external_id: text(&body, "externalId")?,
            formatted_name: text(&name, "formatted")?,
            given_name: text(&name, "givenName")?,
            family_name: text(&name, "familyName")?,
            display_name: text(&body, "displayName")?,
            email: email(&body)?,
            active: match body.get("active") {
                None => None,
                Some(value) => {
                    let expected = || invalid("active", "expected `true` or `false`");
                    Some(json::boolean(value).ok_or_else(expected)?)
                }
            },
        })
    }
}

impl GroupFields {
    /// Reads a group.
    pub fn read(body: &Map<String, Value>) -> Result<Self, ScimError> {
        let body = stored_attributes(ResourceType::Group, body);
        Ok(Self {
            display_name: required(&body, "displayName")?,
            external_id: text(&body, "externalId")?,
            members: match list(&body, "members")? {
                None => None,
                Some(values) => Some(values.iter().map(member).collect::<Result<_, _>>()?),
            },
        })
    }
}

fn member(value: &Value) -> Result<String, ScimError> {
    let is_group = get_text(value, "type").is_some_and(|kind| !kind.eq_ignore_ascii_case("User"));
    if is_group {
        return Err(invalid("members", "only users can be members, not groups"));
    }
    let id = get_text(value, "value");
    id.map(str::to_owned)
        .ok_or_else(|| invalid("members", "expected objects with the id of a user as `value`"))
}

fn email(body: &Map<String, Value>) -> Result<Option<String>, ScimError> {
    let Some(values) = list(body, "emails")? else { return Ok(None) };
    let is_primary = |value: &&Value| value.get("primary").and_then(json::boolean) == Some(true);
    let is_work =
        |value: &&Value| get_text(value, "type").is_some_and(|kind| kind.eq_ignore_ascii_case("work"));
    let chosen = values.iter().find(is_primary).or_else(|| values.iter().find(is_work)).or(values.first());
    match chosen {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(Value::Object(object)) => self::text(object, "value"),
        Some(_) => Err(invalid("emails", "expected objects with an address as `value`")),
    }
}

fn get_text<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    get(value.as_object()?, name)?.as_str()
}

fn list<'a>(body: &'a Map<String, Value>, name: &str) -> Result<Option<&'a [Value]>, ScimError> {
    match body.get(name) {
        None => Ok(None),
        Some(Value::Array(values)) if values.len() <= MAX_VALUES => Ok(Some(values)),
        Some(Value::Array(values)) => {
            Err(invalid(name, &format!("{} values; the limit is {MAX_VALUES}", values.len())))
        }
        Some(_) => Err(invalid(name, "expected a list")),
    }
}

/// Reads a text; an empty one counts as missing.
fn text(body: &Map<String, Value>, name: &str) -> Result<Option<String>, ScimError> {
    match body.get(name) {
        None => Ok(None),
        Some(Value::String(text)) => {
            let text = text.trim();
            if text.chars().count() > MAX_TEXT || text.chars().any(char::is_control) {
                let rule = format!("expected at most {MAX_TEXT} characters without control characters");
                return Err(invalid(name, &rule));
            }
            Ok(Some(text.to_owned()).filter(|text| !text.is_empty()))
        }
        Some(_) => Err(invalid(name, "expected a text")),
    }
}

fn required(body: &Map<String, Value>, name: &str) -> Result<String, ScimError> {
    text(body, name)?.ok_or_else(|| invalid(name, "it is required"))
}

fn invalid(name: &str, rule: &str) -> ScimError {
    ScimError::new(ScimType::InvalidValue, format!("invalid `{name}`: {rule}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[expect(clippy::needless_pass_by_value, reason = "the cases are shorter")]
    fn user(body: Value) -> Result<UserFields, String> {
        UserFields::read(body.as_object().unwrap()).map_err(|error| error.detail)
    }

    #[test]
    fn users_are_read() {
        let plain = UserFields { user_name: "ann".into(), ..UserFields::default() };
        let check =
            |body: Value, expected: UserFields| assert_eq!(user(body.clone()), Ok(expected), "{body}");
        check(json!({"userName": " ann "}), plain.clone());
        check(
            json!({"USERNAME": "ann", "active": "False"}),
            UserFields { active: Some(false), ..plain.clone() },
        );
        check(
            json!({"userName": "ann", "externalId": "", "title": 5, "password": "x", "urn:x:y": {"a": 1}, "name": null}),
            plain.clone(),
        );
        check(
            json!({
                "userName": "ann", "externalId": "7", "displayName": "Ann",
                "name": {"givenName": "Ann", "FamilyName": "Smith", "formatted": "Ann Smith", "middleName": 3},
            }),
            UserFields {
                external_id: Some("7".into()),
                display_name: Some("Ann".into()),
                given_name: Some("Ann".into()),
                family_name: Some("Smith".into()),
                formatted_name: Some("Ann Smith".into()),
                ..plain.clone()
            },
        );
        for (emails, expected) in [
            (json!([]), None),
            (json!(["a@b.example"]), Some("a@b.example")),
            (
                json!([{"value": "x@b.example", "type": "home"}, {"value": "a@b.example", "type": "Work"}]),
                Some("a@b.example"),
            ),
            (
                json!([{"value": "x@b.example", "type": "work"}, {"value": "a@b.example", "primary": "true"}]),
                Some("a@b.example"),
            ),
            (json!([{"value": "a@b.example"}, {"value": "x@b.example"}]), Some("a@b.example")),
            (json!([{"type": "work"}]), None),
        ] {
            let email = expected.map(str::to_owned);
            check(json!({"userName": "ann", "emails": emails}), UserFields { email, ..plain.clone() });
        }
    }

    #[test]
    fn wrong_values_are_rejected() {
        let check = |body: Value, expected: &str| {
            let error = user(body.clone()).unwrap_err();
            assert!(error.contains(expected), "{body}: {error}");
        };
        check(json!({}), "`userName`: it is required");
        check(json!({"userName": 5}), "`userName`: expected a text");
        check(json!({"userName": "a\0"}), "`userName`: expected at most 256");
        check(json!({"userName": "a".repeat(257)}), "`userName`: expected at most 256");
        check(json!({"userName": "a", "active": "yes"}), "`active`: expected `true` or `false`");
        check(json!({"userName": "a", "name": "x"}), "`name`: expected an object");
        check(json!({"userName": "a", "emails": {"value": "x"}}), "`emails`: expected a list");
        check(json!({"userName": "a", "emails": [5]}), "`emails`: expected objects");
        check(json!({"userName": "a", "emails": vec![1; MAX_VALUES + 1]}), "1001 values");
        let group = |members: Value| {
            let body = json!({"displayName": "g", "members": members});
            GroupFields::read(body.as_object().unwrap()).map_err(|error| error.detail)
        };
        assert_eq!(group(json!([{"value": "1"}])).unwrap().members, Some(vec!["1".to_owned()]));
        assert!(group(json!([{"value": "1", "type": "Group"}])).unwrap_err().contains("not groups"));
        assert!(group(json!(["1"])).unwrap_err().contains("the id of a user"));
    }
}
