//! The layout of the home folder.
//!
//! Paths are relative to the home folder, with `/` as the separator.

use std::path::{Path, PathBuf};

use haft_core::catalog::FileForm;
use haft_core::name::{BundleSlug, TenantId, ToolName, Version};

/// The folder of all definitions.
pub(crate) const SKILLS: &str = "skills";
/// The folder of replaced and deleted definitions.
pub(crate) const HISTORY: &str = "tool-history";
/// The folder of the journal of calls, and of the files that show which processes are alive.
pub(crate) const JOURNAL_FOLDER: &str = "journal";
/// The longest stem of a file name: file systems allow 255 bytes, and temporary and backup names need some of them.
const MAX_NAME_BYTES: usize = 200;

/// Returns the file whose lock shows that a process is alive.
pub(crate) fn node_file(folder: &Path, node: &str) -> PathBuf {
    folder.join(format!("{node}.node"))
}

/// Returns the folder of a bundle: at the top for the default tenant, below `@tenant` for others.
pub(crate) fn bundle_folder(tenant: &TenantId, slug: &BundleSlug) -> String {
    if tenant.is_default() { format!("{SKILLS}/{slug}") } else { format!("{}/{slug}", tenant_folder(tenant)) }
}

/// Returns the folder of a tenant other than the default one.
pub(crate) fn tenant_folder(tenant: &TenantId) -> String {
    format!("{SKILLS}/@{tenant}")
}

/// Returns the file names to try for a new tool, best first.
pub(crate) fn file_names(name: &ToolName, version: &Version, form: FileForm) -> [String; 3] {
    let ending = form.extension();
    let plain = shorten(name.as_str());
    let full = shorten(&format!("{name}@{version}"));
    // For case-insensitive file systems, where `Weather` takes the name of `weather`.
    let hash: String =
        haft_core::hash::of_bytes(format!("{name}@{version}").as_bytes()).chars().take(12).collect();
    let last = format!("{plain}-{hash}.{ending}");
    match form {
        FileForm::Json => [format!("{full}.{ending}"), format!("{plain}.{ending}"), last],
        FileForm::Skill | FileForm::Yaml => [format!("{plain}.{ending}"), format!("{full}.{ending}"), last],
    }
}

/// Returns the path after a change of version, if the file name contains the version.
pub(crate) fn path_for_version(path: &str, from: &Version, to: &Version) -> Option<String> {
    let (folder, file) = path.rsplit_once('/')?;
    let (stem, ending) = file.rsplit_once('.')?;
    let name = stem.strip_suffix(from.as_str())?.strip_suffix('@')?;
    let file = format!("{name}@{to}.{ending}");
    (file.len() <= MAX_NAME_BYTES).then(|| format!("{folder}/{file}"))
}

fn shorten(text: &str) -> String {
    if text.len() <= MAX_NAME_BYTES {
        return text.to_owned();
    }
    let hash: String = haft_core::hash::of_bytes(text.as_bytes()).chars().take(12).collect();
    let mut out = String::new();
    for character in text.chars() {
        if out.len() + character.len_utf8() > MAX_NAME_BYTES - 20 {
            break;
        }
        out.push(character);
    }
    format!("{out}-{hash}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use haft_definition::folder::file_form;

    #[test]
    fn file_names_fit_every_file_system() {
        let long = "𝕏".repeat(64);
        let name = ToolName::new(&long).unwrap();
        let version = Version::new(&long).unwrap();
        for form in [FileForm::Skill, FileForm::Yaml, FileForm::Json] {
            for file in file_names(&name, &version, form) {
                assert!(file.len() < 250, "{file}");
                assert_eq!(file_form(&file), Some(form));
            }
        }
    }

    #[test]
    fn a_version_in_the_file_name_is_updated() {
        let (one, two) = (Version::new("1.0.0").unwrap(), Version::new("2.0.0").unwrap());
        assert_eq!(
            path_for_version("skills/b/a@1.0.0.json", &one, &two),
            Some("skills/b/a@2.0.0.json".into())
        );
        assert_eq!(path_for_version("skills/b/a.skill", &one, &two), None);
    }
}
