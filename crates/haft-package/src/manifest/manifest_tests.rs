use haft_core::implementation::{Implementation, Kind};
use haft_core::problem::Problem;
use haft_core::spec::Policy;

use super::*;

/// The start of every manifest.
const HEAD: &str = "manifest_version: '1'\nid: x\nversion: 1.0.0\n";

fn package(manifest: &str, files: &[(&str, &str)]) -> PackageFiles {
    let mut package = PackageFiles::new();
    package.put_text(MANIFEST, manifest).unwrap();
    for (path, text) in files {
        package.put_text(path, *text).unwrap();
    }
    package
}

fn problems(manifest: &str, files: &[(&str, &str)]) -> String {
    let problems = read(&package(manifest, files)).unwrap_err();
    problems.iter().map(Problem::to_string).collect::<Vec<_>>().join("\n")
}

fn codes(manifest: &str) -> Vec<(String, String)> {
    let problems = parse(manifest).unwrap_err();
    problems.into_iter().map(|problem| (problem.field, problem.code)).collect()
}

fn check_code(manifest: &str, field: &str, code: &str) {
    assert_eq!(codes(manifest), [(field.to_owned(), code.to_owned())], "{manifest}");
}

#[test]
fn all_errors_are_reported_at_once_with_their_lines() {
    let manifest = r#"manifest_version: "2"
id: my~toolset
version: "1.0"
descripton: misspelled
dependencies:
  - requests
  - -r other.txt
  - https://evil.test/x.whl
tools:
  - id: a:b
    description: Does one thing well
    entrypoint: tools.missing:run
    renderer:
      type: hmtl
      artifact: x.html
  - id: second
    description: Does another thing well
    entrypoint: tools.a:gone
    input_schema:
      type: objekt
    requires_confirmation: "yes"
    permission:
      network: true
    renderer:
      type: html
      artifact: artifacts/resutls.html
  - id: third
    description: Does a third thing well
    entrypoint: run
    renderer: {type: code, fiel: x}
  - 5
mcp_servers:
  - id: a/b
    command: npx
  - id: both
    command: npx
    url: https://x.test
  - id: old
    type: sse
    url: https://x.test/sse
"#;
    let files = [("tools/a.py", "def run(workspace): pass\n"), ("artifacts/results.html", "")];
    insta::assert_snapshot!(problems(manifest, &files), @r#"
    line 1, column 1: `manifest_version`: unsupported version `2`; this version of haft reads `1`
    line 2, column 1: `id`: toolset id `my~toolset` contains '~'; allowed: letters, digits, `-` and `_`
    line 3, column 1: `version`: invalid version `1.0`; expected three numbers such as `1.0.0`
    line 7, column 5: `dependencies[1]`: option `-r` is not supported; list each package in a line of its own, such as `rich>=13`
    line 8, column 5: `dependencies[2]`: `https` is a path or a URL, which is not supported; require the package by its name, and put its wheel into the folder `wheels` if no index has it
    line 10, column 5: `tools[0].id`: tool id `a:b` contains ':'; allowed: letters, digits, `-` and `_`
    line 12, column 5: `tools[0].entrypoint`: `tools/missing.py` is not in the package
    line 14, column 7: `tools[0].renderer.type`: unknown renderer `hmtl`; did you mean `html`?
    line 18, column 5: `tools[1].entrypoint`: `tools/a.py` has no function `gone` at its top level; add it, or correct the entrypoint
    line 20, column 7: `tools[1].input_schema.type`: invalid JSON Schema: matches none of the alternatives: "objekt" is not one of "array", "boolean", "integer", "null", "number", "object" or "string"; did you mean `object`?
    line 20, column 7: `tools[1].input_schema.type`: must be `object`, because arguments are always an object
    line 21, column 5: `tools[1].requires_confirmation`: expected `true` or `false`, found a string
    line 22, column 5: `tools[1].permission`: unknown field; did you mean `permissions`?
    line 26, column 7: `tools[1].renderer.artifact`: `artifacts/resutls.html` is not in the package; did you mean `artifacts/results.html`?
    line 29, column 5: `tools[2].entrypoint`: expected `module:function`
    line 30, column 5: `tools[2].renderer`: the renderer `code` needs `file` or `content`
    line 31, column 5: `tools[3]`: expected a map with `id` and `entrypoint`, found a number
    line 33, column 5: `mcp_servers[0].id`: server id `a/b` contains '/'; allowed: letters, digits, `-` and `_`
    line 36, column 5: `mcp_servers[1].command`: expected either `command` or `url`, not both
    line 39, column 5: `mcp_servers[2].type`: the SSE transport is unsupported; use the streamable HTTP URL of the server
    line 4, column 1: `descripton`: unknown field, ignored; did you mean `description`?
    line 30, column 28: `tools[2].renderer.fiel`: unknown field, ignored; did you mean `renderers`?
    "#);
}

#[test]
fn a_missing_manifest_says_where_it_is() {
    let mut files = PackageFiles::new();
    files.put_text("a/b/toolset.yaml", "").unwrap();
    let found = read(&files).unwrap_err();
    assert!(found[0].message.contains("it is at `a/b/toolset.yaml`"), "{}", found[0]);
    assert_eq!(read(&PackageFiles::new()).unwrap_err()[0].code, "missing_manifest");
}

#[test]
fn manifests_of_other_forms_are_rejected() {
    for (text, field, code) in [
        ("", "", "wrong_type"),
        ("[]", "", "wrong_type"),
        ("a: [", "", "syntax"),
        (
            "manifest_version: '9'\nid: x\nversion: 1.0.0\ntools: []",
            "manifest_version",
            "unsupported_version",
        ),
        ("manifest_version: []\nid: x\nversion: 1.0.0\ntools: []", "manifest_version", "wrong_type"),
        ("id: x\nversion: 1.0.0\ntools: []", "manifest_version", "missing_field"),
        ("manifest_version: 1\nid: x\nversion: 1.0.0", "tools", "missing_field"),
        ("manifest_version: 1\nid: x\nversion: 1.0.0\ntools: {}", "tools", "wrong_type"),
        ("manifest_version: 1\nid: x\nversion: v1\ntools: []", "version", "invalid_version"),
        ("manifest_version: 1\nid: builtin\nversion: 1.0.0\ntools: []", "id", "invalid_name"),
    ] {
        check_code(text, field, code);
    }
    for id in ["a~b", "a:b", "a/b", "..", "a b", "\"\""] {
        check_code(
            &format!("manifest_version: 1\nid: {id}\nversion: 1.0.0\ntools: []"),
            "id",
            "invalid_name",
        );
    }
    assert!(parse("manifest_version: 1\nid: x\nversion: 1.0.0\ntools: []").is_ok());
    let large = format!("{HEAD}tools: []\ndescription: {}\n", "x".repeat(17 << 20));
    assert_eq!(parse(&large).unwrap_err()[0].code, "too_large");
}

#[test]
fn duplicates_are_errors() {
    let tool = "- {id: a, description: Does one thing well, entrypoint: 'm:f'}\n";
    check_code(&format!("{HEAD}tools:\n{tool}{tool}"), "tools[1].id", "duplicate_tool");
    let server = "- {id: s, command: c}\n";
    check_code(&format!("{HEAD}mcp_servers:\n{server}{server}"), "mcp_servers[1].id", "duplicate_server");
    let same = "- {id: x, command: c}\n";
    check_code(&format!("{HEAD}mcp_servers:\n{same}"), "mcp_servers", "conflicting_fields");
}

#[test]
fn modules_are_relative_to_the_root_or_to_tools() {
    let entry = |entrypoint: &str| {
        let manifest = format!(
            "{HEAD}tools:\n- {{id: a, description: Does one thing well, entrypoint: '{entrypoint}'}}\n"
        );
        let files = package(
            &manifest,
            &[
                ("tools/search.py", "def run(workspace): pass\nlimit = 5\n"),
                ("helper.py", "class Tool:\n    def run(self): pass\n"),
                ("tools/inner/__init__.py", "from .x import go\n"),
            ],
        );
        match read(&files) {
            Ok(reading) => match &reading.toolset.tools[0].spec.implementation {
                Implementation::Python(python) => python.entrypoint.clone(),
                other => format!("{other:?}"),
            },
            Err(problems) => problems[0].code.clone(),
        }
    };
    for (entrypoint, expected) in [
        ("tools.search:run", "tools.search:run"),
        ("search:run", "tools.search:run"),
        ("helper:Tool.run", "helper:Tool.run"),
        ("inner:go", "tools.inner:go"),
        ("search:missing", "missing_function"),
        ("search:limit", "not_callable"),
        ("serch:run", "missing_module"),
        ("../search:run", "invalid_entrypoint"),
        ("search", "invalid_value"),
        ("os:system", "missing_module"),
    ] {
        assert_eq!(entry(entrypoint), expected, "{entrypoint}");
    }
}

#[test]
fn permissions_are_requests_and_processes_are_sandboxed_by_default() {
    let spec = |entry: &str| {
        let text = format!("{HEAD}tools:\n- {{id: a, description: Does one thing well, {entry}}}\n");
        parse(&text).unwrap().toolset.tools[0].spec.clone()
    };
    for (entry, sandbox, network) in [
        ("entrypoint: 'm:f'", true, false),
        ("entrypoint: 'm:f', permissions: {sandbox: false, network: true}", false, true),
        ("entrypoint: 'm:f', sandbox: false", false, false),
        ("runtime: bash, body: 'echo 1'", true, false),
        ("implementation: {type: exec, argv: [ls]}, network: true", true, true),
        ("implementation: {type: http, url: 'https://x.test/'}", false, false),
    ] {
        let spec = spec(entry);
        assert_eq!((spec.sandbox, spec.network), (sandbox, network), "{entry}");
    }
    assert_eq!(spec("entrypoint: 'm:f', permissions: {policy: elevated}").policy, Policy::Elevated);
    let asking = format!(
        "{HEAD}tools:\n- {{id: a, description: Does one thing well, entrypoint: 'm:f', permissions: {{sandbox: false}}}}\n- {{id: b, description: Does one thing well, entrypoint: 'm:f'}}\n"
    );
    let mut toolset = parse(&asking).unwrap().toolset;
    assert_eq!(toolset.unsandboxed().map(|tool| tool.spec.name.as_str()).collect::<Vec<_>>(), ["a"]);
    toolset.sandbox_processes();
    assert_eq!(toolset.unsandboxed().count(), 0);
    let conflicting = format!(
        "{HEAD}tools:\n- {{id: a, description: Does one thing well, entrypoint: 'm:f', network: false, permissions: {{network: true}}}}\n"
    );
    check_code(&conflicting, "tools[0].network", "conflicting_fields");
}

#[test]
fn an_entry_may_have_any_implementation_in_any_spelling() {
    let text = format!(
        "{HEAD}tools:
- name: weather
  description: Current weather for a city
  params:
    - {{name: city, type: string, required: true}}
  implementation: {{type: http, url: 'https://x.test/?q={{{{city}}}}'}}
- id: old
  description: A tool in the first dialect
  type: http
  argSchema: {{type: object, properties: {{}}}}
  impl: {{urlTemplate: 'https://x.test/', method: GET}}
- slug: registry
  name: A registry tool
  description: A tool in the registry form
  implementation_type: mcp
  implementation_config: {{server: files, tool_name: read}}
- id: say
  name: Say something
  description: Says something to somebody
  runtime: bash
  parameters: {{type: object, properties: {{text: {{type: string}}}}}}
  body: |
    echo \"$text\"
"
    );
    let reading = parse(&text).unwrap();
    let tools: Vec<_> = reading
        .toolset
        .tools
        .iter()
        .map(|tool| (tool.spec.name.as_str(), tool.spec.title(), tool.spec.implementation.kind()))
        .collect();
    assert_eq!(
        tools,
        [
            ("weather", "weather", Kind::Http),
            ("old", "old", Kind::Http),
            ("registry", "A registry tool", Kind::Mcp),
            ("say", "Say something", Kind::Script),
        ]
    );
}

#[test]
fn renderers_have_known_types_and_what_they_need() {
    let entry = |renderer: &str| {
        format!(
            "{HEAD}tools:\n- id: count_rows\n  description: Does one thing well\n  entrypoint: 'm:f'\n  {renderer}\n"
        )
    };
    for (renderer, field, code) in [
        ("renderer: {type: cod, file: x}", "tools[0].renderer.type", "unknown_renderer"),
        ("renderer: {file: x}", "tools[0].renderer.type", "missing_field"),
        ("renderer: {type: code}", "tools[0].renderer", "missing_field"),
        ("renderer: {type: html, data: $return}", "tools[0].renderer", "missing_field"),
        ("renderer: {type: frame}", "tools[0].renderer", "missing_field"),
        ("renderer: {type: code, file: 5}", "tools[0].renderer.file", "wrong_type"),
        ("renderer: 5", "tools[0].renderer", "wrong_type"),
        ("renderers: [{renderer: code, config: {}}]", "tools[0].renderers[0].config", "missing_field"),
        ("renderers: [{type: json, priority: high}]", "tools[0].renderers[0].priority", "wrong_type"),
    ] {
        check_code(&entry(renderer), field, code);
    }
    let renderers = |renderer: &str| {
        let reading = parse(&entry(renderer)).unwrap();
        assert_eq!(reading.warnings, [], "{renderer}");
        serde_json::to_value(&reading.toolset.tools[0].spec.renderers).unwrap()
    };
    for (renderer, expected) in [
        ("renderer: json", serde_json::json!([{"renderer": "json", "priority": 0, "config": {}}])),
        (
            "renderers: [{type: table, priority: 2, data: $return.rows}, {renderer: json}]",
            serde_json::json!([
                {"renderer": "table", "priority": 2, "config": {"data": "$return.rows"}},
                {"renderer": "json", "priority": 0, "config": {}},
            ]),
        ),
    ] {
        assert_eq!(renderers(renderer), expected);
    }
    let unknown = parse(&entry("renderer: {type: code, file: x, langauge: auto}")).unwrap();
    assert!(unknown.warnings[0].message.ends_with("did you mean `language`?"), "{}", unknown.warnings[0]);
}

#[test]
fn servers_are_a_list_or_a_map_and_hold_no_secrets() {
    let list = format!(
        "{HEAD}mcp_servers:\n- {{id: a, command: npx, args: [1], env: {{K: '${{env:V}}'}}}}\n- {{id: b, url: 'https://x.test'}}\n"
    );
    let map = format!(
        "{HEAD}mcp_servers:\n  a: {{command: npx, args: ['1'], env: {{K: '${{V}}'}}}}\n  b: {{url: 'https://x.test', auto_enabled: true}}\n"
    );
    let [list, map] = [list, map].map(|text| parse(&text).unwrap());
    assert_eq!(list.toolset, map.toolset);
    assert_eq!(list.warnings, []);
    let literal =
        format!("{HEAD}mcp_servers:\n- {{id: a, command: npx, env: {{API_KEY: sk-1234567890abcdef}}}}\n");
    let reading = parse(&literal).unwrap();
    assert_eq!(reading.warnings[0].code, "literal_secret");
    assert!(!reading.warnings[0].to_string().contains("sk-1234567890abcdef"));
    for (server, field, code) in [
        ("{id: a}", "mcp_servers[0].command", "missing_field"),
        ("{command: npx}", "mcp_servers[0].id", "missing_field"),
        ("{id: a, url: 'ftp://x'}", "mcp_servers[0].url", "invalid_url"),
        ("{id: a, command: ' '}", "mcp_servers[0].command", "missing_field"),
        ("{id: a, command: x, env: {'A=B': c}}", "mcp_servers[0].env.A=B", "invalid_value"),
        ("7", "mcp_servers[0]", "wrong_type"),
    ] {
        check_code(&format!("{HEAD}mcp_servers:\n- {server}\n"), field, code);
    }
    check_code(&format!("{HEAD}mcp_servers: 5\n"), "mcp_servers", "wrong_type");
}

#[test]
fn dependencies_of_tools_belong_to_the_toolset() {
    let text = format!(
        "{HEAD}dependencies: [requests, rich]\ntools:\n- {{id: a, description: Does one thing well, entrypoint: 'm:f', dependencies: [rich, numpy]}}\n"
    );
    let reading = parse(&text).unwrap();
    let names: Vec<_> = reading.toolset.dependencies.iter().map(Requirement::as_str).collect();
    assert_eq!(names, ["requests", "rich", "numpy"]);
    let manifest = format!("{HEAD}tools: []\ndependencies: [requests]\n");
    let files = package(&manifest, &[(REQUIREMENTS, "rich>=13\n# comment\n")]);
    let all = read(&files).unwrap().all_requirements();
    assert_eq!(all.iter().map(Requirement::as_str).collect::<Vec<_>>(), ["requests", "rich>=13"]);
    let hashed = format!("rich==13 --hash=sha256:{}\n", "0".repeat(64));
    assert!(problems(&manifest, &[(REQUIREMENTS, &hashed)]).contains("has no `--hash`"));
    assert!(problems(&manifest, &[(REQUIREMENTS, "-e .\n")]).starts_with("line 1: `requirements.txt`: "));
}

#[test]
fn hostile_manifests_cost_little_time() {
    let entry = "- {id: a, description: Does one thing well, entrypoint: 'tools.mssing:run', renderer: {type: html, artifact: x.html}}\n";
    let manifest = format!("{HEAD}tools:\n{}", entry.repeat(1000));
    let mut files = package(&manifest, &[]);
    for number in 0..4900 {
        for extension in ["py", "html"] {
            let path = format!("{}/{number}.{extension}", "f".repeat(60));
            files.put_text(&path, "x = 1\n").unwrap();
        }
    }
    let start = std::time::Instant::now();
    let problems = read(&files).unwrap_err();
    assert_eq!(problems.len(), 51);
    assert!(start.elapsed().as_secs() < 10, "{:?}", start.elapsed());
}
