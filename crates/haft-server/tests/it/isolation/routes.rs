//! Walks the routes of the OpenAPI document with tokens of a second tenant.

use reqwest::Method;
use serde_json::{Value, json};

use super::expectations::{EXPECTATIONS, Expected, body, expected, path_values, query_values};
use super::first_tenant::{AGENT, FirstTenant, KEY};
use super::probe::{Probe, ProbeRequest, ProbeResponse};
use crate::harness::send;

/// One operation of the OpenAPI document.
struct Operation {
    method: String,
    path: String,
    /// Where its path is served.
    prefixes: Vec<String>,
    path_parameters: Vec<String>,
    query_parameters: Vec<(String, Required)>,
    expected: Expected,
}

#[derive(PartialEq, Eq)]
enum Required {
    Yes,
    No,
}

/// Who walks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Walker {
    /// May also be rejected because of the role.
    Viewer,
    Admin,
}

/// Returns the operations of the document; each must be covered, and nothing else.
async fn operations(probe: &Probe<'_>) -> Vec<Operation> {
    let (_, document) = send(probe.server.bare(Method::GET, "/api/openapi.json")).await;
    let mut operations = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            operations.push(Operation::new(method, path, operation));
        }
    }
    for (method, path, _) in EXPECTATIONS {
        let is_known = operations.iter().any(|known| (&*known.method, &*known.path) == (*method, *path));
        assert!(is_known, "`{method} {path}` is not in the OpenAPI document; remove it from `EXPECTATIONS`");
    }
    operations
}

impl Operation {
    fn new(method: &str, path: &str, operation: &Value) -> Self {
        let parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
        let names = |place: &str| {
            let parameters = parameters.iter().filter(|parameter| parameter["in"] == place);
            let named = parameters.map(|parameter| {
                let required = if parameter["required"] == true { Required::Yes } else { Required::No };
                (parameter["name"].as_str().unwrap().to_owned(), required)
            });
            named.collect::<Vec<_>>()
        };
        let root = operation["servers"][0]["url"] == "/";
        let mut prefixes = vec![if root { String::new() } else { "/api".to_owned() }];
        let expected = expected(method, path);
        // What the tenant creates, it can create only once.
        let creates = matches!(expected, Expected::Own(_)) && method != "get";
        if (path == "/tools" || path.starts_with("/tools/")) && !creates {
            prefixes.push(String::new());
        }
        Self {
            method: method.to_owned(),
            path: path.to_owned(),
            prefixes,
            path_parameters: names("path").into_iter().map(|(name, _)| name).collect(),
            query_parameters: names("query"),
            expected,
        }
    }

    /// Returns the requests for things of the first tenant.
    fn requests(&self, first: &FirstTenant) -> Vec<ProbeRequest> {
        let mut paths: Vec<String> =
            self.prefixes.iter().map(|prefix| format!("{prefix}{}", self.path)).collect();
        for parameter in &self.path_parameters {
            let values = path_values(first, &self.path, parameter);
            let fill = |path: &String| {
                let path = path.clone();
                values.iter().map(move |value| path.replace(&format!("{{{parameter}}}"), value))
            };
            paths = paths.iter().flat_map(fill).collect();
        }
        let query = self.required_query(first);
        paths.into_iter().map(|path| self.request(first, format!("{path}{query}"))).collect()
    }

    fn request(&self, first: &FirstTenant, path: String) -> ProbeRequest {
        let method = self.method.to_uppercase().parse().unwrap();
        ProbeRequest { method, path, body: body(first, &self.method, &self.path) }
    }

    fn required_query(&self, first: &FirstTenant) -> String {
        let required = self.query_parameters.iter().filter(|(_, required)| *required == Required::Yes);
        let pairs = required.filter_map(|(name, _)| {
            Some(format!("{name}={}", query_values(first, &self.path, name).into_iter().next()?))
        });
        let query = pairs.collect::<Vec<_>>().join("&");
        if query.is_empty() { query } else { format!("?{query}") }
    }

    /// Returns the requests that filter by things of the first tenant.
    fn filters(&self, first: &FirstTenant) -> Vec<ProbeRequest> {
        let requests = self.requests(first);
        let path = requests[0].path.split('?').next().unwrap();
        let mut filters = Vec::new();
        for (name, _) in &self.query_parameters {
            let values = query_values(first, &self.path, name).into_iter();
            filters.extend(values.map(|value| self.request(first, format!("{path}?{name}={value}"))));
        }
        filters
    }

    fn has_pages(&self) -> bool {
        self.query_parameters.iter().any(|(name, _)| name == "page_token")
    }

    /// Reads come before writes of the own tenant, so that lists are still empty.
    fn order(&self) -> (bool, bool) {
        (matches!(self.expected, Expected::Own(_)), self.method != "get")
    }
}

/// Sends every request that the document allows, and fails if a response reveals anything of the first tenant.
pub(super) async fn walk(probe: &Probe<'_>, walker: Walker) {
    let mut operations = operations(probe).await;
    operations.sort_by_key(Operation::order);
    for operation in &operations {
        for request in operation.requests(probe.first) {
            let response = match operation.expected {
                Expected::NotFound => probe.send_like_absent(&request).await,
                _ => probe.send(&request).await,
            };
            check(operation, walker, &request, &response);
        }
        if operation.has_pages() {
            use_page_token(probe, operation).await;
        }
        // Lists of the own tenant are no longer empty after its own requests.
        for request in operation.filters(probe.first) {
            let response = probe.send(&request).await;
            if response.status == 200 {
                check(operation, walker, &request, &response);
            }
        }
    }
}

fn check(operation: &Operation, walker: Walker, request: &ProbeRequest, response: &ProbeResponse) {
    let ProbeResponse { status, body } = response;
    if walker == Walker::Viewer && *status == 403 {
        return;
    }
    let is_expected = match operation.expected {
        Expected::NotFound => *status == 404,
        Expected::Forbidden => *status == 403,
        Expected::Empty(_) | Expected::BuiltIn(_) => *status == 200,
        Expected::Own(statuses) => statuses.contains(status),
    };
    assert!(is_expected, "{request:?}: expected {:?}, got {status}: {body}", operation.expected);
    let data = serde_json::from_str::<Value>(body).map(|answer| answer["data"].clone()).unwrap_or_default();
    let list =
        |name: &str| data[name].as_array().unwrap_or_else(|| panic!("{request:?}: no `{name}`: {body}"));
    match operation.expected {
        Expected::Empty(name) => {
            assert!(list(name).is_empty(), "{request:?}: {body}");
            assert!(data["total"].is_null() || data["total"] == 0, "{request:?}: {body}");
        }
        Expected::BuiltIn(name) => {
            let is_built_in = |item: &Value| item["built_in"] == true || item["slug"] == "builtin";
            assert!(list(name).iter().all(is_built_in), "{request:?}: {body}");
        }
        Expected::NotFound | Expected::Forbidden | Expected::Own(_) => {}
    }
}

/// Continues a list of the first tenant with the token of the second one.
async fn use_page_token(probe: &Probe<'_>, operation: &Operation) {
    let required = operation.required_query(probe.first).replace('?', "&");
    let requests = operation.requests(probe.first);
    let path = requests[0].path.split('?').next().unwrap().to_owned();
    let (status, answer) = probe.server.get(&format!("{path}?page_size=1{required}")).await;
    assert_eq!(status, 200, "{path}: {answer}");
    let Some(token) = answer["data"]["next_page_token"].as_str() else { return };
    let request = operation.request(probe.first, format!("{path}?page_token={token}{required}"));
    let response = probe.send(&request).await;
    assert!([200, 400, 403, 404].contains(&response.status), "{request:?}: {response:?}");
    if response.status == 200 && !matches!(operation.expected, Expected::Own(_)) {
        check(operation, Walker::Admin, &request, &response);
    }
}

/// Routes that the document does not have.
pub(super) async fn walk_undocumented(probe: &Probe<'_>) {
    for path in ["/ui/", "/docs", "/device", "/tools/tools", "/tools/tools/search?q=opal-second-description"]
    {
        let request = ProbeRequest { method: Method::GET, path: path.to_owned(), body: Value::Null };
        let response = probe.send(&request).await;
        assert_eq!(response.status, 200, "{path}: {}", response.body);
    }
    // `socket.rs` opens `/ws` as two tenants.
    use_openai_routes(probe).await;
    use_scim_routes(probe).await;
}

/// The OpenAI-compatible routes.
async fn use_openai_routes(probe: &Probe<'_>) {
    let request =
        |method: Method, path: &str, body: Value| ProbeRequest { method, path: path.to_owned(), body };
    let models = probe.send(&request(Method::GET, "/v1/models", Value::Null)).await;
    assert!(models.status == 200 && models.body.contains("\"data\":[]"), "{models:?}");
    let messages = json!([{"role": "user", "content": "x"}]);
    for request in [
        request(Method::GET, &format!("/v1/models/{AGENT}"), Value::Null),
        request(Method::GET, &format!("/v1/models/{}", probe.first.agent), Value::Null),
        request(Method::POST, "/v1/chat/completions", json!({"model": AGENT, "messages": messages})),
        request(Method::POST, "/v1/responses", json!({"model": probe.first.agent, "input": "x"})),
        request(Method::GET, &format!("/v1/responses/resp_{}", probe.first.run), Value::Null),
        request(Method::POST, &format!("/v1/responses/resp_{}/cancel", probe.first.run), Value::Null),
    ] {
        assert_eq!(probe.send_like_absent(&request).await.status, 404, "{request:?}");
    }
    let body = json!({
        "model": AGENT, "input": "x", "previous_response_id": format!("resp_{}", probe.first.run),
    });
    let request = request(Method::POST, "/v1/responses", body);
    assert_eq!(probe.send_like_absent(&request).await.status, 400, "{request:?}");
}

/// The routes of identity providers.
async fn use_scim_routes(probe: &Probe<'_>) {
    let request = |method: Method, path: String, body: Value| ProbeRequest {
        method,
        path: format!("/scim/v2{path}"),
        body,
    };
    let name = json!({"userName": "own", "displayName": "own"});
    let patch = json!({"Operations": [{"op": "replace", "path": "displayName", "value": "own"}]});
    for (list, id) in [("Users", &probe.first.person), ("Groups", &probe.first.group)] {
        let path = format!("/{list}/{id}");
        for request in [
            request(Method::GET, path.clone(), Value::Null),
            request(Method::PUT, path.clone(), name.clone()),
            request(Method::PATCH, path.clone(), patch.clone()),
            request(Method::DELETE, path, Value::Null),
        ] {
            assert_eq!(probe.send_like_absent(&request).await.status, 404, "{request:?}");
        }
    }
    for query in [
        "/Users",
        "/Groups",
        "/Users?filter=userName+eq+%22onyx@person.example%22",
        "/Groups?filter=displayName+pr",
    ] {
        let found = probe.send(&request(Method::GET, query.to_owned(), Value::Null)).await;
        assert!(found.body.contains("\"totalResults\":0"), "{query}: {found:?}");
    }
}

/// Requests whose body names another tenant, and keys that another tenant has used.
pub(super) async fn use_names_and_keys(probe: &Probe<'_>) {
    for (path, body) in [
        ("/api/tokens", json!({"name": "x", "tenant": "default"})),
        ("/api/tokens", json!({"name": "x", "tenant": super::first_tenant::OTHER_TENANT})),
        ("/api/tokens", json!({"name": "x", "role": "admin", "platform": true})),
        ("/api/policy/explain", json!({"tool": "hello", "as": {"tenant": "default"}})),
    ] {
        let request = ProbeRequest { method: Method::POST, path: path.to_owned(), body };
        let response = probe.send(&request).await;
        assert!([400, 403].contains(&response.status), "{request:?}: {response:?}");
    }
    let token = json!({"tool": "hello", "as": {"token": probe.first.token}});
    let request = ProbeRequest { method: Method::POST, path: "/api/policy/explain".to_owned(), body: token };
    assert_eq!(probe.send_like_absent(&request).await.status, 404);
    // The first tenant has called the same global tool with this key.
    let request = probe.server.bare(Method::POST, "/api/tools/hello/invoke").bearer_auth(&probe.token);
    let response =
        request.header("idempotency-key", KEY).body("{\"args\": {\"own\": 1}}").send().await.unwrap();
    assert!(!response.headers().contains_key("idempotency-replayed"));
    let answer: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
    assert_eq!((&answer["ok"], &answer["value"]), (&json!(true), &json!({"own": 1})), "{answer}");
}
