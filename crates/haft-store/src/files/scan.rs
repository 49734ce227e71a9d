//! Scans the definition folder for names and stamps, without reading files.

use std::fs::{self, Metadata};
use std::io;
use std::path::Path;

use haft_core::Timestamp;
use haft_core::catalog::FileForm;
use haft_core::name::{BundleSlug, TenantId};
use haft_definition::folder::{BUNDLE_FILE, FileStamp, TOOLSET_FILE, file_form};

use super::layout::{self, SKILLS};
use super::nested;
use super::stamp::modified_at;
use super::write::TEMP_SUFFIX;

/// The folder of a bundle.
#[derive(Debug, Clone)]
pub(crate) struct ScannedBundle {
    pub(crate) tenant: TenantId,
    pub(crate) slug: BundleSlug,
    /// The stamp of its `bundle.yaml`, if there is one.
    pub(crate) stamp: Option<FileStamp>,
    /// When that file, or else the folder, was modified.
    pub(crate) modified_at: Timestamp,
}

impl ScannedBundle {
    /// Returns the path of its `bundle.yaml`, if there is one.
    pub(crate) fn file(&self) -> Option<String> {
        self.stamp.as_ref()?;
        Some(format!("{}/{BUNDLE_FILE}", layout::bundle_folder(&self.tenant, &self.slug)))
    }
}

/// A definition file, or an entry that is reported instead of loaded.
#[derive(Debug, Clone)]
pub(crate) struct ScannedFile {
    pub(crate) path: String,
    pub(crate) tenant: TenantId,
    pub(crate) bundle: BundleSlug,
    pub(crate) stamp: FileStamp,
    pub(crate) modified_at: Timestamp,
    pub(crate) form: FileForm,
    /// Why it cannot be loaded, if that is known without reading it.
    pub(crate) error: Option<String>,
}

/// The result of a scan; files are sorted by path.
#[derive(Debug, Default)]
pub(crate) struct Scan {
    pub(crate) bundles: Vec<ScannedBundle>,
    pub(crate) files: Vec<ScannedFile>,
    /// Folders that could not be listed, each with a trailing `/`; the index of their files stays unchanged.
    pub(crate) unlisted: Vec<String>,
    /// Temporary files that a crash may have left behind.
    pub(crate) leftovers: Vec<String>,
}

/// Scans the definition folder.
pub(crate) fn scan(home: &Path) -> io::Result<Scan> {
    let mut scan = Scan::default();
    scan.add_tenant(home, SKILLS, &TenantId::default_tenant())?;
    scan.files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(scan)
}

/// Lists a folder; entries that vanish meanwhile are skipped.
fn entries(folder: &Path) -> io::Result<Vec<(String, Metadata)>> {
    let listing = match fs::read_dir(folder) {
        Ok(listing) => listing,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut entries = Vec::new();
    for entry in listing {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else {
            tracing::warn!(folder = %folder.display(), "ignored a file whose name is not valid UTF-8");
            continue;
        };
        if name.starts_with('.') && !name.ends_with(TEMP_SUFFIX) {
            continue;
        }
        // The metadata of a symbolic link, not of its target.
        match entry.metadata() {
            Ok(metadata) => entries.push((name, metadata)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(entries)
}

impl Scan {
    /// Scans the folders of one tenant.
    fn add_tenant(&mut self, home: &Path, folder: &str, tenant: &TenantId) -> io::Result<()> {
        for (name, metadata) in entries(&home.join(folder))? {
            let path = format!("{folder}/{name}");
            if let Some(form) = file_form(&name) {
                // A file outside of every bundle belongs to the default bundle.
                self.files.push(scanned(path, tenant, &BundleSlug::user_created(), (form, &metadata)));
            } else if name.ends_with(TEMP_SUFFIX) {
                self.leftovers.push(path);
            } else if metadata.is_dir() {
                match (name.strip_prefix('@').map(TenantId::new), folder == SKILLS) {
                    (Some(Ok(other)), true) if other != *tenant => {
                        if let Err(error) = self.add_tenant(home, &path, &other) {
                            self.report_unlisted(
                                &path,
                                &other,
                                &BundleSlug::user_created(),
                                (&metadata, &error),
                            );
                        }
                    }
                    _ => self.add_bundle(home, &path, tenant, (&name, &metadata)),
                }
            } else if metadata.is_symlink() && is_folder_or_dangling(&home.join(&path)) {
                let error = "symbolic links are not followed; replace the link by the folder";
                self.report(&path, tenant, &BundleSlug::user_created(), (&metadata, error.into()));
            }
        }
        Ok(())
    }

    fn add_bundle(
        &mut self,
        home: &Path,
        folder: &str,
        tenant: &TenantId,
        (name, metadata): (&str, &Metadata),
    ) {
        let slug = match BundleSlug::new(name) {
            Ok(slug) if slug != BundleSlug::built_in() => slug,
            Ok(slug) => {
                let error = format!("the bundle name `{slug}` is reserved; rename the folder");
                return self.report(folder, tenant, &BundleSlug::user_created(), (metadata, error));
            }
            Err(error) => {
                let error = format!("{error}; rename the folder");
                return self.report(folder, tenant, &BundleSlug::user_created(), (metadata, error));
            }
        };
        let entries = match entries(&home.join(folder)) {
            Ok(entries) => entries,
            Err(error) => return self.report_unlisted(folder, tenant, &slug, (metadata, &error)),
        };
        let mut bundle =
            ScannedBundle { tenant: tenant.clone(), slug, stamp: None, modified_at: modified_at(metadata) };
        if let Some((name, manifest)) = package_manifest(&entries) {
            let error = format!(
                "`{folder}` is the package of a toolset: install it with `haft toolset install DIR`, where DIR is this \
                 folder, and remove it from `{SKILLS}`"
            );
            return self.report(&format!("{folder}/{name}"), tenant, &bundle.slug, (manifest, error));
        }
        for (name, metadata) in entries {
            let path = format!("{folder}/{name}");
            if name == BUNDLE_FILE {
                bundle.stamp = Some(FileStamp::of(&metadata));
                bundle.modified_at = modified_at(&metadata);
            } else if name.ends_with(TEMP_SUFFIX) {
                self.leftovers.push(path);
            } else if let Some(form) = file_form(&name) {
                self.files.push(scanned(path, tenant, &bundle.slug, (form, &metadata)));
            } else if metadata.is_dir() {
                for (path, metadata) in nested::definitions(home, &path) {
                    let error = format!(
                        "definitions in subfolders of a bundle are not loaded; move the file to `{folder}`, or its folder \
                         to `{SKILLS}`"
                    );
                    self.report(&path, tenant, &bundle.slug, (&metadata, error));
                }
            }
        }
        self.bundles.push(bundle);
    }

    /// Reports a folder that cannot be listed; the others are still scanned.
    fn report_unlisted(
        &mut self,
        folder: &str,
        tenant: &TenantId,
        slug: &BundleSlug,
        (metadata, error): (&Metadata, &io::Error),
    ) {
        self.unlisted.push(format!("{folder}/"));
        let error = format!("cannot list the folder: {error}; give haft read and execute permission on it");
        self.report(folder, tenant, slug, (metadata, error));
    }

    fn report(
        &mut self,
        path: &str,
        tenant: &TenantId,
        slug: &BundleSlug,
        (metadata, error): (&Metadata, String),
    ) {
        let file = scanned(path.to_owned(), tenant, slug, (FileForm::Json, metadata));
        self.files.push(ScannedFile { error: Some(error), ..file });
    }
}

/// Returns the manifest of a folder that is a package, which has no definition files of its own.
fn package_manifest(entries: &[(String, Metadata)]) -> Option<&(String, Metadata)> {
    let has_definitions = entries.iter().any(|(name, _)| file_form(name).is_some());
    entries.iter().find(|(name, metadata)| name == TOOLSET_FILE && metadata.is_file() && !has_definitions)
}

/// Tells whether a link leads to a folder, or to nothing.
fn is_folder_or_dangling(link: &Path) -> bool {
    fs::metadata(link).map_or(true, |target| target.is_dir())
}

fn scanned(
    path: String,
    tenant: &TenantId,
    bundle: &BundleSlug,
    (form, metadata): (FileForm, &Metadata),
) -> ScannedFile {
    ScannedFile {
        path,
        tenant: tenant.clone(),
        bundle: bundle.clone(),
        stamp: FileStamp::of(metadata),
        modified_at: modified_at(metadata),
        form,
        error: None,
    }
}
