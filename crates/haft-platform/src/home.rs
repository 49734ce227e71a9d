//! The folders in the home folder that several modules use.

/// The folders of tenants for file tools.
pub const TENANT_FILES: &str = "files";

/// The unpacked packages of toolsets.
pub const PACKAGES: &str = "toolsets";

/// The files of workspaces, by tenant.
pub const WORKSPACES: &str = "workspaces";
