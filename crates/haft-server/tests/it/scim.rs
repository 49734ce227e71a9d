//! SCIM: the requests of identity providers, what they may change, and what happens to those whom they deactivate.

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Server, code, function_tool, poll, send};
use crate::tenants::{tenant, with};

const USER: &str = "urn:ietf:params:scim:schemas:core:2.0:User";
const ENTERPRISE: &str = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User";
const GROUP: &str = "urn:ietf:params:scim:schemas:core:2.0:Group";
const PATCH: &str = "urn:ietf:params:scim:api:messages:2.0:PatchOp";

/// An identity provider: a service account with a token.
struct Provider<'a> {
    server: &'a Server,
    token: String,
}

impl<'a> Provider<'a> {
    async fn new(server: &'a Server) -> Self {
        Self { server, token: account(server, "provider", json!({"role": "admin"})).await }
    }

    async fn send(&self, method: Method, path: &str, body: &Value) -> (u16, Value) {
        let request = self.server.bare(method, &format!("/scim/v2{path}")).bearer_auth(&self.token);
        let request = request.header("content-type", "application/scim+json");
        send(if body.is_null() { request } else { request.body(body.to_string()) }).await
    }

    async fn get(&self, path: &str) -> (u16, Value) {
        self.send(Method::GET, path, &Value::Null).await
    }

    async fn user(&self, body: Value) -> String {
        let (status, answer) = self.send(Method::POST, "/Users", &body).await;
        assert_eq!(status, 201, "{answer}");
        answer["id"].as_str().unwrap().to_owned()
    }

    async fn patch(&self, path: &str, operations: Value) -> (u16, Value) {
        self.send(Method::PATCH, path, &json!({"schemas": [PATCH], "Operations": operations})).await
    }
}

/// Creates a service account; returns the value of its token.
async fn account(server: &Server, name: &str, mut body: Value) -> String {
    body["name"] = json!(name);
    let (status, answer) = server.post("/api/service-accounts", body).await;
    assert_eq!(status, 201, "{answer}");
    let (status, answer) =
        server.post("/api/tokens", json!({"name": name, "owner": name, "role": "admin"})).await;
    assert_eq!(status, 201, "{answer}");
    answer["data"]["token"].as_str().unwrap().to_owned()
}

/// Fails unless a value has everything that another one has.
fn assert_has(found: &Value, expected: &Value, context: &str) {
    match (found, expected) {
        (Value::Object(found), Value::Object(expected)) => {
            for (key, value) in expected {
                let own = found.get(key).unwrap_or_else(|| panic!("{context}: no `{key}` in {found:?}"));
                assert_has(own, value, context);
            }
        }
        (Value::Array(found), Value::Array(expected)) => {
            assert_eq!(found.len(), expected.len(), "{context}: {found:?}");
            found.iter().zip(expected).for_each(|(found, expected)| assert_has(found, expected, context));
        }
        (found, expected) => assert_eq!(found, expected, "{context}"),
    }
}

/// A request and what its response has. `{1}` stands for the id of the first created resource.
type Step = (&'static str, &'static str, Value, u16, Value);

async fn run(provider: &Provider<'_>, steps: Vec<Step>) {
    let mut ids: Vec<String> = Vec::new();
    for (method, path, body, status, expected) in steps {
        let fill = |text: String| {
            ids.iter()
                .enumerate()
                .fold(text, |text, (index, id)| text.replace(&format!("{{{}}}", index + 1), id))
        };
        let (path, body) = (fill(path.to_owned()), serde_json::from_str(&fill(body.to_string())).unwrap());
        let expected: Value = serde_json::from_str(&fill(expected.to_string())).unwrap();
        let found = provider.send(method.parse().unwrap(), &path, &body).await;
        let context = format!("{method} {path} {body}");
        assert_eq!(found.0, status, "{context}: {}", found.1);
        assert_has(&found.1, &expected, &format!("{context}: {}", found.1));
        if status == 201 {
            ids.push(found.1["id"].as_str().unwrap().to_owned());
        }
    }
}

#[expect(clippy::needless_pass_by_value, reason = "the cases are shorter")]
fn operations(operations: Value) -> Value {
    json!({"schemas": [PATCH], "Operations": operations})
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "one request after the other")]
async fn the_requests_of_entra_id() {
    let server = Server::start().await;
    let provider = Provider::new(&server).await;
    let none = json!({"schemas": ["urn:ietf:params:scim:api:messages:2.0:ListResponse"], "totalResults": 0, "Resources": []});
    let new = json!({
        "schemas": [USER, ENTERPRISE], "externalId": "0a21f0f2", "userName": "Test_User_ab6490ee", "active": true,
        "emails": [{"primary": true, "type": "work", "value": "Test_User@testuser.com"}],
        "meta": {"resourceType": "User"}, "roles": [], "title": "Engineer",
        ENTERPRISE: {"department": "R&D", "manager": {"value": "x"}},
        "name": {"formatted": "givenName familyName", "familyName": "familyName", "givenName": "givenName"},
    });
    let created = json!({
        "schemas": [USER], "externalId": "0a21f0f2", "userName": "Test_User_ab6490ee", "active": true,
        "displayName": "givenName familyName",
        "emails": [{"primary": true, "type": "work", "value": "Test_User@testuser.com"}],
        "name": {"formatted": "givenName familyName", "familyName": "familyName", "givenName": "givenName"},
        "meta": {"resourceType": "User"},
    });
    let update = operations(json!([
        {"op": "Replace", "path": "emails[type eq \"work\"].value", "value": "updatedEmail@example.com"},
        {"op": "Replace", "path": "name.familyName", "value": "updatedFamilyName"},
        {"op": "Add", "path": format!("{ENTERPRISE}:department"), "value": "Sales"},
    ]));
    let updated = json!({
        "emails": [{"value": "updatedEmail@example.com"}], "displayName": "givenName updatedFamilyName",
        "name": {"familyName": "updatedFamilyName", "givenName": "givenName"},
    });
    let group = json!({
        "schemas": [GROUP, "http://schemas.microsoft.com/2006/11/ResourceManagement/ADSCIM/2.0/Group"],
        "externalId": "8aa1a0c0", "displayName": "displayName", "meta": {"resourceType": "Group"},
    });
    let by_name = "/Groups?excludedAttributes=members&filter=displayName+eq+%22displayName%22";
    let of_user = |value: &str| format!("/Users?filter={}+eq+%22{value}%22", "userName").leak() as &str;
    run(
        &provider,
        vec![
            ("GET", "/Users?filter=userName+eq+%22non-existent+user%22", Value::Null, 200, none.clone()),
            ("POST", "/Users", new.clone(), 201, created.clone()),
            ("POST", "/Users", new, 409, json!({"scimType": "uniqueness", "status": "409"})),
            ("GET", "/Users/{1}", Value::Null, 200, created),
            (
                "GET",
                of_user("test_user_AB6490ee"),
                Value::Null,
                200,
                json!({"totalResults": 1, "Resources": [{"id": "{1}"}]}),
            ),
            (
                "GET",
                "/Users?filter=externalId+eq+%220a21f0f2%22",
                Value::Null,
                200,
                json!({"Resources": [{"id": "{1}"}]}),
            ),
            ("PATCH", "/Users/{1}", update, 200, updated),
            (
                "PATCH",
                "/Users/{1}",
                operations(json!([{"op": "Replace", "path": "userName", "value": "new@example.com"}])),
                200,
                json!({"userName": "new@example.com"}),
            ),
            ("GET", of_user("Test_User_ab6490ee"), Value::Null, 200, none.clone()),
            (
                "PATCH",
                "/Users/{1}",
                operations(json!([{"op": "Replace", "path": "active", "value": "False"}])),
                200,
                json!({"active": false}),
            ),
            ("GET", "/Users?filter=active+eq+false", Value::Null, 200, json!({"Resources": [{"id": "{1}"}]})),
            (
                "PATCH",
                "/Users/{1}",
                operations(json!([{"op": "Add", "path": "active", "value": "True"}])),
                200,
                json!({"active": true}),
            ),
            (
                "POST",
                "/Groups",
                group,
                201,
                json!({"displayName": "displayName", "externalId": "8aa1a0c0", "members": []}),
            ),
            ("GET", by_name, Value::Null, 200, json!({"totalResults": 1, "Resources": [{"id": "{2}"}]})),
            (
                "PATCH",
                "/Groups/{2}",
                operations(
                    json!([{"op": "Add", "path": "members", "value": [{"$ref": null, "value": "{1}"}]}]),
                ),
                200,
                json!({"members": [{"value": "{1}", "type": "User"}]}),
            ),
            (
                "GET",
                "/Users/{1}",
                Value::Null,
                200,
                json!({"groups": [{"value": "{2}", "display": "displayName"}]}),
            ),
            (
                "GET",
                "/Groups?filter=members[value+eq+%22{1}%22]",
                Value::Null,
                200,
                json!({"totalResults": 1}),
            ),
            (
                "PATCH",
                "/Groups/{2}",
                operations(
                    json!([{"op": "Remove", "path": "members", "value": [{"$ref": null, "value": "{1}"}]}]),
                ),
                200,
                json!({"members": []}),
            ),
            (
                "PATCH",
                "/Groups/{2}",
                operations(json!([{"op": "Replace", "path": "displayName", "value": "updatedDisplayName"}])),
                200,
                json!({"displayName": "updatedDisplayName"}),
            ),
            ("DELETE", "/Groups/{2}", Value::Null, 204, Value::Null),
            ("GET", "/Groups/{2}", Value::Null, 404, json!({"status": "404"})),
            ("DELETE", "/Users/{1}", Value::Null, 204, Value::Null),
            (
                "GET",
                "/Users/{1}",
                Value::Null,
                404,
                json!({"schemas": ["urn:ietf:params:scim:api:messages:2.0:Error"]}),
            ),
            ("DELETE", "/Users/{1}", Value::Null, 404, json!({"status": "404"})),
        ],
    )
    .await;
    let (_, audit) = server.get("/api/audit?page_size=100").await;
    let actions: Vec<&str> = audit["data"]["records"]
        .as_array()
        .unwrap()
        .iter()
        .map(|record| record["action"].as_str().unwrap())
        .collect();
    for action in [
        "person.create",
        "person.update",
        "person.disable",
        "person.enable",
        "person.delete",
        "group.create",
        "group.update",
        "group.delete",
    ] {
        assert!(actions.contains(&action), "{action}: {actions:?}");
    }
}

#[tokio::test]
async fn the_requests_of_okta() {
    let server = Server::start().await;
    let provider = Provider::new(&server).await;
    let user = |fields: Value| {
        let mut user = json!({
            "schemas": [USER], "userName": "test.user@okta.local", "locale": "en-US", "externalId": "00ujl29u0le5T6Aj10h7",
            "name": {"givenName": "Test", "familyName": "User"},
            "emails": [{"primary": true, "value": "test.user@okta.local", "type": "work"}],
            "displayName": "Test User", "groups": [], "password": "1mz050nq", "active": true,
        });
        user.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        user
    };
    let empty = json!({"totalResults": 0, "startIndex": 1, "itemsPerPage": 0, "Resources": []});
    let mut removed = user(json!({"active": false}));
    removed["id"] = json!("{1}");
    run(
        &provider,
        vec![
            ("GET", "/ServiceProviderConfig", Value::Null, 200, json!({"patch": {"supported": true}, "bulk": {"supported": false}})),
            ("GET", "/Users?startIndex=1&count=2", Value::Null, 200, empty.clone()),
            ("GET", "/Users?filter=userName%20eq%20%22test.user%40okta.local%22&startIndex=1&count=100", Value::Null, 200, empty),
            ("POST", "/Users", user(json!({})), 201, json!({"userName": "test.user@okta.local", "active": true, "name": {"givenName": "Test"}})),
            ("GET", "/Users/{1}", Value::Null, 200, json!({"userName": "test.user@okta.local", "groups": []})),
            ("PUT", "/Users/{1}", user(json!({"displayName": "Another User", "name": {"givenName": "Another", "familyName": "User"}})), 200, json!({"displayName": "Another User", "name": {"givenName": "Another"}})),
            ("PATCH", "/Users/{1}", operations(json!([{"op": "replace", "value": {"active": false}}])), 200, json!({"active": false})),
            ("PATCH", "/Users/{1}", operations(json!([{"op": "replace", "value": {"active": true}}])), 200, json!({"active": true})),
            ("PUT", "/Users/{1}", removed, 200, json!({"active": false, "displayName": "Test User"})),
            ("POST", "/Groups", json!({"schemas": [GROUP], "displayName": "Test SCIMv2", "members": []}), 201, json!({"displayName": "Test SCIMv2"})),
            ("GET", "/Groups?startIndex=1&count=100", Value::Null, 200, json!({"totalResults": 1, "Resources": [{"id": "{2}"}]})),
            ("PATCH", "/Groups/{2}", operations(json!([{"op": "replace", "value": {"id": "{2}", "displayName": "Renamed"}}])), 200, json!({"displayName": "Renamed", "members": []})),
            ("PATCH", "/Groups/{2}", operations(json!([{"op": "add", "path": "members", "value": [{"value": "{1}", "display": "test.user@okta.local"}]}])), 200, json!({"members": [{"value": "{1}"}]})),
            ("PATCH", "/Groups/{2}", operations(json!([{"op": "remove", "path": "members[value eq \"{1}\"]"}])), 200, json!({"members": []})),
            ("PUT", "/Groups/{2}", json!({"schemas": [GROUP], "id": "{2}", "displayName": "Renamed", "members": [{"value": "{1}", "display": "x"}]}), 200, json!({"members": [{"value": "{1}"}]})),
            ("PATCH", "/Groups/{2}", operations(json!([{"op": "replace", "path": "members", "value": []}])), 200, json!({"members": []})),
            ("DELETE", "/Groups/{2}", Value::Null, 204, Value::Null),
        ],
    )
    .await;
}

#[tokio::test]
async fn a_deactivated_user_loses_everything_at_once() {
    let server = Server::start_with(|settings| {
        settings.scim.default_role = haft_core::token::Role::Caller;
        settings.scim.all_tools = true;
    })
    .await;
    server.create(function_tool("gate", "gate")).await;
    let provider = Provider::new(&server).await;
    let ann = provider.user(json!({"userName": "ann", "emails": [{"value": "ann@example.com"}]})).await;
    let (status, link) = server.post(&format!("/api/people/{ann}/invitation"), Value::Null).await;
    assert_eq!(status, 201, "{link}");
    let url = link["data"]["url"].as_str().unwrap();
    let opened = crate::login::submit(&server, &format!("code={}", url.split_once('=').unwrap().1)).await;
    let cookie = crate::login::cookie(&opened);
    let session = async || {
        let request = server.bare(Method::GET, "/api/session").header("cookie", &cookie);
        send(request).await.0
    };
    assert_eq!(session().await, 200);
    let invoke = server.bare(Method::POST, "/api/tools/gate/invoke").header("cookie", &cookie);
    let invoke = invoke.header("x-haft-session", "1").header("sec-fetch-site", "same-origin");
    let call = send(invoke.body(json!({"args": {}}).to_string()));
    let deactivate = async {
        server.gate.entered(1).await;
        let operations = json!([{"op": "Replace", "path": "active", "value": "False"}]);
        provider.patch(&format!("/Users/{ann}"), operations).await
    };
    let (call, deactivated) = tokio::join!(call, deactivate);
    assert_eq!((deactivated.0, &deactivated.1["active"]), (200, &json!(false)), "{}", deactivated.1);
    assert_eq!(code(&call.1), "cancelled", "{}", call.1);
    poll(async || (session().await == 401).then_some(())).await;
    let (_, found) = server.get(&format!("/api/people/{ann}")).await;
    let found = &found["data"];
    assert_eq!((&found["status"], &found["sessions"]), (&json!("disabled"), &json!(0)));
    assert_eq!(found["provisioned"], json!({"user_name": "ann", "external_id": null}));
}

#[tokio::test]
async fn other_tenants_of_a_person_are_not_touched() {
    let server = Server::start().await;
    tenant(&server, "acme").await;
    let provider = Provider::new(&server).await;
    let ann = json!({"name": "Ann", "email": "ann@example.com", "role": "caller"});
    let (_, created) = server.post("/api/people", ann.clone()).await;
    let id = created["data"]["id"].as_str().unwrap();
    let mut of_acme = ann;
    of_acme["tenant"] = json!("acme");
    assert_eq!(server.post("/api/people", of_acme).await.0, 201);
    let path = format!("/Users/{id}");
    let changed = provider.patch(
        &path,
        json!([
            {"op": "replace", "path": "active", "value": false},
            {"op": "replace", "path": "displayName", "value": "Mallory"},
            {"op": "replace", "path": "emails", "value": [{"value": "mallory@example.com"}]},
            {"op": "replace", "path": "externalId", "value": "E1"},
        ]),
    );
    let (status, changed) = changed.await;
    assert_eq!(status, 200, "{changed}");
    let expected = json!({
        "active": false, "displayName": "Ann", "emails": [{"value": "ann@example.com"}], "externalId": "E1",
    });
    assert_has(&changed, &expected, "only the membership");
    let status = async |tenant: &str| {
        let (_, found) = server.get(&format!("/api/people/{id}?tenant={tenant}")).await;
        found["data"]["status"].as_str().unwrap().to_owned()
    };
    assert_eq!(
        (status("default").await, status("acme").await),
        ("disabled".to_owned(), "invited".to_owned())
    );
    assert_eq!(server.get("/api/people?status=disabled").await.1["data"]["total"], 1);
    assert_eq!(server.post(&format!("/api/people/{id}/invitation"), Value::Null).await.0, 409);
    // An admin lets the person in again.
    assert_eq!(server.patch(&format!("/api/people/{id}"), json!({"status": "active"})).await.0, 200);
    assert_eq!(provider.get(&path).await.1["active"], true);
    // Deleting removes the person from this tenant only.
    assert_eq!(provider.send(Method::DELETE, &path, &Value::Null).await.0, 204);
    assert_eq!(server.get(&format!("/api/people/{id}?tenant=acme")).await.0, 200);
}

#[tokio::test]
async fn an_identity_provider_changes_nobody_who_may_do_more_and_no_rights() {
    let server = Server::start().await;
    let person = async |body: Value| {
        let (status, answer) = server.post("/api/people", body).await;
        assert_eq!(status, 201, "{answer}");
        answer["data"]["id"].as_str().unwrap().to_owned()
    };
    let boss = person(json!({"name": "Boss", "role": "admin", "platform": true})).await;
    let elevated = person(json!({"name": "Elevated", "elevated": true})).await;
    let keeper = person(json!({"name": "Keeper", "role": "viewer"})).await;
    let account = account(&server, "provider", json!({"role": "admin", "responsible": "Keeper"})).await;
    let provider = Provider { server: &server, token: account };
    for (id, name) in [(&boss, "Boss"), (&elevated, "Elevated"), (&keeper, "Keeper")] {
        let path = format!("/Users/{id}");
        let (status, found) = provider.get(&path).await;
        assert_eq!((status, &found["displayName"], &found["userName"]), (200, &json!(name), &json!(id)));
        for operations in [
            json!([{"op": "replace", "path": "active", "value": false}]),
            json!([{"op": "replace", "path": "emails", "value": [{"value": "x@example.com"}]}]),
            json!([{"op": "replace", "path": "userName", "value": "x"}]),
        ] {
            let refused = provider.patch(&path, operations.clone()).await;
            assert_eq!(
                (refused.0, &refused.1["status"]),
                (403, &json!("403")),
                "{name} {operations}: {}",
                refused.1
            );
        }
        assert_eq!(provider.send(Method::DELETE, &path, &Value::Null).await.0, 403, "{name}");
    }
    // Rights in the requests are ignored; groups that give more than the token has are not changed.
    let new = json!({"userName": "bob", "roles": [{"value": "admin"}], "entitlements": ["platform"], "role": "admin"});
    let bob = provider.user(new).await;
    let (_, found) = server.get(&format!("/api/people/{bob}")).await;
    let rights = json!({"role": "viewer", "elevated": false, "platform": false, "tools": []});
    assert_eq!(found["data"]["rights"], rights, "{found}");
    let group = async |body: Value| {
        let (status, answer) = server.post("/api/groups", body).await;
        assert_eq!(status, 201, "{answer}");
        format!("/Groups/{}", answer["data"]["id"].as_str().unwrap())
    };
    let strong = group(json!({"name": "strong", "elevated": true})).await;
    let add = json!([{"op": "add", "path": "members", "value": [{"value": bob}]}]);
    assert_eq!(provider.patch(&strong, add.clone()).await.0, 403);
    assert_eq!(provider.send(Method::DELETE, &strong, &Value::Null).await.0, 403);
    // A group of an admin gets members; its rights and its service accounts stay.
    let callers = group(json!({"name": "callers", "role": "caller", "members": ["provider", "Boss"]})).await;
    let (status, changed) = provider.patch(&callers, add).await;
    assert_eq!((status, changed["members"].as_array().unwrap().len()), (200, 2), "{changed}");
    let body = json!({"displayName": "callers", "members": [{"value": bob}]});
    let (status, changed) = provider.send(Method::PUT, &callers, &body).await;
    assert_eq!((status, &changed["members"][0]["value"]), (200, &json!(bob)), "{changed}");
    let (_, found) = server.get("/api/groups/callers").await;
    let members = found["data"]["members"].as_array().unwrap();
    assert_eq!((members.len(), &found["data"]["rights"]["role"]), (2, &json!("caller")), "{found}");
    assert_eq!((&found["data"]["is_provisioned"], &members[1]["name"]), (&json!(true), &json!("provider")));
    let (_, found) = provider.send(Method::POST, "/Groups", &json!({"displayName": "new"})).await;
    let (_, found) = server.get(&format!("/api/groups/{}", found["id"].as_str().unwrap())).await;
    assert_eq!(found["data"]["rights"], rights);
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "one request after the other")]
async fn wrong_requests_are_rejected_in_the_form_of_scim() {
    let server = Server::start().await;
    let provider = Provider::new(&server).await;
    let ann = provider
        .user(json!({"userName": "ann", "externalId": "1", "emails": [{"value": "a@example.com"}]}))
        .await;
    let bob = provider.user(json!({"userName": "bob"})).await;
    let (_, group) =
        provider.send(Method::POST, "/Groups", &json!({"displayName": "g", "externalId": "1"})).await;
    let group = format!("/Groups/{}", group["id"].as_str().unwrap());
    let other = tenant(&server, "acme").await;
    let stranger = Provider { server: &server, token: other };
    let stranger = stranger.user(json!({"userName": "carl"})).await;
    let (ann, bob) = (format!("/Users/{ann}"), format!("/Users/{bob}"));
    let strange = format!("/Users/{stranger}");
    let path = |path: Value| operations(json!([{"op": "replace", "path": path, "value": "x"}]));
    for (method, target, body, expected) in [
        ("POST", "/Users", json!({}), (400, "invalidValue")),
        ("POST", "/Users", json!({"userName": 5}), (400, "invalidValue")),
        ("POST", "/Users", json!({"userName": "x".repeat(300)}), (400, "invalidValue")),
        ("POST", "/Users", json!({"userName": "x", "displayName": "x".repeat(65)}), (400, "invalidValue")),
        (
            "POST",
            "/Users",
            json!({"userName": "x", "emails": [{"value": "no address"}]}),
            (400, "invalidValue"),
        ),
        ("POST", "/Users", json!({"userName": "x", "active": 1}), (400, "invalidValue")),
        ("POST", "/Users", json!([1]), (400, "invalidSyntax")),
        ("POST", "/Users", json!({"userName": "ANN"}), (409, "uniqueness")),
        ("POST", "/Users", json!({"userName": "x", "externalId": "1"}), (409, "uniqueness")),
        (
            "POST",
            "/Users",
            json!({"userName": "x", "emails": [{"value": "A@example.com"}]}),
            (409, "uniqueness"),
        ),
        ("PUT", &bob, json!({"userName": "Ann"}), (409, "uniqueness")),
        ("PUT", &bob, json!({"displayName": "Bob"}), (400, "invalidValue")),
        ("PATCH", &bob, json!({}), (400, "invalidSyntax")),
        ("PATCH", &bob, path(json!("badge")), (400, "invalidPath")),
        ("PATCH", &bob, path(json!("emails[type eq")), (400, "invalidPath")),
        ("PATCH", &bob, path(json!("id")), (400, "mutability")),
        ("PATCH", &bob, path(json!("active")), (400, "invalidValue")),
        ("PATCH", &ann, path(json!("emails[type co \"x\"].value")), (400, "noTarget")),
        ("POST", "/Groups", json!({"displayName": "g"}), (409, "uniqueness")),
        ("POST", "/Groups", json!({"displayName": "h", "externalId": "1"}), (409, "uniqueness")),
        ("POST", "/Groups", json!({"displayName": "a,b"}), (400, "invalidValue")),
        (
            "POST",
            "/Groups",
            json!({"displayName": "h", "members": [{"value": "nobody"}]}),
            (400, "invalidValue"),
        ),
        (
            "POST",
            "/Groups",
            json!({"displayName": "h", "members": [{"value": stranger}]}),
            (400, "invalidValue"),
        ),
        ("PUT", &group, json!({}), (400, "invalidValue")),
        // Another tenant's users do not exist.
        ("GET", &strange, Value::Null, (404, "")),
        ("PUT", &strange, json!({"userName": "x"}), (404, "")),
        ("PATCH", &strange, path(json!("displayName")), (404, "")),
        ("DELETE", &strange, Value::Null, (404, "")),
        ("GET", "/Users/x", Value::Null, (404, "")),
        ("GET", "/Robots", Value::Null, (404, "")),
        ("POST", "/Bulk", json!({}), (404, "")),
        ("PATCH", "/Users", json!({}), (405, "")),
        ("GET", "/Users?filter=userName", Value::Null, (400, "invalidFilter")),
        ("GET", "/Users?filter=active+gt+true", Value::Null, (400, "invalidFilter")),
        ("GET", "/Users?count=many", Value::Null, (400, "invalidValue")),
        ("POST", "/.search", json!({"filter": 5}), (400, "invalidValue")),
        ("POST", "/.search", json!({"filter": "(".repeat(10_000)}), (400, "invalidFilter")),
        (
            "POST",
            "/.search",
            json!({"filter": format!("userName eq \"{}\"", "x".repeat(100_000))}),
            (400, "invalidFilter"),
        ),
        ("POST", "/.search", json!({"filter": vec!["a pr"; 100].join(" or ")}), (400, "invalidFilter")),
        ("POST", "/Users", json!({"userName": "x".repeat(2_000_000)}), (413, "")),
    ] {
        let (status, answer) = provider.send(method.parse().unwrap(), target, &body).await;
        let shown = haft_core::problem::excerpt(&body.to_string(), 200);
        let found = (status, answer["scimType"].as_str().unwrap_or_default());
        assert_eq!(found, expected, "{method} {target} {shown}: {answer}");
        assert_eq!(answer["schemas"], json!(["urn:ietf:params:scim:api:messages:2.0:Error"]));
        assert_eq!(answer["status"], json!(status.to_string()));
        assert!(answer["detail"].as_str().unwrap().len() < 1000, "{answer}");
    }
    for (token, expected) in
        [("nobody", 401), (&*account(&server, "editor", json!({"role": "editor"})).await, 403)]
    {
        let response = server.bare(Method::GET, "/scim/v2/Users").bearer_auth(token).send().await.unwrap();
        assert_eq!(response.status(), expected);
        assert_eq!(response.headers()["content-type"], "application/scim+json");
    }
    assert_eq!(server.bare(Method::GET, "/scim/v2/Schemas").send().await.unwrap().status(), 401);
}

#[tokio::test]
async fn lists_are_filtered_and_paged() {
    let server = Server::start().await;
    let provider = Provider::new(&server).await;
    for name in ["ann", "bob", "carl", "dora", "emil"] {
        provider.user(json!({"userName": name, "displayName": name, "active": name != "carl"})).await;
    }
    provider.send(Method::POST, "/Groups", &json!({"displayName": "group"})).await;
    let names = |answer: &Value| {
        let names = answer["Resources"]
            .as_array()
            .unwrap()
            .iter()
            .map(|found| found["displayName"].as_str().unwrap());
        names.collect::<Vec<_>>().join(" ")
    };
    for (query, total, expected) in [
        ("", 5, "ann bob carl dora emil"),
        ("?startIndex=2&count=2", 5, "bob carl"),
        ("?startIndex=0&count=1", 5, "ann"),
        ("?startIndex=-7&count=-1", 5, ""),
        ("?startIndex=6", 5, ""),
        ("?startIndex=9223372036854775807&count=9223372036854775807", 5, ""),
        ("?filter=active+eq+true&startIndex=3&count=2", 4, "dora emil"),
        ("?filter=userName+sw+%22a%22+or+userName+ew+%22B%22", 2, "ann bob"),
        ("?filter=not+(displayName+co+%22o%22)+and+active+eq+true", 2, "ann emil"),
        ("?filter=userName+eq+%22ann%22+and+active+eq+false", 0, ""),
        ("?filter=meta.lastModified+gt+%222020-01-01T00:00:00Z%22", 5, "ann bob carl dora emil"),
        ("?filter=title+pr", 0, ""),
    ] {
        let (status, answer) = provider.get(&format!("/Users{query}")).await;
        assert_eq!((status, &answer["totalResults"]), (200, &json!(total)), "{query}: {answer}");
        assert_eq!(names(&answer), expected, "{query}");
        assert_eq!(answer["itemsPerPage"], json!(answer["Resources"].as_array().unwrap().len()));
    }
    let search = json!({"filter": "displayName sw \"a\" or displayName eq \"group\"", "attributes": ["displayName"], "count": 10});
    let (status, answer) = provider.send(Method::POST, "/.search", &search).await;
    assert_eq!((status, names(&answer)), (200, "ann group".to_owned()), "{answer}");
    assert!(answer["Resources"][0].get("userName").is_none() && answer["Resources"][0]["id"].is_string());
    for (path, expected) in [("/Users/.search", "ann"), ("/Groups/.search", "group")] {
        let (_, answer) = provider.send(Method::POST, path, &search).await;
        assert_eq!(names(&answer), expected);
    }
    let (_, types) = provider.get("/ResourceTypes").await;
    for resource in types["Resources"].as_array().unwrap() {
        let (status, schema) =
            provider.get(&format!("/Schemas/{}", resource["schema"].as_str().unwrap())).await;
        assert_eq!((status, &schema["name"]), (200, &resource["name"]));
        let (status, same) =
            provider.get(&format!("/ResourceTypes/{}", resource["id"].as_str().unwrap())).await;
        assert_eq!((status, &same), (200, resource));
    }
    assert_eq!(provider.get("/Schemas").await.1["totalResults"], 2);
    // Two requests that add members at the same time lose nothing.
    let (_, list) = provider.get("/Users").await;
    let ids: Vec<&str> =
        list["Resources"].as_array().unwrap().iter().map(|user| user["id"].as_str().unwrap()).collect();
    let (_, groups) = provider.get("/Groups").await;
    let group = format!("/Groups/{}", groups["Resources"][0]["id"].as_str().unwrap());
    let add = |id: &str| {
        provider.patch(&group, json!([{"op": "add", "path": "members", "value": [{"value": id}]}]))
    };
    tokio::join!(add(ids[0]), add(ids[1]), add(ids[2]));
    assert_eq!(provider.get(&group).await.1["members"].as_array().unwrap().len(), 3);
    assert_eq!(with(&server, &server.token, Method::GET, "/api/groups/group", Value::Null).await.0, 200);
}
