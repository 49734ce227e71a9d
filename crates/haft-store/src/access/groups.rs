//! Groups of people and service accounts.

use std::collections::HashMap;

use haft_core::actor::{GroupRecord, Rights};
use haft_core::catalog::StoreError;
use haft_core::id::{ActorId, GroupId};
use sqlx::any::AnyRow;
use sqlx::{Any, Row as _, Transaction};

use crate::access::Access;
use crate::access::actors::{rights, tools_text};
use crate::engine::{failed_to, is_conflict};
use crate::notification::ChangeSet;
use crate::rows;

const STORE: &str = "store the group";
/// The columns that [`group`] reads.
pub(super) const GROUP: &str = "id, tenant, name, description, role, elevated, 0 AS platform, tools, created_at, \
                                modified_at, provisioned, external_id";

/// Changes of a group; `None` keeps a field.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GroupChange {
    /// The name.
    pub name: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// What its members may do.
    pub rights: Option<Rights>,
    /// The members.
    pub members: Option<MembersChange>,
    /// Marks it as managed by an identity provider, with its id there.
    pub provisioned: Option<Option<String>>,
}

/// A change of the members of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MembersChange {
    /// Replaces all members.
    Replace(Vec<ActorId>),
    /// Adds and removes members; others that change the group at the same time lose nothing.
    Edit {
        /// The new members.
        add: Vec<ActorId>,
        /// The former members.
        remove: Vec<ActorId>,
        /// The most members that the group may have afterwards.
        limit: usize,
    },
}

impl Access {
    /// Returns all groups with their members, also those that issuers have assigned, by id.
    pub async fn groups(&self) -> Result<Vec<GroupRecord>, StoreError> {
        let action = "load the groups";
        let load = async {
            let sql = format!("SELECT {GROUP} FROM actor_groups ORDER BY id");
            let found = sqlx::query(sqlx::AssertSqlSafe(sql)).fetch_all(&self.db.engine.pool).await?;
            let mut groups = found.iter().map(group).collect::<Result<Vec<_>, _>>()?;
            // `UNION` returns members that are both once.
            let sql = "SELECT group_id, actor_id FROM group_members \
                       UNION SELECT group_id, actor_id FROM assigned_groups ORDER BY actor_id";
            let mut members: HashMap<GroupId, Vec<ActorId>> = HashMap::new();
            for row in sqlx::query(sql).fetch_all(&self.db.engine.pool).await? {
                let group = rows::parse_column(&row, "group_id")?;
                members.entry(group).or_default().push(rows::parse_column(&row, "actor_id")?);
            }
            for group in &mut groups {
                group.members = members.remove(&group.id).unwrap_or_default();
            }
            Ok(groups)
        };
        load.await.map_err(failed_to(action))
    }

    /// Stores a group with its members.
    pub async fn insert_group(&self, group: GroupRecord) -> Result<(), StoreError> {
        let this = self.clone();
        let work = async move {
            let mut change = this.db.begin_shared().await.map_err(failed_to(STORE))?;
            let sql = "INSERT INTO actor_groups (id, tenant, name, description, role, elevated, tools, created_at, \
                       modified_at, provisioned, external_id) \
                       VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)";
            let query = sqlx::query(sql)
                .bind(group.id.to_string())
                .bind(group.tenant.as_str())
                .bind(&group.name)
                .bind(&group.description)
                .bind(group.rights.role.as_str())
                .bind(i64::from(group.rights.elevated))
                .bind(tools_text(&group.rights.tools))
                .bind(group.created_at.as_microsecond())
                .bind(group.modified_at.as_microsecond())
                .bind(i64::from(group.is_provisioned))
                .bind(&group.external_id);
            query.execute(&mut *change.tx).await.map_err(taken)?;
            insert_members(&mut change.tx, group.id, &group.members).await.map_err(failed_to(STORE))?;
            let _lock = change.commit(&ChangeSet::tokens(), &group.name).await.map_err(failed_to(STORE))?;
            this.signal_change();
            Ok(())
        };
        self.db.complete(work).await
    }

    /// Changes a group.
    pub async fn update_group(&self, id: GroupId, update: GroupChange) -> Result<(), StoreError> {
        let this = self.clone();
        let work = async move {
            let now = this.db.now();
            let mut change = this.db.begin_shared().await.map_err(failed_to(STORE))?;
            let rights = update.rights.as_ref();
            let sql = "UPDATE actor_groups SET modified_at = $1, name = COALESCE($2, name), \
                       description = COALESCE($3, description), role = COALESCE($4, role), \
                       elevated = COALESCE($5, elevated), tools = CASE WHEN $6 = 1 THEN $7 ELSE tools END, \
                       provisioned = CASE WHEN $8 = 1 THEN 1 ELSE provisioned END, \
                       external_id = CASE WHEN $9 = 1 THEN $10 ELSE external_id END WHERE id = $11";
            let is_provisioned = i64::from(update.provisioned.is_some());
            let query = sqlx::query(sql)
                .bind(now.as_microsecond())
                .bind(&update.name)
                .bind(&update.description)
                .bind(rights.map(|rights| rights.role.as_str()))
                .bind(rights.map(|rights| i64::from(rights.elevated)))
                .bind(i64::from(rights.is_some()))
                .bind(rights.and_then(|rights| tools_text(&rights.tools)))
                .bind(is_provisioned)
                .bind(is_provisioned)
                .bind(update.provisioned.clone().flatten())
                .bind(id.to_string());
            if query.execute(&mut *change.tx).await.map_err(taken)?.rows_affected() == 0 {
                return Err(StoreError::not_found("group", id));
            }
            if let Some(members) = &update.members {
                change_members(&mut change.tx, id, members).await?;
            }
            let _lock =
                change.commit(&ChangeSet::tokens(), &id.to_string()).await.map_err(failed_to(STORE))?;
            this.signal_change();
            Ok(())
        };
        self.db.complete(work).await
    }

    /// Deletes a group; its members lose its rights.
    pub async fn delete_group(&self, id: GroupId) -> Result<(), StoreError> {
        let this = self.clone();
        let work = async move {
            let action = "delete the group";
            let mut change = this.db.begin_shared().await.map_err(failed_to(action))?;
            let query = sqlx::query("DELETE FROM actor_groups WHERE id = $1").bind(id.to_string());
            if query.execute(&mut *change.tx).await.map_err(failed_to(action))?.rows_affected() == 0 {
                return Err(StoreError::not_found("group", id));
            }
            let _lock =
                change.commit(&ChangeSet::tokens(), &id.to_string()).await.map_err(failed_to(action))?;
            this.signal_change();
            Ok(())
        };
        self.db.complete(work).await
    }
}

/// Changes who is in a group.
async fn change_members(
    tx: &mut Transaction<'static, Any>,
    id: GroupId,
    members: &MembersChange,
) -> Result<(), StoreError> {
    match members {
        MembersChange::Replace(members) => {
            let query = sqlx::query("DELETE FROM group_members WHERE group_id = $1").bind(id.to_string());
            query.execute(&mut **tx).await.map_err(failed_to(STORE))?;
            insert_members(tx, id, members).await.map_err(failed_to(STORE))
        }
        MembersChange::Edit { add, remove, limit } => {
            for member in remove {
                let query = sqlx::query("DELETE FROM group_members WHERE group_id = $1 AND actor_id = $2");
                let query = query.bind(id.to_string()).bind(member.to_string());
                query.execute(&mut **tx).await.map_err(failed_to(STORE))?;
            }
            insert_members(tx, id, add).await.map_err(failed_to(STORE))?;
            let query = sqlx::query("SELECT COUNT(*) FROM group_members WHERE group_id = $1");
            let row = query.bind(id.to_string()).fetch_one(&mut **tx).await.map_err(failed_to(STORE))?;
            let count: i64 = row.try_get(0).map_err(failed_to(STORE))?;
            if !add.is_empty() && usize::try_from(count).is_ok_and(|count| count > *limit) {
                return Err(StoreError::Conflict(format!("a group has at most {limit} members")));
            }
            Ok(())
        }
    }
}

fn taken(error: sqlx::Error) -> StoreError {
    if is_conflict(&error) && error.to_string().contains("external_id") {
        return StoreError::Conflict("another group has this external id".into());
    }
    if is_conflict(&error) {
        return StoreError::Conflict("a group of this name already exists".into());
    }
    failed_to(STORE)(error)
}

async fn insert_members(
    tx: &mut Transaction<'static, Any>,
    id: GroupId,
    members: &[ActorId],
) -> Result<(), sqlx::Error> {
    for member in members {
        insert_member(tx, id, *member).await?;
    }
    Ok(())
}

/// Adds a member by hand, unless an issuer has assigned it: such members are in every list, so a list that comes back
/// must not make them stay.
pub(super) async fn insert_member(
    tx: &mut Transaction<'static, Any>,
    group: GroupId,
    member: ActorId,
) -> Result<(), sqlx::Error> {
    let sql = "INSERT INTO group_members (group_id, actor_id) SELECT $1, $2 \
               WHERE NOT EXISTS (SELECT 1 FROM assigned_groups WHERE group_id = $3 AND actor_id = $4) \
               ON CONFLICT DO NOTHING";
    let (group, member) = (group.to_string(), member.to_string());
    let query = sqlx::query(sql).bind(&group).bind(&member).bind(&group).bind(&member);
    query.execute(&mut **tx).await.map(drop)
}

pub(super) fn group(row: &AnyRow) -> Result<GroupRecord, sqlx::Error> {
    Ok(GroupRecord {
        id: rows::parse_column(row, "id")?,
        tenant: rows::parse_column(row, "tenant")?,
        name: row.try_get("name")?,
        description: row.try_get("description")?,
        rights: rights(row)?,
        created_at: rows::timestamp(row, "created_at")?,
        modified_at: rows::timestamp(row, "modified_at")?,
        members: Vec::new(),
        is_provisioned: rows::boolean(row, "provisioned")?,
        external_id: row.try_get("external_id")?,
    })
}
