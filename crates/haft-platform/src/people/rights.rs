//! What may be given to a person, a service account or a group, and by whom.

use haft_core::actor::Rights;
use haft_core::name::TenantId;
use haft_core::principal::AllowList;
use haft_core::token::Role;

use crate::error::ServiceError;
use crate::identity::Identity;
use crate::rights::check_rights;

/// Rights as a request names them; `None` keeps a field.
#[derive(Debug, Default)]
pub struct RightsFields {
    pub role: Option<String>,
    pub elevated: Option<bool>,
    pub platform: Option<bool>,
    /// `Some(None)`: every tool.
    pub tools: Option<Option<Vec<String>>>,
}

impl RightsFields {
    /// Returns whether nothing is named.
    pub(super) fn is_empty(&self) -> bool {
        self.role.is_none() && self.elevated.is_none() && self.platform.is_none() && self.tools.is_none()
    }

    /// Returns the rights with these changes. Nobody gives more than they have.
    pub(super) fn apply(
        self,
        identity: &Identity,
        tenant: &TenantId,
        rights: Rights,
    ) -> Result<Rights, ServiceError> {
        let role = match &self.role {
            Some(role) => Role::parse(role).ok_or_else(|| {
                ServiceError::bad_request("invalid `role`: expected `viewer`, `caller`, `editor` or `admin`")
            })?,
            None => rights.role,
        };
        let tools = match self.tools {
            Some(tools) => AllowList::try_from(tools)
                .map_err(|error| ServiceError::bad_request(format!("invalid `tools`: {error}")))?,
            None => rights.tools,
        };
        let rights = Rights {
            role,
            elevated: self.elevated.unwrap_or(rights.elevated),
            platform: self.platform.unwrap_or(rights.platform),
            tools,
        };
        check_rights(identity, tenant, &rights)?;
        Ok(rights)
    }
}
