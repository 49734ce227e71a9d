//! Reading what was written returns the same toolset.

use haft_core::example::ToolExample;
use haft_core::mcp::{Stdio, StreamableHttp, Transport};
use haft_core::name::{BundleSlug, Version};
use haft_core::spec::{Policy, Renderer, ToolSpec};
use haft_definition::check;
use haft_package::files::PackageFiles;
use haft_package::path::PackagePath;
use haft_package::requirements::Requirement;
use haft_package::toolset::{DeclaredServer, ToolEntry, Toolset};
use haft_package::{manifest, write, zip};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use serde_json::{Map, json};

use crate::strategy;

fn renderers() -> impl Strategy<Value = Vec<Renderer>> {
    let code = any::<bool>().prop_map(|editable| {
        let config = json!({"file": "$args.x", "language": "auto", "editable": editable});
        ("code", config.as_object().cloned().unwrap_or_default())
    });
    let json = Just(("json", Map::new()));
    // Settings that are keys of a renderer itself.
    let odd =
        Just(("table", json!({"type": "x", "data": "$return"}).as_object().cloned().unwrap_or_default()));
    let one = (prop_oneof![code, json, odd], prop_oneof![Just(0i64), any::<i64>()]).prop_map(
        |((renderer, config), priority)| Renderer { renderer: renderer.to_owned(), priority, config },
    );
    vec(one, 0..3)
}

fn examples() -> impl Strategy<Value = Vec<ToolExample>> {
    let values = vec![None, Some(json!(null)), Some(json!({"a": [1, "x", null]})), Some(json!("${X} yes"))];
    let one = (strategy::text(), "[a-z]{0,4}", prop::sample::select(values)).prop_map(
        |(description, key, expect)| {
            let description = description.replace('\0', "");
            let args = Map::from_iter([(key, json!(description))]);
            (description, args, expect)
        },
    );
    btree_map("[a-z][a-z0-9 ._-]{0,6}[a-z0-9]", one, 0..3).prop_map(|examples| {
        let example = |(name, (description, args, expect))| ToolExample { name, description, args, expect };
        examples.into_iter().map(example).collect()
    })
}

fn tool() -> impl Strategy<Value = ToolEntry> {
    (strategy::spec(), renderers(), any::<bool>(), examples())
        .prop_map(|(spec, renderers, enabled, examples)| {
            let spec = ToolSpec { renderers, ..spec };
            ToolEntry { spec, enabled, examples }
        })
        // What cannot be stored need not be written.
        .prop_filter("invalid definition", |tool| check::definition(&tool.spec).errors.is_empty())
}

fn server() -> impl Strategy<Value = DeclaredServer> {
    let texts = || btree_map("[A-Z_][A-Z0-9_]{0,8}", strategy::text(), 0..3);
    let stdio = ("[a-z]{1,8}", vec(strategy::text(), 0..3), texts(), any::<[bool; 3]>()).prop_map(
        |(command, args, env, [network, sandbox, workspace])| {
            Transport::Stdio(Stdio { command, args, env, cwd: None, network, sandbox, workspace })
        },
    );
    let http = ("[a-z/]{0,8}", texts()).prop_map(|(path, headers)| {
        Transport::Http(StreamableHttp { url: format!("https://x.test/{path}"), headers, oauth: None })
    });
    let policy = prop::sample::select(vec![Policy::Allow, Policy::Deny, Policy::Elevated]);
    ("s[a-z0-9_-]{0,20}", prop_oneof![stdio, http], any::<bool>(), policy, "[a-z_]{0,5}").prop_map(
        |(id, transport, enabled, policy, prefix)| DeclaredServer {
            id: BundleSlug::new(&id).unwrap(),
            transport,
            enabled,
            policy,
            prefix,
        },
    )
}

fn toolset() -> impl Strategy<Value = Toolset> {
    let id = prop_oneof![
        "[a-rt-z][a-z0-9_-]{0,20}",
        "[0-9]{1,4}",
        Just("null".to_owned()),
        Just("天気".to_owned())
    ];
    let version = "(0|[1-9][0-9]{0,2})\\.(0|[1-9][0-9]{0,2})\\.(0|[1-9][0-9]{0,2})";
    let requirement = "[a-z][a-z0-9]{0,8}(>=[0-9]\\.[0-9])?";
    let label =
        strategy::text().prop_map(|text| text.chars().filter(|c| !c.is_control()).take(100).collect());
    let words = (id, label, version, strategy::text());
    (words, vec(tool(), 0..3), vec(server(), 0..3), vec(requirement, 0..3)).prop_map(
        |((id, name, version, description), mut tools, mut mcp_servers, dependencies)| {
            tools.sort_by(|a, b| a.spec.name.cmp(&b.spec.name));
            tools.dedup_by(|a, b| a.spec.name == b.spec.name);
            mcp_servers.sort_by(|a, b| a.id.cmp(&b.id));
            mcp_servers.dedup_by(|a, b| a.id == b.id);
            Toolset {
                id: BundleSlug::new(&id).unwrap(),
                name,
                version: Version::new(&version).unwrap(),
                description,
                tools,
                mcp_servers,
                dependencies: dependencies.iter().map(|line| Requirement::new(line).unwrap()).collect(),
            }
        },
    )
}

/// Environment variables are read with `${env:NAME}` as `${NAME}`.
fn has_foreign_reference(toolset: &Toolset) -> bool {
    serde_json::to_string(&toolset.mcp_servers.iter().map(|server| &server.transport).collect::<Vec<_>>())
        .is_ok_and(|text| text.contains("${env:"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn a_manifest_round_trips(toolset in toolset()) {
        prop_assume!(!has_foreign_reference(&toolset));
        let text = write::manifest(&toolset);
        let reading = manifest::parse(&text);
        let reading = reading.map_err(|problems| TestCaseError::fail(format!("{problems:#?}\n{text}")))?;
        prop_assert_eq!(&reading.toolset, &toolset, "{}", text);
        prop_assert_eq!(write::manifest(&reading.toolset), text);
    }

    #[test]
    fn an_archive_round_trips(paths in btree_map("[a-z]{1,3}(/[a-zäé ]{1,5}x){0,3}", (any::<Vec<u8>>(), any::<bool>()), 0..20)) {
        let mut files = PackageFiles::new();
        for (path, (bytes, executable)) in paths {
            // Paths that collide are left out.
            let _ = PackagePath::new(&path).map(|path| files.add(path, bytes, executable));
        }
        let archive = zip::write(&files).unwrap();
        prop_assert_eq!(zip::read(&archive).unwrap(), files);
    }
}
