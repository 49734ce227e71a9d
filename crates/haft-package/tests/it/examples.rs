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
    let mut summary = inspect(&package, &[]);
    let names: Vec<&str> = summary.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["Write File", "Read File", "Run Command"]);
    summary.tools.drain(..2);
    insta::assert_json_snapshot!(summary, @r#"
    {
      "id": "app-builder",
      "name": "App Builder",
      "version": "1.0.0",
      "description": "Build and preview web applications",
      "is_skill": false,
      "hash": "7f7b9a61f9e12f04ab84a660b41eb87a62814957bf07d3e2d7a34340835d5450",
      "tools": [
        {
          "id": "run_command",
          "name": "Run Command",
          "description": "Run a shell command in the workspace",
          "category": "shell",
          "implementation_type": "python",
          "runs": "tools.shell:run_command",
          "renderers": [
            "code"
          ],
          "requires_confirmation": true,
          "permissions": {
            "network": false,
            "sandbox": true,
            "policy": "allow"
          },
          "enabled": true
        }
      ],
      "mcp_servers": [],
      "dependencies": [],
      "has_wheels": false,
      "files": [
        {
          "path": "tools/files.py",
          "kind": "python",
          "size": 440,
          "sha256": "e9c687a2bef32e6a5a6097d59be2d872c092b7fafab82aaedead899a75699359",
          "executable": false
        },
        {
          "path": "tools/shell.py",
          "kind": "python",
          "size": 377,
          "sha256": "3ac4cd04490623d86647383138972389bdb5110b9a945009d7d6252a40b21820",
          "executable": false
        },
        {
          "path": "toolset.yaml",
          "kind": "config",
          "size": 1372,
          "sha256": "fe55e3beadce8129a4516bb16e29a23d5cec018b400c71011e134a4a59f42d10",
          "executable": false
        }
      ],
      "total_bytes": 2189,
      "signature": {
        "status": "unsigned"
      },
      "warnings": []
    }
    "#);
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
    insta::assert_snapshot!(write::manifest(&package.toolset), @r#"
    manifest_version: "1"
    id: my-toolset
    name: My Toolset
    version: "1.0.0"
    description: Example toolset with analysis tools
    tools:
      - id: analyze_data
        name: Analyze Data
        description: Analyze a data file and return statistics
        entrypoint: tools.analyze:run
        category: analysis
        input_schema:
          type: object
          properties:
            filename:
              type: string
              description: File to analyze
          required:
            - filename
        renderer:
          type: html
          artifact: artifacts/results.html
          data: $return
      - id: transform_file
        name: Transform File
        description: Transform a file using a template
        entrypoint: tools.transform:run
        category: transform
        input_schema:
          type: object
          properties:
            input:
              type: string
            output:
              type: string
            template:
              type: string
          required:
            - input
            - output
        renderer:
          type: code
          file: $args.output
          language: auto
          editable: true
    mcp_servers:
      - id: my-mcp-server
        command: npx
        args:
          - "-y"
          - my-mcp-package
        env:
          API_KEY: ${MY_API_KEY}
    "#);
}
