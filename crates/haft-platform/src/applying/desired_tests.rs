use haft_core::problem::join;

use super::*;

const TOOL: &str = "description: Greets\nimplementation:\n  type: http\n  url: https://api.example.com/\n";

fn files(list: &[(&str, &str)]) -> PackageFiles {
    let mut files = PackageFiles::new();
    for (path, text) in list {
        files.put_text(path, *text).unwrap();
    }
    files
}

fn problems(list: &[(&str, &str)]) -> String {
    match read(&files(list)) {
        Ok(_) => String::new(),
        Err(problems) => join(&problems),
    }
}

#[test]
fn a_folder_has_bundles_servers_and_rules() {
    let desired = read(&files(&[
        ("bundles/web/bundle.yaml", "description: Web tools\nowner: me\n"),
        ("bundles/web/greet@2.0.0.yaml", TOOL),
        ("bundles/web/README.md", "text"),
        ("bundles/web/data/table.csv", "1,2"),
        ("skills/loose.yaml", TOOL),
        ("skills/@acme/other/greet.yaml", TOOL),
        ("mcp-servers.yaml", "mcp_servers:\n  files:\n    command: mcp-files\n"),
        ("policy.yaml", "rules: []\n"),
        ("Makefile.local", ""),
    ]))
    .unwrap();
    let shown: Vec<String> = desired
        .bundles
        .iter()
        .map(|bundle| match &bundle.content {
            BundleContent::Tools { about, tools } => {
                let names = tools.iter().map(|tool| tool.parsed.spec.name.as_str());
                let names = names.collect::<Vec<_>>().join(",");
                format!("{} {:?} {names}", bundle.slug, about.description)
            }
            BundleContent::Package(_) => panic!(),
        })
        .collect();
    assert_eq!(shown, ["web Some(\"Web tools\") greet", "user-created None loose"]);
    assert_eq!(desired.servers.unwrap().len(), 1);
    assert_eq!(desired.policy.unwrap().rules, PolicyRules::default());
    let ignored: Vec<&str> = desired.warnings.iter().map(|warning| warning.field.as_str()).collect();
    assert_eq!(ignored, ["Makefile.local", "bundles/web/data/table.csv", "skills/@acme"]);
}

#[test]
fn all_problems_are_reported_with_file_and_line() {
    let found = problems(&[
        ("bundles/web/a.yaml", "name: a\nruntime: cobol\n"),
        ("bundles/web/b.yaml", "a: ["),
        ("bundles/web/bundle.yaml", "x: 1\nenabled: maybe\n"),
        ("bundles/set/toolset.yaml", "id: set\n"),
        ("mcp-servers.yaml", "mcp_servers:\n  files: 7\n"),
        ("policy.yaml", "rules:\n  - name: a\n    effect: maybe\n"),
    ]);
    for expected in [
        "`bundles/web/a.yaml`: line 2",
        "`bundles/web/b.yaml`: line 1",
        "`bundles/web/bundle.yaml`: line 2, column 1: `enabled`: expected `true` or `false`",
        "`bundles/set",
        "`mcp-servers.yaml`: line 2",
        "`policy.yaml`: line 3",
    ] {
        assert!(found.contains(expected), "{expected}: {found}");
    }
}

#[test]
fn what_is_ambiguous_is_rejected() {
    let found = problems(&[("bundles/web/a.yaml", TOOL), ("skills/web/b.yaml", TOOL)]);
    assert!(found.contains("bundle `web` is also in `bundles/web`"), "{found}");
    let named = format!("name: a\n{TOOL}");
    let found = problems(&[("bundles/web/a.yaml", TOOL), ("bundles/web/b.yaml", &named)]);
    assert!(found.contains("is also defined by"), "{found}");
    assert!(problems(&[("notes.txt", "")]).contains("nothing to apply"));
    assert!(problems(&[("bundles/a b/a.yaml", TOOL)]).contains("rename the folder"));
}
