//! The files of a new toolset: a small package that works.

use haft_core::name::{BundleSlug, NameError};
use haft_core::problem::Problem;

use crate::files::{MANIFEST, PackageFiles};

/// Why a skeleton cannot be written.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SkeletonError {
    /// The name is invalid.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The files are invalid, which is a fault of haft.
    #[error("{}", haft_core::problem::join(std::slice::from_ref(.0)))]
    Files(Problem),
}

/// Returns the files of a new toolset: a manifest, a Python tool, an HTML page that shows its result, and a test.
///
/// ```
/// let files = haft_package::skeleton::skeleton("word-tools").unwrap();
/// assert!(haft_package::package::Package::open(files).is_ok());
/// ```
pub fn skeleton(name: &str) -> Result<PackageFiles, SkeletonError> {
    let id = BundleSlug::new(name)?;
    let title = title(id.as_str());
    let fill = |text: &str| text.replace("@ID@", id.as_str()).replace("@TITLE@", &title);
    let mut files = PackageFiles::new();
    for (path, text) in [
        (MANIFEST, include_str!("skeleton/toolset.yaml")),
        ("tools/words.py", include_str!("skeleton/words.py")),
        ("artifacts/result.html", include_str!("skeleton/result.html")),
        ("tests/test_tools.py", include_str!("skeleton/test_tools.py")),
        ("README.md", include_str!("skeleton/README.md")),
    ] {
        files.put_text(path, fill(text)).map_err(SkeletonError::Files)?;
    }
    Ok(files)
}

/// Returns a display name: `Word tools` for `word-tools`.
fn title(id: &str) -> String {
    let words = id.replace(['-', '_'], " ");
    let mut chars = words.trim().chars();
    let first = chars.next().map(|c| c.to_uppercase().collect::<String>()).unwrap_or_default();
    let title = format!("{first}{}", chars.as_str());
    if title.is_empty() { id.to_owned() } else { title }
}
