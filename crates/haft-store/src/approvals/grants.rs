//! Approvals that are remembered for later calls.

use haft_core::approval::{Approval, ApprovalGrant, GrantQuery, Remember, RememberScope};
use haft_core::catalog::StoreError;
use haft_core::hash;
use haft_core::id::ApprovalId;
use haft_core::name::TenantId;
use sqlx::{Any, AnyConnection, Row as _, Transaction};

use crate::approvals::StoredApprovals;
use crate::engine::failed_to;
use crate::rows;
use crate::time;

const READ: &str = "read remembered approvals";
const REVOKE: &str = "revoke a remembered approval";

impl StoredApprovals {
    /// Lists remembered approvals, newest first: those of a tenant, or those that cover the calls of one principal.
    pub async fn grants(
        &self,
        tenant: &TenantId,
        principal: Option<&str>,
        before: Option<ApprovalId>,
        limit: u32,
    ) -> Result<Vec<ApprovalGrant>, StoreError> {
        let sql = "SELECT id, tool_id, cause, principal, session, args_digest, granted_by, created_at \
                   FROM approval_grants WHERE tenant = $1 AND ($2 = '' OR principal = $2) AND id < $3 \
                   ORDER BY id DESC LIMIT $4";
        let found = sqlx::query(sql)
            .bind(tenant.as_str())
            .bind(principal.unwrap_or_default())
            .bind(before.map_or_else(|| "g".to_owned(), |id| id.to_string()))
            .bind(i64::from(limit))
            .fetch_all(&self.db.engine.pool)
            .await
            .map_err(failed_to(READ))?;
        found.iter().map(parse).collect::<Result<_, _>>().map_err(failed_to(READ))
    }

    /// Revokes a remembered approval; with a principal only one that covers its calls alone. Returns whether there was
    /// one.
    pub async fn revoke_grant(
        &self,
        tenant: &TenantId,
        id: ApprovalId,
        principal: Option<&str>,
    ) -> Result<bool, StoreError> {
        let sql = "DELETE FROM approval_grants WHERE tenant = $1 AND id = $2 AND ($3 = '' OR principal = $3)";
        let revoked = sqlx::query(sql)
            .bind(tenant.as_str())
            .bind(id.to_string())
            .bind(principal.unwrap_or_default())
            .execute(&self.db.engine.pool)
            .await
            .map_err(failed_to(REVOKE))?;
        Ok(revoked.rows_affected() > 0)
    }
}

fn parse(row: &sqlx::any::AnyRow) -> Result<ApprovalGrant, sqlx::Error> {
    let text = |column: &str| row.try_get::<String, _>(column);
    let (principal, session) = (text("principal")?, text("session")?);
    let scope = match (principal.is_empty(), session.is_empty()) {
        (true, _) => RememberScope::Tool,
        (false, true) => RememberScope::Token,
        (false, false) => RememberScope::Session,
    };
    Ok(ApprovalGrant {
        id: rows::parse_column(row, "id")?,
        tool_id: rows::parse_column(row, "tool_id")?,
        cause: text("cause")?,
        remember: Remember { scope, any_args: text("args_digest")?.is_empty() },
        principal,
        granted_by: text("granted_by")?,
        created_at: time::from_micros(row.try_get("created_at")?),
    })
}

impl StoredApprovals {
    /// Remembers an approval for later calls.
    pub(crate) async fn remember(
        &self,
        tx: &mut Transaction<'static, Any>,
        approval: &Approval,
        remember: Remember,
    ) -> Result<(), sqlx::Error> {
        let principal = match remember.scope {
            RememberScope::Session | RememberScope::Token => approval.requested_by.id(),
            RememberScope::Tool => "".into(),
        };
        let session = match remember.scope {
            RememberScope::Session => approval.session.as_deref().unwrap_or_default(),
            RememberScope::Token | RememberScope::Tool => "",
        };
        // Arguments that the approver changed: what was approved is remembered, not what was requested.
        let args_digest = match (remember.any_args, approval.args_edited) {
            (true, _) => String::new(),
            (false, true) => hash::of_args(&approval.args),
            (false, false) => approval.args_digest.clone(),
        };
        let sql = "INSERT INTO approval_grants (id, tenant, tool_id, definition_hash, principal, session, args_digest, \
                   granted_by, created_at, cause) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";
        sqlx::query(sql)
            .bind(time::new_id(&*self.db.clock).to_string())
            .bind(approval.requested_by.tenant.as_str())
            .bind(approval.tool_id.to_string())
            .bind(&approval.definition_hash)
            .bind(&*principal)
            .bind(session)
            .bind(args_digest)
            .bind(approval.decided_by.as_deref().unwrap_or_default())
            .bind(self.db.now().as_microsecond())
            .bind(approval.cause.key())
            .execute(&mut **tx)
            .await?;
        Ok(())
    }
}

/// Returns who granted a remembered approval that covers the call. It covers its own cause only: who confirms a call
/// does not speak for the approvers of a rule.
pub(crate) async fn grant(
    connection: &mut AnyConnection,
    query: &GrantQuery,
) -> Result<Option<String>, sqlx::Error> {
    let sql = "SELECT granted_by FROM approval_grants WHERE tenant = $1 AND tool_id = $2 AND definition_hash = $3 \
               AND (principal = '' OR principal = $4) AND (session = '' OR session = $5) \
               AND (args_digest = '' OR args_digest = $6) AND cause = $7 LIMIT 1";
    let found = sqlx::query(sql)
        .bind(query.requested_by.tenant.as_str())
        .bind(query.tool_id.to_string())
        .bind(&query.definition_hash)
        .bind(&*query.requested_by.id())
        .bind(query.session.as_deref().unwrap_or_default())
        .bind(&query.args_digest)
        .bind(query.cause.key())
        .fetch_optional(connection)
        .await?;
    found.map(|row| row.try_get(0)).transpose()
}
