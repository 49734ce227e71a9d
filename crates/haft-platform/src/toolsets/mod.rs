//! Toolsets: packages that are installed, updated, rolled back, exported and removed as a whole.

mod export;
mod install;
mod source;
mod unpacked;

pub use export::{export_bundle, export_toolset, is_readable, packed_toolset};
pub use install::{
    InstallOptions, InstalledReport, install, new_server, package_of, prepare, rollback, uninstall,
};
pub use source::{MAX_PACKAGE_BYTES, Origin, fetch_package, open_folder, open_zip};
pub use unpacked::{keep_unpacked, read_file, read_package, start, unpack};
