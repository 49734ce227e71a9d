//! README, guides and examples run as they are printed.
//!
//! Each page is a test: its shell blocks run in order, its files are saved under their names and checked, beside a server
//! that was started as `make run` does it. `page` has the rules for blocks.

#![expect(clippy::unwrap_used, reason = "tests may fail loudly")]

mod links;
mod page;
mod session;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use page::Purpose;
use session::{Page, root};

/// Declares a test per page, and the list of them.
macro_rules! pages {
    ($($name:ident: $path:literal $(given $given:expr)? $(, prints [$($part:expr),+ $(,)?])?;)*) => {
        const PAGES: &[&str] = &[$($path),*];
        $(
            #[test]
            fn $name() {
                let given: String = String::new() $(+ &$given)?;
                session::run(&Page { path: $path, given: &given, prints: &[$($($part),+)?] });
            }
        )*
    };
}

const KEY: &str = "echo k-123 > key.txt\n";
const PETSTORE: &str = r#"
cat > petstore.json <<'EOF'
{"openapi": "3.1.0", "info": {"title": "Pets", "version": "1"}, "servers": [{"url": "https://pets.example.com"}],
 "paths": {"/pets": {"get": {"operationId": "listPets", "tags": ["issues"], "responses": {"200": {"description": "Pets"}}}}}}
EOF
"#;
const DEPLOY: &str = r#"
haft tool add - >/dev/null <<'EOF'
{"name": "deploy", "description": "Deploys", "implementation": {"type": "exec", "argv": ["echo", "deployed"]}}
EOF
"#;

pages! {
    readme: "README.md", prints [
        "demo:server_health", "\"ok\":true", "invalid YAML", "WEATHER_API_KEY", "\"input_schema\"",
        "The tool `datetime_utils` returned", "success",
    ];
    accounts: "docs/accounts.md", prints ["GitHub"];
    agent_runs: "docs/agent-runs.md", prints ["event: start", "event: tool_use", "event: end"];
    agents: "docs/agents.md" given KEY;
    api: "docs/api.md", prints ["\"ok\":true", "\"dry_run\":true"];
    apply: "docs/apply.md", prints ["Plan: 2 to create", "+ code artifact word-count"];
    approvals: "docs/approvals.md", prints ["awaiting_approval", "deploy"];
    artifacts: "docs/artifacts.md", prints ["3"];
    built_in_tools: "docs/built-in-tools.md" given KEY, prints ["Europe/Berlin", "EUR"];
    chats: "docs/chats.md", prints ["event: message", "event: end"];
    cli: "docs/cli.md" given [KEY, PETSTORE, "cp petstore.json petstore.yaml; mv petstore.json github.json\n"].concat(),
        prints ["Paris: sunny for 3 days", "Paris: sunny for 1 days"];
    configuration: "docs/configuration.md";
    credentials: "docs/credentials.md" given KEY;
    definitions: "docs/definitions.md", prints ["input_schema", "strict"];
    editors: "docs/editors.md", prints ["toolset.yaml"];
    exec_tools: "docs/exec-tools.md", prints ["/usr/include"];
    file_tools: "docs/file-tools.md", prints ["All is well."];
    hosted_clients: "docs/hosted-clients.md", prints ["haft_client_"];
    http_tools: "docs/http-tools.md";
    lifecycle: "docs/lifecycle.md" given [PETSTORE, r#"
haft import openapi petstore.json --bundle pets >/dev/null
haft tool add --name forecast --description Forecast --url https://example.com >/dev/null
cat > tools.jsonl <<'EOF'
{"id": 1, "tenant_id": 7, "slug": "old", "name": "Old", "description": "An old tool", "implementation_type": "http", "implementation_config": {"url": "https://example.com"}}
EOF
"#].concat();
    limits: "docs/limits.md", prints ["ratelimit-limit: 60"];
    mcp: "docs/mcp.md" given "mkdir pdf-forms; printf -- '---\\nname: pdf-forms\\ndescription: Fills forms\\n---\\nFill.\\n' > pdf-forms/SKILL.md\n";
    mcp_servers: "docs/mcp-servers.md";
    models: "docs/models.md", prints ["Look out of the window in Oslo."];
    openai_endpoint: "docs/openai-endpoint.md", prints ["chat.completion.chunk"];
    openapi_import: "docs/openapi-import.md", prints ["created"];
    people: "docs/people.md", prints [
        "/login?invitation=", "ann@example.com", "nightly-report", "caller; tools: bank:*", "Ann Smith, person", "nightly-report-2",
    ];
    policy: "docs/policy.md", prints ["large-payments", "\"effect\":\"approve\""];
    remote: "docs/remote.md", prints ["token: laptop", "role: editor", "http://127.0.0.1:"];
    retrieval: "docs/retrieval.md" given "mkdir docs; echo 'You have 28 days of leave.' | tee guide.md > docs/leave.md\n",
        prints ["28 days"];
    sandbox: "docs/sandbox.md", prints ["3"];
    scim: "docs/scim.md", prints ["urn:ietf:params:scim:schemas:core:2.0:User", "Ann Smith", "managed by SCIM"];
    script_tools: "docs/script-tools.md", prints ["3", "hits"];
    search: "docs/search.md";
    security: "docs/security.md";
    sign_on: "docs/sign-on.md";
    steps: "docs/steps.md";
    storage: "docs/storage.md";
    team: "docs/team.md", prints [
        "user-created:deploy@1.0.0",
        r#""status":"awaiting_approval""#,
        r#""value":"deployed main to test""#,
        r#""status":"awaiting_approval""#,
        "`ada` denied the call: not on a Friday",
        "deny: decided by `no-agents-in-production`",
        r#""ok":true"#,
        "denied",
    ];
    tenants_and_tokens: "docs/tenants-and-tokens.md";
    tools: "docs/tools.md" given "echo k-123 > token.txt\n", prints ["passed"];
    toolset_walk: "docs/toolset-walk.md", prints [
        "count_words",
        "'words': 3, 'letters': 11",
        "__TOOL_DATA__ = {\"filename\":\"notes.txt\"",
        "one two two\nthree\n",
        "one two two\n",
        "one two two\nthree\n",
        "one two two\n",
        "letters",
    ];
    toolsets: "docs/toolsets.md", prints ["count_words", "words"];
    webhooks: "docs/webhooks.md" given [DEPLOY, "cp -r examples/agents \"$HOME/.haft/\"; await haft agent show researcher\n"].concat(),
        prints ["whsec_", "\"status\":\"pending\""];
    workspaces: "docs/workspaces.md", prints ["2"];
    example_agents: "examples/agents/README.md", prints ["The clock says", "28 days"];
    example_tools: "examples/tools/README.md", prints ["20"];
    example_toolsets: "examples/toolsets/README.md", prints ["run_command", "+ write_file"];
}

/// Returns all pages.
fn all() -> Vec<String> {
    let mut found = vec!["README.md".to_owned()];
    let mut folders = vec!["docs".to_owned(), "examples".to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(root().join(&folder)).unwrap() {
            let entry = entry.unwrap();
            let path = format!("{folder}/{}", entry.file_name().into_string().unwrap());
            if entry.file_type().unwrap().is_dir() {
                folders.extend((!path.ends_with("/target")).then_some(path));
            } else if Path::new(&path).extension().is_some_and(|extension| extension == "md") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

#[test]
fn every_page_is_tested_and_every_block_has_a_purpose() {
    let mut problems = Vec::new();
    let mut marks = String::new();
    for path in all() {
        let text = std::fs::read_to_string(root().join(&path)).unwrap();
        let mut counts = BTreeMap::<&str, usize>::new();
        let mut needs_test = false;
        for block in page::blocks(&text) {
            if block.is_broken_json() {
                problems.push(format!("{path}:{}: invalid JSON", block.line));
            }
            match block.purpose() {
                Ok(Purpose::Marked(mark)) => *counts.entry(mark).or_default() += 1,
                Ok(purpose) => needs_test |= purpose != Purpose::Look,
                Err(problem) => problems.push(format!("{path}:{}: {problem}", block.line)),
            }
        }
        if needs_test != PAGES.contains(&path.as_str()) {
            problems
                .push(format!("{path}: {}", if needs_test { "no test runs it" } else { "nothing to run" }));
        }
        if !counts.is_empty() {
            let counts: Vec<String> = counts.iter().map(|(mark, count)| format!("{mark} {count}")).collect();
            writeln!(marks, "{path}: {}", counts.join(", ")).unwrap();
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    // The blocks that do not run as printed; adding one is a deliberate change.
    insta::assert_snapshot!(marks, @r"
    README.md: slow 2
    docs/accounts.md: fragment 1, needs-network 5
    docs/agents.md: needs-key 1, response 1
    docs/api.md: endless 1, response 3
    docs/apply.md: needs-network 1
    docs/approvals.md: response 1
    docs/benchmarks.md: slow 2
    docs/built-in-tools.md: endless 2, needs-network 1
    docs/cli.md: needs-network 1, needs-terminal 1
    docs/definitions.md: response 1
    docs/hosted-clients.md: fragment 1, needs-network 2
    docs/http-tools.md: needs-network 1
    docs/large-results.md: response 1
    docs/library.md: fragment 1
    docs/lifecycle.md: needs-terminal 1
    docs/mcp-servers.md: fragment 1, needs-network 4, needs-program 3
    docs/mcp.md: fragment 2, needs-program 2, slow 1
    docs/middleware.md: fragment 1
    docs/models.md: needs-key 1
    docs/openai-endpoint.md: needs-program 1, response 2
    docs/openapi-import.md: needs-network 2
    docs/people.md: needs-network 2
    docs/policy.md: response 1
    docs/remote.md: needs-network 1
    docs/retrieval.md: fragment 2, needs-key 1
    docs/script-tools.md: fragment 1
    docs/search.md: response 1
    docs/sign-on.md: fragment 2, needs-key 1, needs-network 1
    docs/steps.md: needs-network 1, response 1
    docs/storage.md: needs-terminal 1
    docs/tools.md: needs-network 1
    docs/toolsets.md: fragment 4
    docs/wasm-tools.md: fragment 1, needs-program 2
    docs/webhooks.md: needs-network 1, response 1
    docs/websocket.md: needs-program 1, response 1
    docs/workspaces.md: response 1
    examples/wasm/README.md: response 1, slow 2
    ");
}

#[test]
fn every_link_leads_somewhere() {
    let more = ["ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "ui/README.md"].map(str::to_owned);
    let broken: Vec<String> =
        all().iter().chain(&more).flat_map(|path| links::broken(&root(), path)).collect();
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}
