//! People and service accounts, and their memberships of tenants.

use haft_core::Timestamp;
use haft_core::actor::{
    self, ActorKind, ActorRecord, ActorStatus, LOCAL_OWNER, LOCAL_OWNER_KEY, Membership, Provisioned, Rights,
    owner_key,
};
use haft_core::catalog::StoreError;
use haft_core::id::{ActorId, GroupId};
use haft_core::limit::CallRate;
use haft_core::name::TenantId;
use haft_core::principal::AllowList;
use haft_core::token::Role;
use sqlx::any::AnyRow;
use sqlx::{Any, Row as _, Transaction};

use crate::access::{Access, groups, tokens};
use crate::accounts::{forget_actor, forget_logins};
use crate::audit;
use crate::engine::{failed_to, is_conflict};
use crate::notification::ChangeSet;
use crate::rows;

const STORE: &str = "store the member";
const REMOVE: &str = "remove the member";
/// The columns that [`actor`] reads.
pub(super) const ACTOR: &str = "actors.id, kind, name, email, description, responsible, status, created_at, \
                                modified_at, last_seen_at";
/// The columns that [`membership`] reads.
pub(super) const MEMBERSHIP: &str = "actor_id, tenant, role, elevated, platform, tools, suspended, user_name, \
                                     external_id, rate_limit, given_name, family_name";

/// Changes of an actor; `None` keeps a field.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ActorChange {
    /// The name.
    pub name: Option<String>,
    /// The e-mail address; `Some(None)` removes it.
    pub email: Option<Option<String>>,
    /// What a service account is for.
    pub description: Option<String>,
    /// The person who is responsible for a service account; `Some(None)` removes it.
    pub responsible: Option<Option<ActorId>>,
    /// The status.
    pub status: Option<ActorStatus>,
    /// The rights in a tenant.
    pub rights: Option<(TenantId, Rights)>,
    /// The groups of a tenant that it is a member of; it leaves the others of that tenant.
    pub groups: Option<(TenantId, Vec<GroupId>)>,
    /// Whether it has no access to a tenant.
    pub suspended: Option<(TenantId, bool)>,
    /// How many calls it may make in a tenant; a rate of `None` removes the limit.
    pub rate_limit: Option<(TenantId, Option<CallRate>)>,
    /// What an identity provider says about it in a tenant.
    pub provisioned: Option<(TenantId, Provisioned)>,
}

/// What was handed over.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HandedOver {
    /// The number of chats.
    pub chats: u64,
    /// The number of service accounts.
    pub service_accounts: u64,
}

impl Access {
    /// Returns all people and service accounts, by id.
    pub async fn actors(&self) -> Result<Vec<ActorRecord>, StoreError> {
        let action = "load the people";
        let sql = format!("SELECT {ACTOR} FROM actors ORDER BY id");
        let query = sqlx::query(sqlx::AssertSqlSafe(sql));
        let found = query.fetch_all(&self.db.engine.pool).await.map_err(failed_to(action))?;
        found.iter().map(actor).collect::<Result<_, _>>().map_err(failed_to(action))
    }

    /// Returns all memberships.
    pub async fn memberships(&self) -> Result<Vec<Membership>, StoreError> {
        let action = "load the memberships";
        let sql = format!("SELECT {MEMBERSHIP} FROM memberships");
        let query = sqlx::query(sqlx::AssertSqlSafe(sql));
        let found = query.fetch_all(&self.db.engine.pool).await.map_err(failed_to(action))?;
        found.iter().map(membership).collect::<Result<_, _>>().map_err(failed_to(action))
    }

    /// Stores an actor with its first membership and its groups.
    pub async fn insert_actor(
        &self,
        actor: ActorRecord,
        membership: Membership,
        groups: Vec<GroupId>,
    ) -> Result<(), StoreError> {
        let this = self.clone();
        let work = async move {
            let mut change = this.db.begin_shared().await.map_err(failed_to(STORE))?;
            let tx = &mut change.tx;
            let sql = "INSERT INTO actors (id, kind, name, email, email_key, description, responsible, status, \
                       created_at, modified_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";
            let query = sqlx::query(sql)
                .bind(actor.id.to_string())
                .bind(actor.kind.as_str())
                .bind(&actor.name)
                .bind(&actor.email)
                .bind(actor.email.as_ref().map(|email| email.to_lowercase()))
                .bind(&actor.description)
                .bind(actor.responsible.map(|id| id.to_string()))
                .bind(actor.status.as_str())
                .bind(actor.created_at.as_microsecond())
                .bind(actor.modified_at.as_microsecond());
            query.execute(&mut **tx).await.map_err(taken)?;
            insert_membership(tx, &membership).await.map_err(taken)?;
            join(tx, actor.id, &groups).await.map_err(failed_to(STORE))?;
            let _lock = change
                .commit(&ChangeSet::access_of(Some(actor.id)), &actor.name)
                .await
                .map_err(failed_to(STORE))?;
            this.signal_change();
            Ok(())
        };
        self.db.complete(work).await
    }

    /// Makes an actor a member of a further tenant.
    pub async fn insert_membership(
        &self,
        membership: Membership,
        groups: Vec<GroupId>,
    ) -> Result<(), StoreError> {
        let this = self.clone();
        let work = async move {
            let mut change = this.db.begin_shared().await.map_err(failed_to(STORE))?;
            insert_membership(&mut change.tx, &membership).await.map_err(taken)?;
            join(&mut change.tx, membership.actor, &groups).await.map_err(failed_to(STORE))?;
            let id = membership.actor.to_string();
            let _lock = change
                .commit(&ChangeSet::access_of(Some(membership.actor)), &id)
                .await
                .map_err(failed_to(STORE))?;
            this.signal_change();
            Ok(())
        };
        self.db.complete(work).await
    }

    /// Adds the person who owns the installation, if it does not exist yet.
    pub async fn ensure_local_owner(&self) -> Result<(), StoreError> {
        let action = "store the local owner";
        let sql = "SELECT 1 FROM memberships WHERE actor_id = $1 AND tenant = $2";
        let tenant = TenantId::default_tenant();
        let query = sqlx::query(sql).bind(LOCAL_OWNER.to_string()).bind(tenant.as_str());
        if query.fetch_optional(&self.db.engine.pool).await.map_err(failed_to(action))?.is_some() {
            return Ok(());
        }
        let this = self.clone();
        let work = async move {
            let now = this.db.now().as_microsecond();
            // Another process may do the same at this moment.
            let sql = "INSERT INTO actors (id, kind, name, description, status, created_at, modified_at) \
                       VALUES ($1, $2, $3, '', $4, $5, $6) ON CONFLICT (id) DO NOTHING";
            let query = sqlx::query(sql)
                .bind(LOCAL_OWNER.to_string())
                .bind(ActorKind::Person.as_str())
                .bind(LOCAL_OWNER_KEY)
                .bind(ActorStatus::Active.as_str())
                .bind(now)
                .bind(now);
            let mut change = this.db.begin_shared().await?;
            query.execute(&mut *change.tx).await?;
            let sql = "INSERT INTO memberships (actor_id, tenant, role, elevated, platform) \
                       VALUES ($1, $2, $3, 1, 1) ON CONFLICT (actor_id, tenant) DO NOTHING";
            let query = sqlx::query(sql)
                .bind(LOCAL_OWNER.to_string())
                .bind(tenant.as_str())
                .bind(Role::Admin.as_str());
            query.execute(&mut *change.tx).await?;
            let _lock = change.commit(&ChangeSet::access_of(Some(LOCAL_OWNER)), LOCAL_OWNER_KEY).await?;
            this.signal_change();
            Ok(())
        };
        self.db.complete_query(action, work).await
    }

    /// Changes an actor. Disabling or suspending it ends its sessions and login links.
    pub async fn update_actor(&self, id: ActorId, update: ActorChange) -> Result<(), StoreError> {
        let this = self.clone();
        let work = async move {
            let now = this.db.now();
            let mut change = this.db.begin_shared().await.map_err(failed_to(STORE))?;
            let tx = &mut change.tx;
            change_actor(tx, id, &update, now).await?;
            if update.status == Some(ActorStatus::Disabled) {
                end_sessions(tx, &format!("{id}@")).await.map_err(failed_to(STORE))?;
                forget_logins(tx, id).await.map_err(failed_to(STORE))?;
            }
            if let Some((tenant, suspended)) = &update.suspended {
                suspend(tx, id, tenant, *suspended).await?;
            }
            if let Some((tenant, provisioned)) = &update.provisioned {
                provision(tx, id, tenant, provisioned).await?;
            }
            if let Some((tenant, rights)) = &update.rights {
                change_rights(tx, id, tenant, rights).await?;
            }
            if let Some((tenant, rate)) = &update.rate_limit {
                change_rate(tx, id, tenant, *rate).await?;
            }
            if let Some((tenant, groups)) = &update.groups {
                leave_groups(tx, id, tenant).await.map_err(failed_to(STORE))?;
                join(tx, id, groups).await.map_err(failed_to(STORE))?;
            }
            let _lock = change
                .commit(&ChangeSet::access_of(Some(id)), &id.to_string())
                .await
                .map_err(failed_to(STORE))?;
            this.signal_change();
            Ok(())
        };
        self.db.complete(work).await
    }

    /// Removes an actor from a tenant, with its tokens, sessions and groups there. One without any tenant is deleted.
    pub async fn delete_membership(&self, id: ActorId, tenant: TenantId) -> Result<(), StoreError> {
        let this = self.clone();
        let work = async move {
            let mut change = this.db.begin_shared().await.map_err(failed_to(REMOVE))?;
            let tx = &mut change.tx;
            let query = sqlx::query("DELETE FROM memberships WHERE actor_id = $1 AND tenant = $2");
            let query = query.bind(id.to_string()).bind(tenant.as_str());
            if query.execute(&mut **tx).await.map_err(failed_to(REMOVE))?.rows_affected() == 0 {
                return Err(StoreError::not_found("member", id));
            }
            remove_traces(tx, id, &tenant).await.map_err(failed_to(REMOVE))?;
            let _lock = change
                .commit(&ChangeSet::access_of(Some(id)), &id.to_string())
                .await
                .map_err(failed_to(REMOVE))?;
            this.signal_change();
            Ok(())
        };
        self.db.complete(work).await
    }

    /// Marks a person as active after the first login.
    pub async fn activate_person(&self, id: ActorId) -> Result<(), StoreError> {
        let this = self.clone();
        let work = async move {
            let mut change = this.db.begin_shared().await.map_err(failed_to(STORE))?;
            let sql = "UPDATE actors SET status = $1 WHERE id = $2 AND status = $3";
            let query = sqlx::query(sql)
                .bind(ActorStatus::Active.as_str())
                .bind(id.to_string())
                .bind(ActorStatus::Invited.as_str());
            let done = query.execute(&mut *change.tx).await.map_err(failed_to(STORE))?;
            if done.rows_affected() == 0 {
                return Ok(());
            }
            let _lock = change
                .commit(&ChangeSet::access_of(Some(id)), &id.to_string())
                .await
                .map_err(failed_to(STORE))?;
            this.signal_change();
            Ok(())
        };
        self.db.complete(work).await
    }

    /// Stores when actors were last seen. Other nodes are not notified.
    pub async fn record_actor_use(&self, uses: Vec<(ActorId, Timestamp)>) -> Result<(), StoreError> {
        let this = self.clone();
        let work = async move {
            for (id, at) in uses {
                let sql = "UPDATE actors SET last_seen_at = $1 \
                           WHERE id = $2 AND (last_seen_at IS NULL OR last_seen_at < $3)";
                let at = at.as_microsecond();
                let query = sqlx::query(sql).bind(at).bind(id.to_string()).bind(at);
                query.execute(&this.db.engine.pool).await?;
            }
            Ok(())
        };
        self.db.complete_query("store when people were last seen", work).await
    }

    /// Gives what an actor owns in a tenant to a person: chats, and the responsibility for service accounts.
    pub async fn hand_over(
        &self,
        tenant: TenantId,
        from: ActorId,
        to: (ActorId, String),
    ) -> Result<HandedOver, StoreError> {
        let this = self.clone();
        let work = async move {
            let mut tx = this.db.engine.begin().await?;
            let (to, name) = to;
            let sql = "UPDATE chats SET owner = $1, owner_name = $2 WHERE tenant = $3 AND owner = $4";
            let query = sqlx::query(sql)
                .bind(owner_key(to).to_string())
                .bind(name)
                .bind(tenant.as_str())
                .bind(owner_key(from).to_string());
            let chats = query.execute(&mut *tx).await?.rows_affected();
            let sql = "UPDATE actors SET responsible = $1 WHERE responsible = $2 \
                       AND id IN (SELECT actor_id FROM memberships WHERE tenant = $3)";
            let query = sqlx::query(sql).bind(to.to_string()).bind(from.to_string()).bind(tenant.as_str());
            let service_accounts = query.execute(&mut *tx).await?.rows_affected();
            audit::store_current_record(&mut tx, "").await?;
            tx.commit().await?;
            Ok(HandedOver { chats, service_accounts })
        };
        self.db.complete_query("hand over", work).await
    }
}

fn taken(error: sqlx::Error) -> StoreError {
    if !is_conflict(&error) {
        return failed_to(STORE)(error);
    }
    // Both engines name the columns or the index.
    let text = error.to_string();
    let message = if text.contains("user_name") {
        "another member has this user name"
    } else if text.contains("external_id") {
        "another member has this external id"
    } else if text.contains("memberships") {
        "already a member of the tenant"
    } else {
        "another person has this e-mail address"
    };
    StoreError::Conflict(message.into())
}

pub(super) async fn insert_membership(
    tx: &mut Transaction<'static, Any>,
    membership: &Membership,
) -> Result<(), sqlx::Error> {
    let sql = "INSERT INTO memberships (actor_id, tenant, role, elevated, platform, tools, suspended, user_name, \
               user_name_key, external_id, given_name, family_name, rate_limit) \
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)";
    let rights = &membership.rights;
    let provisioned = membership.provisioned.as_ref();
    let query = sqlx::query(sql)
        .bind(membership.actor.to_string())
        .bind(membership.tenant.as_str())
        .bind(rights.role.as_str())
        .bind(i64::from(rights.elevated))
        .bind(i64::from(rights.platform))
        .bind(tools_text(&rights.tools))
        .bind(i64::from(membership.is_suspended))
        .bind(provisioned.map(|provisioned| &provisioned.user_name))
        .bind(provisioned.map(|provisioned| provisioned.user_name.to_lowercase()))
        .bind(provisioned.and_then(|provisioned| provisioned.external_id.as_ref()))
        .bind(provisioned.and_then(|provisioned| provisioned.given_name.as_ref()))
        .bind(provisioned.and_then(|provisioned| provisioned.family_name.as_ref()))
        .bind(tokens::rate_text(membership.rate_limit));
    query.execute(&mut **tx).await.map(drop)
}

async fn change_actor(
    tx: &mut Transaction<'static, Any>,
    id: ActorId,
    update: &ActorChange,
    now: Timestamp,
) -> Result<(), StoreError> {
    let sql = "UPDATE actors SET modified_at = $1, name = COALESCE($2, name), \
               description = COALESCE($3, description), status = COALESCE($4, status), \
               email = CASE WHEN $5 = 1 THEN $6 ELSE email END, \
               email_key = CASE WHEN $7 = 1 THEN $8 ELSE email_key END, \
               responsible = CASE WHEN $9 = 1 THEN $10 ELSE responsible END WHERE id = $11";
    let email = update.email.clone().flatten();
    let query = sqlx::query(sql)
        .bind(now.as_microsecond())
        .bind(&update.name)
        .bind(&update.description)
        .bind(update.status.map(ActorStatus::as_str))
        .bind(i64::from(update.email.is_some()))
        .bind(&email)
        .bind(i64::from(update.email.is_some()))
        .bind(email.as_ref().map(|email| email.to_lowercase()))
        .bind(i64::from(update.responsible.is_some()))
        .bind(update.responsible.flatten().map(|id| id.to_string()))
        .bind(id.to_string());
    match query.execute(&mut **tx).await.map_err(taken)?.rows_affected() {
        0 => Err(StoreError::not_found("member", id)),
        _ => Ok(()),
    }
}

async fn change_rights(
    tx: &mut Transaction<'static, Any>,
    id: ActorId,
    tenant: &TenantId,
    rights: &Rights,
) -> Result<(), StoreError> {
    // From now on it exists by hand.
    let sql = "UPDATE memberships SET role = $1, elevated = $2, platform = $3, tools = $4, is_assigned = 0 \
               WHERE actor_id = $5 AND tenant = $6";
    let query = sqlx::query(sql)
        .bind(rights.role.as_str())
        .bind(i64::from(rights.elevated))
        .bind(i64::from(rights.platform))
        .bind(tools_text(&rights.tools))
        .bind(id.to_string())
        .bind(tenant.as_str());
    match query.execute(&mut **tx).await.map_err(failed_to(STORE))?.rows_affected() {
        0 => Err(StoreError::not_found("member", id)),
        _ => Ok(()),
    }
}

async fn change_rate(
    tx: &mut Transaction<'static, Any>,
    id: ActorId,
    tenant: &TenantId,
    rate: Option<CallRate>,
) -> Result<(), StoreError> {
    let sql = "UPDATE memberships SET rate_limit = $1 WHERE actor_id = $2 AND tenant = $3";
    let query = sqlx::query(sql).bind(tokens::rate_text(rate)).bind(id.to_string()).bind(tenant.as_str());
    match query.execute(&mut **tx).await.map_err(failed_to(STORE))?.rows_affected() {
        0 => Err(StoreError::not_found("member", id)),
        _ => Ok(()),
    }
}

/// Takes the access to a tenant from a member, with its sessions and login links there, or gives it back.
async fn suspend(
    tx: &mut Transaction<'static, Any>,
    id: ActorId,
    tenant: &TenantId,
    suspended: bool,
) -> Result<(), StoreError> {
    let sql = "UPDATE memberships SET suspended = $1 WHERE actor_id = $2 AND tenant = $3";
    let query = sqlx::query(sql).bind(i64::from(suspended)).bind(id.to_string()).bind(tenant.as_str());
    if query.execute(&mut **tx).await.map_err(failed_to(STORE))?.rows_affected() == 0 {
        return Err(StoreError::not_found("member", id));
    }
    if suspended {
        let key = actor::login_key(id, tenant);
        for sql in
            ["DELETE FROM sessions WHERE token_hash = $1", "DELETE FROM login_links WHERE token_hash = $1"]
        {
            sqlx::query(sql).bind(&key).execute(&mut **tx).await.map_err(failed_to(STORE))?;
        }
    }
    Ok(())
}

async fn provision(
    tx: &mut Transaction<'static, Any>,
    id: ActorId,
    tenant: &TenantId,
    provisioned: &Provisioned,
) -> Result<(), StoreError> {
    // From now on the rules of an issuer do not remove it.
    let sql = "UPDATE memberships SET user_name = $1, user_name_key = $2, external_id = $3, given_name = $4, \
               family_name = $5, is_assigned = 0 WHERE actor_id = $6 AND tenant = $7";
    let query = sqlx::query(sql)
        .bind(&provisioned.user_name)
        .bind(provisioned.user_name.to_lowercase())
        .bind(&provisioned.external_id)
        .bind(&provisioned.given_name)
        .bind(&provisioned.family_name)
        .bind(id.to_string())
        .bind(tenant.as_str());
    match query.execute(&mut **tx).await.map_err(taken)?.rows_affected() {
        0 => Err(StoreError::not_found("member", id)),
        _ => Ok(()),
    }
}

/// Ends the sessions and login links whose key starts with a text.
async fn end_sessions(tx: &mut Transaction<'static, Any>, start: &str) -> Result<(), sqlx::Error> {
    for sql in
        ["DELETE FROM sessions WHERE token_hash LIKE $1", "DELETE FROM login_links WHERE token_hash LIKE $1"]
    {
        // An id and `@` contain no wildcard.
        sqlx::query(sql).bind(format!("{start}%")).execute(&mut **tx).await?;
    }
    Ok(())
}

async fn join(
    tx: &mut Transaction<'static, Any>,
    id: ActorId,
    joined: &[GroupId],
) -> Result<(), sqlx::Error> {
    for group in joined {
        groups::insert_member(tx, *group, id).await?;
    }
    Ok(())
}

async fn leave_groups(
    tx: &mut Transaction<'static, Any>,
    id: ActorId,
    tenant: &TenantId,
) -> Result<(), sqlx::Error> {
    let sql = "DELETE FROM group_members WHERE actor_id = $1 \
               AND group_id IN (SELECT id FROM actor_groups WHERE tenant = $2)";
    sqlx::query(sql).bind(id.to_string()).bind(tenant.as_str()).execute(&mut **tx).await.map(drop)
}

/// Removes what a former member of a tenant has there, and the member itself if it is in no other tenant.
async fn remove_traces(
    tx: &mut Transaction<'static, Any>,
    id: ActorId,
    tenant: &TenantId,
) -> Result<(), sqlx::Error> {
    end_access(tx, id, tenant).await?;
    let text = id.to_string();
    let sql = "DELETE FROM actors WHERE id = $1 \
               AND NOT EXISTS (SELECT 1 FROM memberships WHERE memberships.actor_id = actors.id)";
    let deleted = sqlx::query(sql).bind(&text).execute(&mut **tx).await?.rows_affected();
    if deleted > 0 {
        forget_logins(tx, id).await?;
        let sql = "UPDATE actors SET responsible = NULL WHERE responsible = $1";
        sqlx::query(sql).bind(&text).execute(&mut **tx).await?;
    }
    Ok(())
}

/// Removes the groups, tokens and sessions that a former member of a tenant has there.
pub(super) async fn end_access(
    tx: &mut Transaction<'static, Any>,
    id: ActorId,
    tenant: &TenantId,
) -> Result<(), sqlx::Error> {
    let text = id.to_string();
    leave_groups(tx, id, tenant).await?;
    forget_actor(tx, id, tenant).await?;
    let sql = "DELETE FROM assigned_groups WHERE actor_id = $1 \
               AND group_id IN (SELECT id FROM actor_groups WHERE tenant = $2)";
    sqlx::query(sql).bind(&text).bind(tenant.as_str()).execute(&mut **tx).await?;
    let sql = "DELETE FROM assigned_rights WHERE actor_id = $1 AND tenant = $2";
    sqlx::query(sql).bind(&text).bind(tenant.as_str()).execute(&mut **tx).await?;
    let key = actor::login_key(id, tenant);
    let own = "SELECT hash FROM tokens WHERE actor_id = $2 AND tenant = $3";
    for table in ["sessions", "login_links"] {
        let sql = format!("DELETE FROM {table} WHERE token_hash = $1 OR token_hash IN ({own})");
        let query = sqlx::query(sqlx::AssertSqlSafe(sql)).bind(&key).bind(&text).bind(tenant.as_str());
        query.execute(&mut **tx).await?;
    }
    let sql = "DELETE FROM tokens WHERE actor_id = $1 AND tenant = $2";
    sqlx::query(sql).bind(&text).bind(tenant.as_str()).execute(&mut **tx).await.map(drop)
}

/// Writes an allow-list; `None` allows everything.
pub(super) fn tools_text(tools: &AllowList) -> Option<String> {
    tools.rules().map(|rules| serde_json::Value::from(rules).to_string())
}

/// Reads the rights of a membership or a group.
pub(super) fn rights(row: &AnyRow) -> Result<Rights, sqlx::Error> {
    let role: &str = row.try_get("role")?;
    Ok(Rights {
        // An unknown role of a newer version is read as the least privileged one.
        role: Role::parse(role).unwrap_or(Role::Viewer),
        elevated: rows::boolean(row, "elevated")?,
        platform: rows::boolean(row, "platform")?,
        tools: rows::optional_json_column::<AllowList>(row, "tools")?.unwrap_or_default(),
    })
}

pub(super) fn membership(row: &AnyRow) -> Result<Membership, sqlx::Error> {
    Ok(Membership {
        actor: rows::parse_column(row, "actor_id")?,
        tenant: rows::parse_column(row, "tenant")?,
        rights: rights(row)?,
        is_suspended: rows::boolean(row, "suspended")?,
        rate_limit: tokens::rate_limit(row)?,
        provisioned: match row.try_get::<Option<String>, _>("user_name")? {
            Some(user_name) => Some(Provisioned {
                user_name,
                external_id: row.try_get("external_id")?,
                given_name: row.try_get("given_name")?,
                family_name: row.try_get("family_name")?,
            }),
            None => None,
        },
    })
}

pub(super) fn actor(row: &AnyRow) -> Result<ActorRecord, sqlx::Error> {
    Ok(ActorRecord {
        id: rows::parse_column(row, "id")?,
        // A kind of a newer version never logs in.
        kind: ActorKind::parse(row.try_get("kind")?).unwrap_or(ActorKind::ServiceAccount),
        name: row.try_get("name")?,
        email: row.try_get("email")?,
        description: row.try_get("description")?,
        responsible: rows::optional_parse_column(row, "responsible")?,
        // A status of a newer version gives no access.
        status: ActorStatus::parse(row.try_get("status")?).unwrap_or(ActorStatus::Disabled),
        created_at: rows::timestamp(row, "created_at")?,
        modified_at: rows::timestamp(row, "modified_at")?,
        last_seen_at: rows::optional_timestamp(row, "last_seen_at")?,
    })
}
