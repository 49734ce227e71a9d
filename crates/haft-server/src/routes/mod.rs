//! The routes, one group per module.

pub(crate) mod approvals;
pub(crate) mod audit_log;
pub(crate) mod broken_file;
pub(crate) mod bundle_publish;
pub(crate) mod bundle_tools;
pub(crate) mod bundles;
pub(crate) mod calls;

pub(crate) mod credentials;
pub(crate) mod definitions;
mod grants;
pub(crate) mod health;
pub(crate) mod import;
pub(crate) mod import_registry;
pub(crate) mod invoke;
pub(crate) mod key;
pub(crate) mod lifecycle;
pub(crate) mod limits;
pub(crate) mod login;
pub(crate) mod mcp;
pub(crate) mod mcp_logins;
pub(crate) mod mcp_servers;
pub(crate) mod policy;
pub(crate) mod policy_explain;
pub(crate) mod revisions;
pub(crate) mod search;
pub(crate) mod sessions;
pub(crate) mod tenants;
pub(crate) mod test;
pub(crate) mod token_rates;
pub(crate) mod tokens;
pub(crate) mod tool;
pub(crate) mod tools;
pub(crate) mod usage;
pub(crate) mod validate;
