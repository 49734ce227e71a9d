//! Which modules of haft-server know HTTP. Domain code does not import handlers, axum or the OpenAPI generator, so that
//! every surface (REST, MCP, WebSocket, built-in tools) does the same thing in the same way.

use super::finding::Finding;

/// The sources of haft-server.
const SOURCES: &str = "crates/haft-server/src/";

/// Who may import handlers.
const ROUTES: &[&str] = &["routes/", "router.rs"];

/// The modules that are free of axum and utoipa: a folder, or a file. haft-platform is without axum altogether.
const FREE: &[&str] = &["browser.rs", "query.rs", "socket/client_frame.rs", "socket/requests.rs"];

/// Checks one file; `name` is its path from the workspace root.
pub(crate) fn check(name: &str, text: &str) -> Vec<Finding> {
    let Some(module) = name.strip_prefix(SOURCES) else { return Vec::new() };
    let (is_route, is_free) = (is_in(module, ROUTES), is_in(module, FREE));
    let mut findings = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let code = line.split_once("//").map_or(line, |(code, _)| code);
        let found = |rule: &str, remedy| Finding {
            file: name.to_owned(),
            line: index + 1,
            rule: rule.to_owned(),
            remedy,
        };
        if !is_route && code.contains("crate::routes") {
            let remedy = "move what both need into the module of its domain, and call it from the handler";
            findings.push(found("domain code imports a handler", remedy));
        }
        if is_free && ["axum::", "utoipa::"].iter().any(|library| code.contains(library)) {
            let remedy =
                "leave requests, responses and their schemas to `routes/`, and plain HTTP types to `http`";
            findings.push(found("axum or utoipa in a module that is free of them", remedy));
        }
    }
    findings
}

fn is_in(module: &str, list: &[&str]) -> bool {
    list.iter().any(|entry| module == *entry || (entry.ends_with('/') && module.starts_with(entry)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(module: &str, text: &str) -> Vec<usize> {
        check(&format!("{SOURCES}{module}"), text).iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn only_routes_import_routes() {
        let text = "// crate::routes\nuse crate::routes::tools;\n";
        assert_eq!(rules("openai/start.rs", text), [2]);
        assert_eq!(rules("serve.rs", text), [2]);
        assert_eq!(rules("router.rs", text), [] as [usize; 0]);
        assert_eq!(rules("routes/tool.rs", text), [] as [usize; 0]);
        assert_eq!(check("crates/haft-cli/src/main.rs", text), []);
    }

    #[test]
    fn free_modules_stay_free() {
        let text = "use axum::Json;\nuse http::HeaderMap;\nuse utoipa::ToSchema;\n";
        assert_eq!(rules("socket/requests.rs", text), [1, 3]);
        assert_eq!(rules("serve.rs", text), [] as [usize; 0]);
    }
}
