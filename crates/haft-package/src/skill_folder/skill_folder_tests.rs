use haft_core::implementation::{Implementation, Script};
use haft_core::name::{BundleSlug, ToolName};
use haft_core::spec::ToolSpec;

use super::*;
use crate::files::{PackageFiles, SKILL};
use crate::package::Package;
use crate::path::PackagePath;
use crate::toolset::Toolset;

const SKILL_MD: &str = "---\nname: pdf-forms\ndescription: Fills PDF forms. Use it when somebody mentions forms.\n\
    license: Apache-2.0\ncompatibility: Needs Python 3\nallowed-tools: Bash(git:*) Read\nmetadata:\n  \
    author: somebody\n  version: \"1.2.0\"\n---\n\n# PDF forms\n\nRun `scripts/fill.py`.\n\n---\n\nMore.\n";

fn skill() -> PackageFiles {
    let mut files = PackageFiles::new();
    for (path, text) in [
        (SKILL, SKILL_MD),
        (
            "scripts/fill.py",
            "#!/usr/bin/env python3\n# A comment.\n\"\"\"Fills a form.\n\nUsage: x\n\"\"\"\n",
        ),
        ("scripts/check-it.sh", "#!/bin/bash\n#\n# Checks a form\n# completely.\n\necho ok\n"),
        ("scripts/office/unpack.py", "if __name__ == '__main__':\n    print(1)\n"),
        ("scripts/office/helper.py", "x = 1\n"),
        ("scripts/__init__.py", ""),
        ("references/forms.md", "# Forms\n"),
        ("assets/form.json", "{}"),
    ] {
        files.put_text(path, text).unwrap();
    }
    files
}

#[test]
fn a_skill_is_read() {
    let SkillReading { skill, warnings } = read(&skill()).unwrap();
    assert_eq!(warnings, []);
    assert_eq!((skill.name.as_str(), skill.license.as_deref()), ("pdf-forms", Some("Apache-2.0")));
    assert_eq!(skill.allowed_tools.as_deref(), Some("Bash(git:*) Read"));
    assert_eq!(skill.instructions, "# PDF forms\n\nRun `scripts/fill.py`.\n\n---\n\nMore.");
    let tools: Vec<_> = skill
        .scripts
        .iter()
        .map(|script| (script.path.as_str(), script.tool.name.as_str(), script.tool.description.as_str()))
        .collect();
    assert_eq!(
        tools,
        [
            (
                "scripts/check-it.sh",
                "check-it",
                "Checks a form completely. Runs `scripts/check-it.sh` of the skill `pdf-forms`."
            ),
            ("scripts/fill.py", "fill", "Fills a form. Runs `scripts/fill.py` of the skill `pdf-forms`."),
            (
                "scripts/office/unpack.py",
                "office-unpack",
                "Runs `scripts/office/unpack.py` of the skill `pdf-forms`."
            ),
        ]
    );
    let resources: Vec<_> = skill.resources.iter().map(PackagePath::as_str).collect();
    assert_eq!(
        resources,
        ["assets/form.json", "references/forms.md", "scripts/__init__.py", "scripts/office/helper.py"]
    );
}

#[test]
fn a_skill_opens_as_a_package_and_is_written_as_it_was() {
    let package = Package::open(skill()).unwrap();
    assert_eq!(package.warnings, []);
    let toolset = &package.toolset;
    assert_eq!(
        (toolset.id.as_str(), toolset.version.as_str(), toolset.tools.len()),
        ("pdf-forms", "1.2.0", 3)
    );
    assert!(toolset.tools.iter().all(|tool| tool.spec.sandbox));
    insta::assert_snapshot!(package.files.text(RUNNER).unwrap(), @"");
    // The installed package opens again, and nothing is added twice.
    let again = Package::open(package.files.clone()).unwrap();
    assert_eq!(again.toolset, package.toolset);
    assert_eq!(again.skill, package.skill);
    let folder = from_toolset(&package.toolset, &package.files).unwrap();
    assert_eq!(folder.name, "pdf-forms");
    let paths = |files: &PackageFiles| files.iter().map(|(path, _)| path.clone()).collect::<Vec<_>>();
    assert_eq!(paths(&folder.files), paths(&skill()));
    assert_eq!(read(&folder.files).unwrap(), read(&skill()).unwrap());
    insta::assert_snapshot!(folder.files.text(SKILL).unwrap(), @"");
}

#[test]
fn names_are_mapped_to_what_the_format_allows() {
    for (text, expected) in [
        ("My_Toolset", "my-toolset"),
        ("a__b--c", "a-b-c"),
        ("-a-", "a"),
        ("Ärger", "rger"),
        ("PDF Forms 2.0", "pdf-forms-2-0"),
    ] {
        assert_eq!(skill_name(text), expected, "{text}");
    }
    assert_eq!(skill_name(&"x".repeat(100)).len(), 64);
    assert_eq!(skill_name(&format!("{}_y", "x".repeat(63))), "x".repeat(63));
    let other = skill_name("天気");
    assert!(other.starts_with("skill-") && other.len() == 14, "{other}");
}

#[test]
fn faults_are_reported_with_lines() {
    let problems = |text: &str| {
        let mut files = PackageFiles::new();
        files.put_text(SKILL, text).unwrap();
        let problems = Package::open(files).unwrap_err();
        problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    assert!(problems("# Title").starts_with("line 1, column 1: missing front matter: `SKILL.md`"));
    assert_eq!(
        problems("---\nname: [a]\ndescripton: x\n---\n"),
        "line 2, column 7: `name`: expected a string, found a list\n\
         `description`: missing required field; expected what the skill does and when to use it\n\
         line 3, column 1: `descripton`: unknown field, ignored; did you mean `description`?"
    );
    let mut files = PackageFiles::new();
    files.put_text(SKILL, "---\nname: My Skill\ndescription: Does something useful\n---\nText").unwrap();
    let package = Package::open(files).unwrap();
    assert_eq!(package.warnings[0].code, "invalid_name");
    assert_eq!((package.toolset.id.as_str(), package.toolset.name.as_str()), ("my-skill", "My Skill"));
}

#[test]
fn any_toolset_can_be_written_as_a_skill() {
    let mut toolset = Toolset::new(BundleSlug::new("My_Tools").unwrap());
    toolset.name = "My tools".to_owned();
    toolset.description = format!("Says \"hello\": to --- {}\nand more", "everybody ".repeat(200));
    let mut spec = ToolSpec::new(
        ToolName::new("say").unwrap(),
        Implementation::Script(Script::new(haft_core::implementation::ScriptRuntime::Bash, "echo \"$text\"")),
    );
    spec.description = "Says something".to_owned();
    spec.input_schema = serde_json::json!({
        "type": "object",
        "properties": {"text": {"type": "string", "description": "What to say"}},
        "required": ["text"],
    })
    .into();
    toolset.tools.push(spec.into());
    let folder = from_toolset(&toolset, &PackageFiles::new()).unwrap();
    assert_eq!(folder.name, "my-tools");
    assert!(folder.files.get("scripts/say.sh").unwrap().executable);
    let text = folder.files.text(SKILL).unwrap();
    let front = text.strip_prefix("---\n").unwrap().split("\n---\n").next().unwrap();
    // The validator splits the text at every `---`.
    assert!(!front.contains("---"), "{front}");
    let skill = read(&folder.files).unwrap().skill;
    assert_eq!(skill.description.chars().count(), 1024);
    assert!(skill.description.starts_with("Says \"hello\": to --- everybody"));
    assert!(
        skill.instructions.contains("- `text` (string, required): What to say"),
        "{}",
        skill.instructions
    );
    // Imported again, it has the same id.
    let package = Package::open(folder.files).unwrap();
    assert_eq!(package.toolset.id, toolset.id);
    assert_eq!(package.toolset.tools[0].spec.name.as_str(), "say");
}
