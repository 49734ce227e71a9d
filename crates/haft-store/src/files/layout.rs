//! Which file of the home folder is what.
//!
//! Paths are kept relative to the home folder, with `/` between their parts.

use haft_core::catalog::FileForm;
use haft_core::name::{BundleSlug, TenantId, ToolName, Version};

/// The folder of all definitions.
pub(crate) const SKILLS: &str = "skills";
/// The folder of what was replaced and deleted.
pub(crate) const HISTORY: &str = "tool-history";
/// What a bundle's folder says of the bundle.
pub(crate) const BUNDLE_FILE: &str = "bundle.yaml";
/// The manifest of a bundle that was installed as a package; not a tool.
const TOOLSET_FILE: &str = "toolset.yaml";
/// File systems take at most 255 bytes; a temporary or backup name needs some of them.
const NAME_BYTES: usize = 200;

/// Returns the folder of a bundle. The default tenant's are at the top, another's below `@tenant`.
pub(crate) fn bundle_folder(tenant: &TenantId, slug: &BundleSlug) -> String {
    if *tenant == TenantId::default_tenant() {
        format!("{SKILLS}/{slug}")
    } else {
        format!("{SKILLS}/@{tenant}/{slug}")
    }
}

/// Returns the kind of definition that a file's name promises; `None` for a file that is none of ours,
/// such as what editors leave about.
pub(crate) fn form_of(file_name: &str) -> Option<FileForm> {
    let hidden = file_name.starts_with(['.', '#']) || file_name.ends_with(['~', '#']);
    if hidden || file_name == BUNDLE_FILE || file_name == TOOLSET_FILE {
        return None;
    }
    let (stem, ending) = file_name.rsplit_once('.')?;
    if stem.is_empty() { None } else { haft_definition::dialect::form_of_extension(ending) }
}

/// Returns the file names to try for a new tool, best first.
pub(crate) fn candidates(name: &ToolName, version: &Version, form: FileForm) -> [String; 3] {
    let ending = form.extension();
    let plain = shorten(name.as_str());
    let full = shorten(&format!("{name}@{version}"));
    // A case-insensitive file system may hold `Weather` where `weather` is asked for.
    let hash: String =
        haft_core::hash::of_bytes(format!("{name}@{version}").as_bytes()).chars().take(12).collect();
    let last = format!("{plain}-{hash}.{ending}");
    match form {
        FileForm::Json => [format!("{full}.{ending}"), format!("{plain}.{ending}"), last],
        FileForm::Skill | FileForm::Yaml => [format!("{plain}.{ending}"), format!("{full}.{ending}"), last],
    }
}

/// Returns what a file's name says of the tool: its name, and the version after `@`.
pub(crate) fn hints(path: &str) -> (&str, Option<&str>) {
    let file = path.rsplit('/').next().unwrap_or(path);
    let stem = file.rsplit_once('.').map_or(file, |(stem, _)| stem);
    match stem.split_once('@') {
        Some((name, version)) => (name, Some(version)),
        None => (stem, None),
    }
}

/// Returns the path after a change of version, where the file's name carries the version.
pub(crate) fn relabelled(path: &str, from: &Version, to: &Version) -> Option<String> {
    let (folder, file) = path.rsplit_once('/')?;
    let (stem, ending) = file.rsplit_once('.')?;
    let name = stem.strip_suffix(from.as_str())?.strip_suffix('@')?;
    let file = format!("{name}@{to}.{ending}");
    (file.len() <= NAME_BYTES).then(|| format!("{folder}/{file}"))
}

fn shorten(text: &str) -> String {
    if text.len() <= NAME_BYTES {
        return text.to_owned();
    }
    let hash: String = haft_core::hash::of_bytes(text.as_bytes()).chars().take(12).collect();
    let mut out = String::new();
    for character in text.chars() {
        if out.len() + character.len_utf8() > NAME_BYTES - 20 {
            break;
        }
        out.push(character);
    }
    format!("{out}-{hash}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_editors_leave_about_is_no_definition() {
        for (file, expected) in [
            ("a.skill", Some(FileForm::Skill)),
            ("a.yaml", Some(FileForm::Yaml)),
            ("a.yml", Some(FileForm::Yaml)),
            ("a@1.0.0.json", Some(FileForm::Json)),
            ("a.SKILL", Some(FileForm::Skill)),
            ("a.Yml", Some(FileForm::Yaml)),
            ("A.JSON", Some(FileForm::Json)),
            ("天気.skill", Some(FileForm::Skill)),
            (".a.skill.swp", None),
            (".a.skill", None),
            ("a.skill~", None),
            ("#a.skill#", None),
            (".#a.skill", None),
            ("a.skill.tmp", None),
            ("a.skill.bak", None),
            ("4913", None),
            ("bundle.yaml", None),
            ("toolset.yaml", None),
            ("README.md", None),
            (".json", None),
        ] {
            assert_eq!(form_of(file), expected, "{file}");
        }
    }

    #[test]
    fn file_names_fit_every_file_system() {
        let long = "𝕏".repeat(64);
        let name = ToolName::new(&long).unwrap();
        let version = Version::new(&long).unwrap();
        for form in [FileForm::Skill, FileForm::Yaml, FileForm::Json] {
            for file in candidates(&name, &version, form) {
                assert!(file.len() < 250, "{file}");
                assert_eq!(form_of(&file), Some(form));
            }
        }
    }

    #[test]
    fn a_version_in_the_file_name_follows_the_label() {
        let (one, two) = (Version::new("1.0.0").unwrap(), Version::new("2.0.0").unwrap());
        assert_eq!(relabelled("skills/b/a@1.0.0.json", &one, &two), Some("skills/b/a@2.0.0.json".into()));
        assert_eq!(relabelled("skills/b/a.skill", &one, &two), None);
        assert_eq!(hints("skills/b/a@1.0.0.json"), ("a", Some("1.0.0")));
        assert_eq!(hints("skills/a.skill"), ("a", None));
    }
}
