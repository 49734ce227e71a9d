//! The toolsets in `examples/toolsets`, which are those of the specification.

use std::path::{Path, PathBuf};

use haft_core::implementation::Implementation;
use haft_core::mcp::{Stdio, Transport};
use haft_package::files::PackageFiles;
use haft_package::inspect::inspect;
use haft_package::package::Package;
use haft_package::{folder, placeholders, write, zip};
use serde_json::json;

fn example(name: &str) -> PackageFiles {
    let folder: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/toolsets").join(name);
    folder::read(&folder).unwrap()
}

#[test]
fn my_toolset_is_read_as_printed() {
    let package = Package::open(example("my-toolset")).unwrap();
    assert_eq!(package.warnings, []);
    let toolset = &package.toolset;
    assert_eq!((toolset.id.as_str(), toolset.name.as_str()), ("my-toolset", "My Toolset"));
    let [analyze, transform] = [&toolset.tools[0].spec, &toolset.tools[1].spec];
    assert_eq!((analyze.name.as_str(), analyze.display_name.as_str()), ("analyze_data", "Analyze Data"));
    assert_eq!(analyze.category, "analysis");
    assert!(analyze.sandbox && !analyze.network && !analyze.requires_confirmation);
    let Implementation::Python(python) = &analyze.implementation else { panic!("not python") };
    assert_eq!(python.entrypoint, "tools.analyze:run");
    assert_eq!(analyze.declared_arguments(), ["filename"]);
    let renderer = |spec: &haft_core::spec::ToolSpec| serde_json::to_value(&spec.renderers).unwrap();
    assert_eq!(
        renderer(analyze),
        json!([{"renderer": "html", "priority": 0, "config": {"artifact": "artifacts/results.html", "data": "$return"}}])
    );
    assert_eq!(
        renderer(transform),
        json!([{"renderer": "code", "priority": 0, "config": {"file": "$args.output", "language": "auto", "editable": true}}])
    );
    let server = &toolset.mcp_servers[0];
    assert_eq!((server.id.as_str(), server.enabled), ("my-mcp-server", true));
    let expected = Stdio {
        command: "npx".to_owned(),
        args: vec!["-y".to_owned(), "my-mcp-package".to_owned()],
        env: [("API_KEY".to_owned(), "${MY_API_KEY}".to_owned())].into(),
        ..Stdio::default()
    };
    assert_eq!(server.transport, Transport::Stdio(expected));
}

#[test]
fn app_builder_is_read_as_printed() {
    let package = Package::open(example("app-builder")).unwrap();
    assert_eq!(package.warnings, []);
    let summary = inspect(&package, &[]);
    insta::assert_json_snapshot!(summary, @"");
}

#[test]
fn examples_survive_export_and_import() {
    for name in ["my-toolset", "app-builder"] {
        let mut package = Package::open(example(name)).unwrap();
        assert!(placeholders::without_secrets(&mut package.toolset).is_empty());
        let mut files = package.files.clone();
        files.put_text("toolset.yaml", write::manifest(&package.toolset)).unwrap();
        let archive = zip::write(&files).unwrap();
        let again = Package::open(zip::read(&archive).unwrap()).unwrap();
        assert_eq!(again.toolset, package.toolset);
        assert_eq!(zip::write(&again.files).unwrap(), archive);
    }
}

#[test]
fn a_written_manifest_reads_like_one_of_a_person() {
    let package = Package::open(example("my-toolset")).unwrap();
    insta::assert_snapshot!(write::manifest(&package.toolset), @"");
}
