//! What a stage wants to know of a call.

use haft_core::id::CallId;
use haft_core::name::TenantId;
use serde_json::Value;

use super::Call;

impl Call {
    /// Returns its identity.
    pub fn id(&self) -> CallId {
        self.record.id
    }

    /// Returns the name of the tool, without its bundle.
    pub fn tool(&self) -> &str {
        self.entry.tool.spec.name.as_str()
    }

    /// Returns the arguments: a map, checked against the schema.
    pub fn args(&self) -> &Value {
        &self.record.args
    }

    /// Returns for whom it runs.
    pub fn tenant(&self) -> &TenantId {
        &self.record.tenant
    }

    /// Returns who calls: the name of a token, or `program`.
    pub fn caller(&self) -> &str {
        &self.record.caller
    }
}
