//! What haft writes is what the public validator of Agent Skills accepts: the rules of `skills-ref` 0.1.1.

use std::collections::BTreeMap;

use haft_package::files::PackageFiles;
use haft_package::skill_folder::{self, AgentSkill};
use proptest::collection::btree_map;
use proptest::option::of;
use proptest::prelude::*;

use crate::strategy;

/// The keys that the validator allows.
const FIELDS: [&str; 6] = ["name", "description", "license", "allowed-tools", "metadata", "compatibility"];

fn skill() -> impl Strategy<Value = AgentSkill> {
    let text = || prop_oneof![strategy::text(), "[-a-z\"'\\\\ \n\t:#]{0,40}", ".{0,30}"];
    let texts = (text(), text(), of(text()), of(text()), of(text()), text());
    (texts, btree_map(text(), text(), 0..3)).prop_map(
        |((name, description, license, compatibility, allowed_tools, instructions), metadata)| AgentSkill {
            name: format!("x{name}"),
            description: format!("{description} x"),
            license,
            compatibility,
            metadata,
            allowed_tools,
            instructions: instructions.trim().to_owned(),
            scripts: Vec::new(),
            resources: Vec::new(),
        },
    )
}

proptest! {
    #[test]
    fn written_skills_follow_the_rules_of_the_validator(skill in skill()) {
        let folder = skill_folder::write(&skill, &PackageFiles::new()).unwrap();
        let text = folder.files.text("SKILL.md").unwrap();
        // The validator splits the text at the first two `---`, wherever they are.
        let mut parts = text.splitn(3, "---");
        prop_assert_eq!(parts.next(), Some(""));
        let front = parts.next().unwrap();
        prop_assert!(front.starts_with('\n') && front.ends_with('\n'), "{}", front);
        prop_assert_eq!(parts.next().unwrap().trim(), skill.instructions.trim());
        // Its parser accepts no flow style, so every value is on a line of its own.
        let keys: Vec<&str> = front.lines().filter(|line| !line.is_empty() && !line.starts_with(' ')).collect();
        for line in keys {
            let (key, value) = line.split_once(':').unwrap();
            prop_assert!(FIELDS.contains(&key), "{}", key);
            let quoted = value.starts_with(" \"") && value.ends_with('"');
            prop_assert!(quoted || key == "name" || (key == "metadata" && value.is_empty()), "{}", line);
        }
        let name = &folder.name;
        prop_assert!((1..=64).contains(&name.len()) && !name.starts_with('-') && !name.ends_with('-'));
        prop_assert!(!name.contains("--") && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'));
        let again = skill_folder::read(&folder.files).unwrap().skill;
        prop_assert!(again.description.chars().count() <= 1024);
        // Longer texts end with `…`.
        prop_assert!(again.compatibility.as_ref().is_none_or(|text| text.chars().count() <= 500));
        let short = |text: Option<String>| text.map(|text| text.chars().take(499).collect::<String>());
        prop_assert_eq!(&again.name, name);
        prop_assert_eq!(again.license, skill.license);
        prop_assert_eq!(again.allowed_tools, skill.allowed_tools);
        prop_assert_eq!(short(again.compatibility), short(skill.compatibility));
        let is_short = |key: &String| key.len() <= 256;
        let metadata: BTreeMap<String, String> = skill.metadata.into_iter().filter(|(key, _)| is_short(key)).collect();
        prop_assert_eq!(again.metadata, metadata);
    }
}
