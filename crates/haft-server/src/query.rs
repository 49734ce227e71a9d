//! Rejects query parameters that a route does not have, by the OpenAPI document.

use haft_core::problem::{excerpt, nearest};
use http::{Method, Uri};
use serde_json::{Value, json};

use crate::document;
use crate::error::ApiError;
use crate::params::normalize;

/// Paths that older clients use, and the documented paths of the same handlers.
const ALIASES: [(&str, &str); 2] = [("/tools/tools", "/tools"), ("/tools/tools/search", "/tools/search")];

/// The query parameters of every route that needs a token.
pub(crate) struct QueryParameters {
    routes: matchit::Router<Vec<RouteParameters>>,
}

struct RouteParameters {
    method: String,
    names: Vec<String>,
}

impl QueryParameters {
    /// Reads the parameters from the document.
    pub(crate) fn new(document: &mut Value) -> Self {
        let mut found: Vec<(String, Vec<RouteParameters>)> = Vec::new();
        document::for_each_operation(document, |path, method, operation| {
            // Authorization servers add parameters of their own to the address that a login returns to.
            if operation.get("security").is_some() || operation.get("servers").is_some() {
                return;
            }
            let parameters = operation.get("parameters").and_then(Value::as_array).into_iter().flatten();
            let of_query = parameters.filter(|parameter| parameter.get("in") == Some(&json!("query")));
            let names = of_query.filter_map(|parameter| parameter.get("name")?.as_str().map(str::to_owned));
            let route = RouteParameters { method: method.to_uppercase(), names: names.collect() };
            match found.last_mut() {
                Some((last, routes)) if last == path => routes.push(route),
                _ => found.push((path.to_owned(), vec![route])),
            }
        });
        let mut routes = matchit::Router::new();
        let mut insert = |path: &str, parameters: &[RouteParameters]| {
            let copy = |route: &RouteParameters| RouteParameters {
                method: route.method.clone(),
                names: route.names.clone(),
            };
            // The paths are those of the router, which has no conflicts.
            let _ = routes.insert(format!("/api{path}"), parameters.iter().map(copy).collect());
            if path == "/tools" || path.starts_with("/tools/") {
                let _ = routes.insert(path, parameters.iter().map(copy).collect());
            }
        };
        for (path, parameters) in &found {
            insert(path, parameters);
            for (alias, _) in ALIASES.iter().filter(|(_, documented)| documented == path) {
                insert(alias, parameters);
            }
        }
        Self { routes }
    }

    /// Rejects the first parameter that the route of a request does not have.
    pub(crate) fn check(&self, method: &Method, uri: &Uri) -> Result<(), ApiError> {
        let Some(query) = uri.query().filter(|query| !query.is_empty()) else { return Ok(()) };
        let Ok(found) = self.routes.at(uri.path()) else { return Ok(()) };
        let method = if *method == Method::HEAD { &Method::GET } else { method };
        let Some(route) = found.value.iter().find(|route| route.method == method.as_str()) else {
            return Ok(());
        };
        for (name, _) in url::form_urlencoded::parse(query.as_bytes()) {
            let normalized = normalize(&name);
            if !route.names.iter().any(|known| normalize(known) == normalized) {
                return Err(unknown(&name, &route.names));
            }
        }
        Ok(())
    }
}

fn unknown(name: &str, known: &[String]) -> ApiError {
    let hint = match nearest(name, known.iter().map(String::as_str)) {
        Some(near) => format!("did you mean `{near}`?"),
        None if known.is_empty() => "this route has no parameters".to_owned(),
        None => {
            let names: Vec<_> = known.iter().map(|name| format!("`{name}`")).collect();
            format!("expected one of {}", names.join(", "))
        }
    };
    let name = excerpt(name, 60);
    ApiError::bad_request(format!("unknown query parameter `{name}`; {hint}"))
        .with_details(json!({"parameter": name, "known": known}))
}
