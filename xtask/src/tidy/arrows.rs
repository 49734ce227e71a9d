//! Which crate may depend on which: the table of the design, compared with `cargo metadata`.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use anyhow::Context as _;
use serde_json::Value;

use super::finding::Finding;

/// A crate of the workspace.
struct Member {
    name: &'static str,
    /// What it is for; the same sentence as in the design.
    purpose: &'static str,
    /// The crates that it may depend on.
    depends_on: &'static [&'static str],
}

/// Returns a row of the table.
const fn member(name: &'static str, purpose: &'static str, depends_on: &'static [&'static str]) -> Member {
    Member { name, purpose, depends_on }
}

/// The table of DESIGN section 2.
const MEMBERS: &[Member] = &[
    member("haft-macros", "#[tool]", &[]),
    member("haft-core", "domain types and rules; no I/O, no clock, no env", &[]),
    member("haft-api", "wire types of the REST API, error body, paging, their schemas", &["haft-core"]),
    member("haft-template", "the template notations and their escaping", &["haft-core"]),
    member(
        "haft-definition",
        "reading and writing definitions of every kind, checks, export",
        &["haft-core", "haft-template"],
    ),
    member(
        "haft-import",
        "OpenAPI documents, curl commands and configurations of clients to definitions",
        &["haft-core", "haft-definition"],
    ),
    member("haft-sandbox", "run one process confined; the only place with unsafe, if any", &[]),
    member("haft-policy", "policy rules, compiled and evaluated; the only CEL", &["haft-core"]),
    member(
        "haft-runtime",
        "registry, the call pipeline, policy, limits, queue",
        &["haft-core", "haft-template", "haft-definition", "haft-policy"],
    ),
    member(
        "haft-executors",
        "one module per implementation, and the guard of outgoing connections",
        &["haft-core", "haft-template", "haft-definition", "haft-sandbox", "haft-runtime"],
    ),
    member(
        "haft-builtins",
        "the tools that come with haft; the only mailer and HTML reader",
        &["haft-core", "haft-definition", "haft-runtime", "haft-executors"],
    ),
    member("haft-wasm", "the wasm executor; the only wasmtime", &["haft-core", "haft-template"]),
    member(
        "haft-mcp",
        "MCP client and server over the pipeline; the only rmcp",
        &["haft-core", "haft-template", "haft-definition", "haft-runtime", "haft-executors", "haft-sandbox"],
    ),
    member(
        "haft-store",
        "catalog, ledger, search, secrets, blobs; the only SQL",
        &["haft-core", "haft-definition"],
    ),
    member(
        "haft-oauth",
        "OAuth 2.1 and OpenID Connect: tokens, metadata and redirect URIs, checked without I/O",
        &["haft-core"],
    ),
    member("haft-scim", "SCIM filters, patches and schemas; no I/O", &["haft-core"]),
    member("haft-search", "ranking tools for a query: BM25F and a static embedding; no I/O", &["haft-core"]),
    member("haft-retrieval", "documents, chunks, BM25 and embeddings", &["haft-core"]),
    member(
        "haft-package",
        "packages of tools: safe archives, toolset manifests, signatures, Agent Skills",
        &["haft-core", "haft-definition"],
    ),
    member("haft-workspace", "content-addressed snapshots of folders", &["haft-core"]),
    member(
        "haft-agent",
        "model providers, the tool loop, chats, retrieval",
        &["haft-core", "haft-template", "haft-definition", "haft-runtime", "haft-executors"],
    ),
    member(
        "haft-platform",
        "the installation without HTTP: one module per capability",
        &[
            "haft-core",
            "haft-template",
            "haft-definition",
            "haft-import",
            "haft-sandbox",
            "haft-policy",
            "haft-runtime",
            "haft-executors",
            "haft-builtins",
            "haft-wasm",
            "haft-mcp",
            "haft-store",
            "haft-search",
            "haft-retrieval",
            "haft-oauth",
            "haft-scim",
            "haft-package",
            "haft-workspace",
            "haft-agent",
        ],
    ),
    member(
        "haft-server",
        "REST, MCP server, WebSocket/SSE, embedded UI; the only axum",
        &[
            "haft-platform",
            "haft-api",
            "haft-macros",
            "haft-core",
            "haft-template",
            "haft-definition",
            "haft-import",
            "haft-sandbox",
            "haft-policy",
            "haft-runtime",
            "haft-executors",
            "haft-builtins",
            "haft-wasm",
            "haft-mcp",
            "haft-store",
            "haft-search",
            "haft-retrieval",
            "haft-oauth",
            "haft-scim",
            "haft-package",
            "haft-workspace",
            "haft-agent",
        ],
    ),
    member(
        "haft",
        "the embeddable library: Tools, #[tool], middleware, mocks",
        &[
            "haft-core",
            "haft-template",
            "haft-definition",
            "haft-macros",
            "haft-runtime",
            "haft-executors",
            "haft-search",
            "haft-builtins",
            "haft-wasm",
            "haft-mcp",
            "haft-server",
        ],
    ),
    // It takes the vocabulary from core until the library `haft`, which hands it on, is built.
    member(
        "haft-cli",
        "the binary `haft`: clap, config, terminal output",
        &["haft", "haft-server", "haft-api", "haft-core", "haft-definition", "haft-import", "haft-package"],
    ),
    // Support crates: no crate of the product depends on these.
    member("haft-testkit", "what tests of several crates need", &["haft-core"]),
    member(
        "haft-bench",
        "benchmarks of haft next to its peers",
        &[
            "haft",
            "haft-server",
            "haft-wasm",
            "haft-runtime",
            "haft-retrieval",
            "haft-sandbox",
            "haft-core",
            "haft-testkit",
            "haft-workspace",
        ],
    ),
    member("xtask", "checks of the repository", &[]),
];

/// The crate that every crate may use in its tests.
const TESTKIT: &str = "haft-testkit";

/// Libraries that only some crates may use, in whatever kind of dependency.
const ONLY: &[(&str, &[&str])] = &[
    // The command line holds the server's router for calls without a server.
    ("axum", &["haft-server", "haft-cli", "haft-testkit", "haft-bench"]),
    // In the benchmarks its full-text search is the peer.
    ("sqlx", &["haft-store", "haft-bench"]),
    ("rmcp", &["haft-mcp", "haft-bench"]),
    // In the benchmarks it is the peer.
    ("wasmtime", &["haft-wasm", "haft-bench"]),
    ("wasmtime-wasi", &["haft-wasm"]),
    ("lettre", &["haft-builtins"]),
    ("html5gum", &["haft-builtins", "haft-retrieval"]),
    ("cel", &["haft-policy"]),
    ("clap", &["haft-cli", "haft-bench"]),
    // Not the pipeline, so that it does not wait for an HTTP client to be built; the library and the server have it in tests only.
    (
        "reqwest",
        &[
            "haft-executors",
            "haft-mcp",
            "haft-agent",
            "haft-store",
            "haft-cli",
            "haft-server",
            "haft",
            "haft-bench",
        ],
    ),
];

/// Libraries that core and template never use: they have no async, no I/O and no clock.
const NEVER_IN_CORE: &[&str] = &["tokio", "reqwest", "hyper", "notify", "tracing-subscriber"];

/// Checks the output of `cargo metadata --no-deps`.
pub(crate) fn check(metadata: &Value, workspace: &Path) -> anyhow::Result<Vec<Finding>> {
    let packages =
        metadata.get("packages").and_then(Value::as_array).context("`packages` in the metadata")?;
    let members: Vec<&str> = packages.iter().filter_map(|package| text(package, "name")).collect();
    let table: HashMap<&str, &Member> = MEMBERS.iter().map(|member| (member.name, member)).collect();
    let mut findings = Vec::new();
    for package in packages {
        let name = text(package, "name").context("`name` of a package")?;
        let manifest = Manifest::of(package, workspace);
        let Some(member) = table.get(name) else {
            findings.push(manifest.finding(
                &format!("name = \"{name}\""),
                format!("the crate `{name}` is not in the table of arrows"),
                "add it to the design and to MEMBERS in xtask/src/tidy/arrows.rs, with one sentence of purpose",
            ));
            continue;
        };
        for dependency in package.get("dependencies").and_then(Value::as_array).into_iter().flatten() {
            let to = text(dependency, "name").unwrap_or_default();
            let dev = text(dependency, "kind") == Some("dev");
            findings.extend(check_arrow(member, to, dev, members.contains(&to), &manifest));
        }
    }
    Ok(findings)
}

fn check_arrow(member: &Member, to: &str, dev: bool, is_ours: bool, manifest: &Manifest) -> Option<Finding> {
    let from = member.name;
    let test_only = dev && to == TESTKIT;
    if is_ours && !test_only && !member.depends_on.contains(&to) {
        return Some(manifest.finding(
            to,
            format!("`{from}` ({}) may not depend on `{to}`", member.purpose),
            "move the code to the crate that may, or pass the thing in; a new arrow is a change of the design",
        ));
    }
    let only = ONLY.iter().find(|(library, users)| *library == to && !users.contains(&from));
    if let Some((library, users)) = only {
        return Some(manifest.finding(
            to,
            format!("`{library}` is for {} only, not for `{from}`", users.join(", ")),
            "use it through a type of the crate that has it",
        ));
    }
    let pure = ["haft-core", "haft-template"].contains(&from);
    (pure && !dev && NEVER_IN_CORE.contains(&to)).then(|| {
        manifest.finding(
            to,
            format!("`{from}` has no async, no I/O and no clock, and so no `{to}`"),
            "define a trait in core and implement it outside",
        )
    })
}

fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key).and_then(Value::as_str)
}

/// The manifest of a package, to name the line of a dependency.
struct Manifest {
    file: String,
    lines: Vec<String>,
}

impl Manifest {
    fn of(package: &Value, root: &Path) -> Self {
        let path = Path::new(text(package, "manifest_path").unwrap_or("Cargo.toml"));
        let file = path.strip_prefix(root).unwrap_or(path).to_string_lossy().into_owned();
        let content = fs::read_to_string(path).unwrap_or_default();
        Self { file, lines: content.lines().map(str::to_owned).collect() }
    }

    fn finding(&self, start: &str, rule: String, remedy: &'static str) -> Finding {
        let names = |line: &String| {
            line.trim_start()
                .strip_prefix(start)
                .is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '-' || c == '_'))
        };
        let line = self.lines.iter().position(names).map_or(1, |index| index + 1);
        Finding { file: self.file.clone(), line, rule, remedy }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Checks one package `from` with one dependency; all crates of the table are members.
    fn check_one(from: &str, to: &str, kind: Option<&str>) -> Vec<String> {
        let mut packages: Vec<Value> = MEMBERS
            .iter()
            .filter(|member| member.name != from)
            .map(|member| json!({"name": member.name, "manifest_path": "/none", "dependencies": []}))
            .collect();
        packages.push(json!({
            "name": from,
            "manifest_path": "/none/Cargo.toml",
            "dependencies": [{"name": to, "kind": kind}],
        }));
        let findings = check(&json!({ "packages": packages }), Path::new("/none")).unwrap();
        findings.into_iter().map(|finding| format!("{}: {}", finding.file, finding.rule)).collect()
    }

    #[test]
    fn arrows_of_the_design_pass() {
        for (from, to, kind) in [
            ("haft-runtime", "haft-core", None),
            ("haft-server", "haft-platform", None),
            ("haft-platform", "haft-store", None),
            ("haft-cli", "haft-server", None),
            ("haft-store", "haft-testkit", Some("dev")),
            ("haft-store", "sqlx", None),
            ("haft-cli", "axum", None),
            ("haft-core", "serde", None),
        ] {
            assert_eq!(check_one(from, to, kind), Vec::<String>::new(), "{from} -> {to}");
        }
    }

    #[test]
    fn other_arrows_are_named() {
        for (from, to, kind, rule) in [
            (
                "haft-core",
                "haft-store",
                None,
                "`haft-core` (domain types and rules; no I/O, no clock, no env) may not depend on `haft-store`",
            ),
            (
                "haft-store",
                "haft-testkit",
                None,
                "`haft-store` (catalog, ledger, search, secrets, blobs; the only SQL) may not depend on `haft-testkit`",
            ),
            (
                "haft-store",
                "haft-server",
                Some("dev"),
                "`haft-store` (catalog, ledger, search, secrets, blobs; the only SQL) may not depend on `haft-server`",
            ),
            ("haft-server", "sqlx", None, "`sqlx` is for haft-store, haft-bench only, not for `haft-server`"),
            (
                "haft-server",
                "sqlx",
                Some("dev"),
                "`sqlx` is for haft-store, haft-bench only, not for `haft-server`",
            ),
            (
                "haft-runtime",
                "wasmtime",
                None,
                "`wasmtime` is for haft-wasm, haft-bench only, not for `haft-runtime`",
            ),
            ("haft-core", "tokio", None, "`haft-core` has no async, no I/O and no clock, and so no `tokio`"),
            ("haft-utils", "serde", None, "the crate `haft-utils` is not in the table of arrows"),
        ] {
            assert_eq!(check_one(from, to, kind), [format!("Cargo.toml: {rule}")], "{from} -> {to}");
        }
    }

    #[test]
    fn the_table_has_no_cycle() {
        for member in MEMBERS {
            let mut reached: Vec<&str> = member.depends_on.to_vec();
            let mut index = 0;
            while let Some(name) = reached.get(index).copied() {
                assert_ne!(name, member.name, "a cycle through {name}");
                let next = MEMBERS.iter().find(|member| member.name == name).unwrap();
                for known in next.depends_on {
                    if !reached.contains(known) {
                        reached.push(known);
                    }
                }
                index += 1;
            }
        }
    }
}
