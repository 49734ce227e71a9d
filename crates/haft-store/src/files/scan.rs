//! One walk over the definition folder: names and stamps, no contents.

use std::fs::{self, Metadata};
use std::io;
use std::path::Path;

use haft_core::Timestamp;
use haft_core::catalog::FileForm;
use haft_core::name::{BundleSlug, TenantId};

use super::layout::{self, BUNDLE_FILE, SKILLS};
use super::nested;
use super::stamp::{Stamp, modified_at};
use super::write::TEMPORARY;

/// A bundle's folder.
#[derive(Debug, Clone)]
pub(crate) struct FoundBundle {
    pub(crate) tenant: TenantId,
    pub(crate) slug: BundleSlug,
    /// The stamp of its `bundle.yaml`, where there is one.
    pub(crate) stamp: Option<Stamp>,
    /// When that file, or else the folder, was changed.
    pub(crate) modified_at: Timestamp,
}

impl FoundBundle {
    /// Returns the path of its `bundle.yaml`, where there is one.
    pub(crate) fn file(&self) -> Option<String> {
        self.stamp.as_ref()?;
        Some(format!("{}/{BUNDLE_FILE}", layout::bundle_folder(&self.tenant, &self.slug)))
    }
}

/// A definition file, or what looks like one.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    pub(crate) path: String,
    pub(crate) tenant: TenantId,
    pub(crate) bundle: BundleSlug,
    pub(crate) stamp: Stamp,
    pub(crate) modified_at: Timestamp,
    pub(crate) form: FileForm,
    /// Why it cannot be a definition, where that is known without reading.
    pub(crate) fault: Option<String>,
}

/// Everything that is there, in the order of the paths.
#[derive(Debug, Default)]
pub(crate) struct Scan {
    pub(crate) bundles: Vec<FoundBundle>,
    pub(crate) files: Vec<Found>,
    /// Folders that cannot be listed, each with a `/` at its end: what they hold is as it was known.
    pub(crate) closed: Vec<String>,
    /// Temporary files that a crash may have left behind.
    pub(crate) leftovers: Vec<String>,
}

/// Walks the definition folder.
pub(crate) fn scan(home: &Path) -> io::Result<Scan> {
    let mut scan = Scan::default();
    scan.owner(home, SKILLS, &TenantId::default_tenant())?;
    scan.files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(scan)
}

/// Lists a folder; what vanishes while it is listed is not there.
fn entries(folder: &Path) -> io::Result<Vec<(String, Metadata)>> {
    let listing = match fs::read_dir(folder) {
        Ok(listing) => listing,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut found = Vec::new();
    for entry in listing {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else {
            tracing::warn!(folder = %folder.display(), "a file name is not valid UTF-8; the file is ignored");
            continue;
        };
        if name.starts_with('.') && !name.ends_with(TEMPORARY) {
            continue;
        }
        // Not followed: a symlink is judged as what it is.
        match entry.metadata() {
            Ok(metadata) => found.push((name, metadata)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

impl Scan {
    /// Walks the folders of one tenant.
    fn owner(&mut self, home: &Path, folder: &str, tenant: &TenantId) -> io::Result<()> {
        for (name, metadata) in entries(&home.join(folder))? {
            let path = format!("{folder}/{name}");
            if let Some(form) = layout::form_of(&name) {
                // A file outside of every bundle belongs to the bundle of tools that name none.
                self.files.push(found(path, tenant, &BundleSlug::user_created(), (form, &metadata)));
            } else if name.ends_with(TEMPORARY) {
                self.leftovers.push(path);
            } else if metadata.is_dir() {
                match (name.strip_prefix('@').map(TenantId::new), folder == SKILLS) {
                    (Some(Ok(other)), true) if other != *tenant => {
                        if let Err(error) = self.owner(home, &path, &other) {
                            self.shut(&path, &other, &BundleSlug::user_created(), (&metadata, &error));
                        }
                    }
                    _ => self.bundle(home, &path, tenant, (&name, &metadata)),
                }
            } else if metadata.is_symlink() && leads_to_no_file(&home.join(&path)) {
                let fault = "it is a symbolic link, and links are not followed; put the folder itself here";
                self.refuse(&path, tenant, &BundleSlug::user_created(), (&metadata, fault.into()));
            }
        }
        Ok(())
    }

    fn bundle(&mut self, home: &Path, folder: &str, tenant: &TenantId, (name, metadata): (&str, &Metadata)) {
        let slug = match BundleSlug::new(name) {
            Ok(slug) if slug != BundleSlug::built_in() => slug,
            Ok(_) => {
                let fault = "the bundle `builtin` is reserved; rename the folder".into();
                return self.refuse(folder, tenant, &BundleSlug::user_created(), (metadata, fault));
            }
            Err(error) => {
                let fault = format!("{error}; rename the folder");
                return self.refuse(folder, tenant, &BundleSlug::user_created(), (metadata, fault));
            }
        };
        let listed = match entries(&home.join(folder)) {
            Ok(listed) => listed,
            Err(error) => return self.shut(folder, tenant, &slug, (metadata, &error)),
        };
        let mut bundle =
            FoundBundle { tenant: tenant.clone(), slug, stamp: None, modified_at: modified_at(metadata) };
        for (name, metadata) in listed {
            let path = format!("{folder}/{name}");
            if name == BUNDLE_FILE {
                bundle.stamp = Some(Stamp::of(&metadata));
                bundle.modified_at = modified_at(&metadata);
            } else if name.ends_with(TEMPORARY) {
                self.leftovers.push(path);
            } else if let Some(form) = layout::form_of(&name) {
                self.files.push(found(path, tenant, &bundle.slug, (form, &metadata)));
            } else if metadata.is_dir() {
                for (path, metadata) in nested::definitions(home, &path) {
                    let fault = format!(
                        "it is in a folder within a bundle, where definitions are not read; move it to `{folder}`, or its \
                         folder to `{SKILLS}`"
                    );
                    self.refuse(&path, tenant, &bundle.slug, (&metadata, fault));
                }
            }
        }
        self.bundles.push(bundle);
    }

    /// Shows a folder that cannot be listed; one of many must not hide the others.
    fn shut(
        &mut self,
        folder: &str,
        tenant: &TenantId,
        slug: &BundleSlug,
        (metadata, error): (&Metadata, &io::Error),
    ) {
        self.closed.push(format!("{folder}/"));
        let fault = format!("the folder cannot be listed: {error}; let haft read and enter it");
        self.refuse(folder, tenant, slug, (metadata, fault));
    }

    fn refuse(
        &mut self,
        folder: &str,
        tenant: &TenantId,
        slug: &BundleSlug,
        (metadata, fault): (&Metadata, String),
    ) {
        let entry = found(folder.to_owned(), tenant, slug, (FileForm::Json, metadata));
        self.files.push(Found { fault: Some(fault), ..entry });
    }
}

/// Tells whether a link is in the place of a folder, or leads nowhere.
fn leads_to_no_file(link: &Path) -> bool {
    fs::metadata(link).map_or(true, |target| target.is_dir())
}

fn found(
    path: String,
    tenant: &TenantId,
    bundle: &BundleSlug,
    (form, metadata): (FileForm, &Metadata),
) -> Found {
    Found {
        path,
        tenant: tenant.clone(),
        bundle: bundle.clone(),
        stamp: Stamp::of(metadata),
        modified_at: modified_at(metadata),
        form,
        fault: None,
    }
}
