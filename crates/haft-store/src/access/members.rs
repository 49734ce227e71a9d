//! Looking up one member of a tenant, without reading the others.

use haft_core::actor::{ActorRecord, AssignedRights, GroupRecord, Membership};
use haft_core::catalog::StoreError;
use haft_core::id::ActorId;
use haft_core::name::TenantId;
use sqlx::any::AnyRow;
use sqlx::{AssertSqlSafe, Row as _};

use crate::access::Access;
use crate::access::actors::{ACTOR, MEMBERSHIP, actor, membership};
use crate::access::groups::{GROUP, group};
use crate::access::sign_on::{ASSIGNED, assigned};
use crate::engine::failed_to;

const LOAD: &str = "load the member";

/// What identifies a member of a tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MemberKey<'a> {
    /// The id.
    Id(ActorId),
    /// The user name of an identity provider; the e-mail address of those who have none. The case does not count.
    UserName(&'a str),
    /// The id that an identity provider has for it.
    ExternalId(&'a str),
}

/// A person or service account, with what decides its rights.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundMember {
    /// The person or service account.
    pub actor: ActorRecord,
    /// Its memberships of all tenants.
    pub memberships: Vec<Membership>,
    /// What the rules of issuers assign to it in all tenants.
    pub assigned: Vec<AssignedRights>,
    /// Its groups in all tenants, without their other members.
    pub groups: Vec<GroupRecord>,
}

impl Access {
    /// Finds a member of a tenant.
    pub async fn find_member(
        &self,
        tenant: &TenantId,
        key: MemberKey<'_>,
    ) -> Result<Option<FoundMember>, StoreError> {
        let found = match key {
            MemberKey::Id(id) => {
                let sql = "SELECT actor_id FROM memberships WHERE tenant = $1 AND actor_id = $2";
                self.rows(sql.to_owned(), &[tenant.as_str(), &id.to_string()]).await?
            }
            MemberKey::ExternalId(id) => {
                let sql = "SELECT actor_id FROM memberships WHERE tenant = $1 AND external_id = $2";
                self.rows(sql.to_owned(), &[tenant.as_str(), id]).await?
            }
            MemberKey::UserName(name) => {
                let key = name.to_lowercase();
                let sql = "SELECT actor_id FROM memberships WHERE tenant = $1 AND user_name_key = $2 \
                           UNION ALL SELECT actor_id FROM actors JOIN memberships ON actor_id = actors.id \
                           WHERE email_key = $3 AND tenant = $4 AND user_name IS NULL";
                self.rows(sql.to_owned(), &[tenant.as_str(), &key, &key, tenant.as_str()]).await?
            }
        };
        let Some(row) = found.first() else { return Ok(None) };
        let id: &str = row.try_get("actor_id").map_err(failed_to(LOAD))?;
        let actors = self.rows(format!("SELECT {ACTOR} FROM actors WHERE id = $1"), &[id]).await?;
        let Some(row) = actors.first() else { return Ok(None) };
        let memberships = format!("SELECT {MEMBERSHIP} FROM memberships WHERE actor_id = $1");
        let memberships = self.rows(memberships, &[id]).await?;
        let groups = format!(
            "SELECT {GROUP} FROM actor_groups \
             WHERE id IN (SELECT group_id FROM group_members WHERE actor_id = $1 \
                          UNION SELECT group_id FROM assigned_groups WHERE actor_id = $2) ORDER BY id"
        );
        let groups = self.rows(groups, &[id, id]).await?;
        let rights = format!("SELECT {ASSIGNED} FROM assigned_rights WHERE actor_id = $1");
        let rights = self.rows(rights, &[id]).await?;
        let actor = actor(row).map_err(failed_to(LOAD))?;
        let in_group =
            |row: &AnyRow| group(row).map(|group| GroupRecord { members: vec![actor.id], ..group });
        Ok(Some(FoundMember {
            memberships: memberships
                .iter()
                .map(membership)
                .collect::<Result<_, _>>()
                .map_err(failed_to(LOAD))?,
            assigned: rights.iter().map(assigned).collect::<Result<_, _>>().map_err(failed_to(LOAD))?,
            groups: groups.iter().map(in_group).collect::<Result<_, _>>().map_err(failed_to(LOAD))?,
            actor,
        }))
    }

    async fn rows(&self, sql: String, values: &[&str]) -> Result<Vec<AnyRow>, StoreError> {
        let mut query = sqlx::query(AssertSqlSafe(sql));
        for value in values {
            query = query.bind((*value).to_owned());
        }
        query.fetch_all(&self.db.engine.pool).await.map_err(failed_to(LOAD))
    }
}
