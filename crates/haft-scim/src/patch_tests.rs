//! Patches in the forms of Entra ID, Okta and RFC 7644.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn ann() -> Value {
    json!({
        "schemas": ["urn:ietf:params:scim:schemas:core:2.0:User"], "id": "1", "userName": "ann", "active": true,
        "displayName": "Ann Smith",
        "name": {"givenName": "Ann", "familyName": "Smith"},
        "emails": [{"value": "ann@example.com", "type": "work", "primary": true}],
    })
}

fn patched(resource: ResourceType, before: &Value, operations: &Value) -> Result<Value, ScimError> {
    let mut resource_json = before.as_object().unwrap().clone();
    let body = json!({"Operations": operations});
    patch(resource, &mut resource_json, body.as_object().unwrap())?;
    Ok(Value::Object(resource_json))
}

/// What a patch of Ann changes.
#[track_caller]
#[expect(clippy::needless_pass_by_value, reason = "the cases are shorter")]
fn check(operations: Value, expected: Value) {
    let found = patched(ResourceType::User, &ann(), &operations).unwrap();
    let mut all = ann();
    for (key, value) in expected.as_object().unwrap() {
        match value {
            Value::Null => all.as_object_mut().unwrap().remove(key),
            value => all.as_object_mut().unwrap().insert(key.clone(), value.clone()),
        };
    }
    assert_eq!(found, all, "{operations}");
}

#[test]
fn single_values_are_changed() {
    for operations in [
        json!([{"op": "replace", "path": "active", "value": false}]),
        json!([{"op": "Replace", "path": "ACTIVE", "value": false}]),
        json!([{"op": "replace", "value": {"active": false}}]),
        json!([{"OP": "add", "Path": "urn:ietf:params:scim:schemas:core:2.0:User:active", "Value": false}]),
        json!([{"op": "replace", "value": {"urn:ietf:params:scim:schemas:core:2.0:User": {"active": false}}}]),
        json!([{"op": "replace", "path": "urn:ietf:params:scim:schemas:core:2.0:User", "value": {"active": false}}]),
        json!([{"op": "replace", "path": "active", "value": [{"$ref": null, "value": false}]}]),
    ] {
        check(operations, json!({"active": false}));
    }
    // Read by `UserFields`.
    check(json!([{"op": "Replace", "path": "active", "value": "False"}]), json!({"active": "False"}));
    let name = json!({"givenName": "Anna", "familyName": "Smith"});
    check(json!([{"op": "replace", "path": "name.givenName", "value": "Anna"}]), json!({"name": name}));
    check(json!([{"op": "replace", "value": {"name.givenName": "Anna"}}]), json!({"name": name}));
    check(
        json!([{"op": "replace", "value": {"name": {"givenname": "Anna", "x": 1}}}]),
        json!({"name": name}),
    );
    check(json!([{"op": "remove", "path": "name.givenName"}]), json!({"name": {"familyName": "Smith"}}));
    check(json!([{"op": "remove", "path": "name"}]), json!({"name": null}));
    check(json!([{"op": "remove", "path": "displayName"}]), json!({"displayName": null}));
    check(json!([{"op": "replace", "path": "displayName", "value": null}]), json!({"displayName": null}));
    check(json!([{"op": "add", "path": "externalId", "value": "x"}]), json!({"externalId": "x"}));
    // As they were read.
    check(
        json!([{"op": "replace", "value": {"id": "1", "schemas": [], "meta": {}, "userName": "ann"}}]),
        json!({}),
    );
    // The last one counts.
    let both = json!([
        {"op": "replace", "path": "active", "value": false},
        {"op": "replace", "path": "active", "value": true},
    ]);
    check(both, json!({"active": true}));
}

#[test]
fn values_of_lists_are_changed() {
    let work = |value: &str| json!({"value": value, "type": "work", "primary": true});
    let home = json!({"value": "a@home.example", "type": "home"});
    let emails = |values: Value| json!({"emails": values});
    let path = r#"emails[type eq "work"].value"#;
    for operation in ["add", "Replace"] {
        check(
            json!([{"op": operation, "path": path, "value": "b@example.com"}]),
            emails(json!([work("b@example.com")])),
        );
        check(
            json!([{"op": operation, "value": {path: "b@example.com"}}]),
            emails(json!([work("b@example.com")])),
        );
        // A value that does not exist yet is created.
        check(
            json!([{"op": operation, "path": r#"emails[type eq "home"].value"#, "value": "a@home.example"}]),
            emails(json!([work("ann@example.com"), {"type": "home", "value": "a@home.example"}])),
        );
    }
    check(
        json!([{"op": "add", "path": "emails", "value": [home]}]),
        emails(json!([work("ann@example.com"), home])),
    );
    check(
        json!([{"op": "add", "path": "emails", "value": home}]),
        emails(json!([work("ann@example.com"), home])),
    );
    check(json!([{"op": "add", "path": "emails", "value": [{"value": "ann@example.com"}]}]), json!({}));
    check(json!([{"op": "replace", "path": "emails", "value": [home]}]), emails(json!([home])));
    check(
        json!([{"op": "replace", "path": "emails[primary eq true]", "value": {"type": "home"}}]),
        emails(json!([{"value": "ann@example.com", "type": "home", "primary": true}])),
    );
    check(json!([{"op": "remove", "path": path}]), emails(json!([{"type": "work", "primary": true}])));
    for operations in [
        json!([{"op": "remove", "path": "emails"}]),
        json!([{"op": "remove", "path": r#"emails[type eq "work"]"#}]),
        json!([{"op": "Remove", "path": "emails", "value": [{"value": "ann@example.com"}]}]),
    ] {
        check(operations, emails(json!([])));
    }
    check(json!([{"op": "remove", "path": r#"emails[type eq "home"]"#}]), json!({}));
}

#[test]
fn members_of_groups_are_changed() {
    let group = json!({"id": "9", "displayName": "Sales", "members": [{"value": "1"}, {"value": "2"}]});
    let members = |operations: Value| {
        let found = patched(ResourceType::Group, &group, &operations).unwrap();
        let values = found["members"].as_array().unwrap().iter();
        values.map(|member| member["value"].as_str().unwrap().to_owned()).collect::<String>()
    };
    for (operations, expected) in [
        (json!([{"op": "Add", "path": "members", "value": [{"value": "3"}]}]), "123"),
        (json!([{"op": "add", "path": "members", "value": [{"value": "2"}, {"value": "3"}]}]), "123"),
        (json!([{"op": "add", "value": {"members": [{"value": "3", "display": "x"}]}}]), "123"),
        (json!([{"op": "Remove", "path": "members", "value": [{"value": "1"}]}]), "2"),
        (json!([{"op": "remove", "path": r#"members[value eq "1"]"#}]), "2"),
        (json!([{"op": "remove", "path": r#"members[value eq "1" or value eq "2"]"#}]), ""),
        (json!([{"op": "remove", "path": "members"}]), ""),
        (json!([{"op": "replace", "path": "members", "value": [{"value": "3"}]}]), "3"),
        (json!([{"op": "replace", "path": "members", "value": []}]), ""),
        (json!([{"op": "replace", "value": {"id": "9", "displayName": "Sellers"}}]), "12"),
    ] {
        assert_eq!(members(operations.clone()), expected, "{operations}");
    }
}

#[test]
fn what_cannot_be_changed_is_rejected_or_ignored() {
    let enterprise = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User";
    for operations in [
        json!([{"op": "add", "path": "title", "value": "Boss"}]),
        json!([{"op": "replace", "path": r#"addresses[type eq "work"].country"#, "value": "DE"}]),
        json!([{"op": "add", "path": "roles", "value": [{"value": "admin"}]}]),
        json!([{"op": "add", "path": format!("{enterprise}:department"), "value": "x"}]),
        json!([{"op": "add", "value": {enterprise: {"department": "x"}, "password": "x"}}]),
    ] {
        check(operations, json!({}));
    }
    let rejected = |operations: Value, expected: ScimType| {
        let error = patched(ResourceType::User, &ann(), &operations).unwrap_err();
        assert_eq!(error.kind, expected, "{operations}: {}", error.detail);
    };
    for (path, expected) in [
        ("badge", ScimType::InvalidPath),
        ("members", ScimType::InvalidPath),
        ("name.nick", ScimType::InvalidPath),
        ("userName.x", ScimType::InvalidPath),
        (r#"userName[value eq "x"]"#, ScimType::InvalidPath),
        ("emails[", ScimType::InvalidPath),
        ("emails[type eq].value", ScimType::InvalidPath),
        (r#"emails[type eq "work"].x"#, ScimType::InvalidPath),
        (r#"emails[type eq "work"].value.x"#, ScimType::InvalidPath),
        (r#"emails.value[type eq "work"]"#, ScimType::InvalidPath),
        ("urn:example:2.0:User:badge", ScimType::InvalidPath),
        ("id", ScimType::Mutability),
        ("groups", ScimType::Mutability),
        ("meta.created", ScimType::Mutability),
        (r#"emails[type co "x"].value"#, ScimType::NoTarget),
    ] {
        rejected(json!([{"op": "replace", "path": path, "value": "x"}]), expected);
    }
    rejected(json!([{"op": "replace", "value": {"id": "2"}}]), ScimType::Mutability);
    rejected(json!([{"op": "remove"}]), ScimType::NoTarget);
    rejected(json!([{"op": "move", "path": "active"}]), ScimType::InvalidSyntax);
    rejected(json!(["x"]), ScimType::InvalidSyntax);
    rejected(json!({"op": "add"}), ScimType::InvalidSyntax);
    rejected(json!([{"op": "add", "value": 5}]), ScimType::InvalidValue);
    rejected(json!([{"op": "add", "path": 5, "value": 5}]), ScimType::InvalidPath);
    rejected(json!([{"op": "add", "path": "name", "value": 5}]), ScimType::InvalidValue);
    rejected(json!(vec![json!({"op": "add", "path": "title", "value": 1}); 1001]), ScimType::InvalidSyntax);
    let many: Vec<Value> = (0..1001).map(|n| json!({"value": n.to_string()})).collect();
    rejected(json!([{"op": "add", "path": "emails", "value": many}]), ScimType::InvalidValue);
}

proptest! {
    #[test]
    fn any_path_and_value_are_read_without_a_panic(
        operation in prop::sample::select(vec!["add", "replace", "remove"]),
        path in prop_oneof![
            any::<String>(),
            prop::sample::select(vec!["emails", "name", "emails.value", "active", "emails[type eq \"x\"]", "name.formatted"])
                .prop_map(str::to_owned),
        ],
        value in prop::sample::select(vec![
            json!(null), json!(1), json!("x"), json!([]), json!([[]]), json!({}), json!([1, "x"]), json!({"value": {}}),
        ]),
    ) {
        let operations = json!([
            {"op": operation, "path": path, "value": value},
            {"op": "add", "path": "emails", "value": [{"value": "x"}]},
        ]);
        if let Ok(found) = patched(ResourceType::User, &ann(), &operations) {
            let _ = crate::UserFields::read(found.as_object().unwrap());
        }
    }
}
