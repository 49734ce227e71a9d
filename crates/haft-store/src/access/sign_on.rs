//! Logins at issuers of OpenID Connect: those that wait for an answer, whose subject is which person, and what the rules
//! of an issuer assign.

use haft_core::actor::{ActorKind, ActorStatus, AssignedRights, Membership, Rights};
use haft_core::catalog::StoreError;
use haft_core::id::{ActorId, GroupId};
use haft_core::login::SignOnLoginRecord;
use haft_core::name::TenantId;
use haft_core::principal::AllowList;
use haft_core::token::Role;
use sqlx::any::AnyRow;
use sqlx::{Any, AssertSqlSafe, Row as _, Transaction};

use crate::access::device_logins::DeviceLoginLimits;
use crate::access::{Access, actors};
use crate::accounts::forget_logins;
use crate::engine::{failed_to, is_conflict};
use crate::notification::ChangeSet;
use crate::rows;

/// The columns that [`assigned`] reads.
pub(super) const ASSIGNED: &str = "actor_id, tenant, role, elevated, 0 AS platform, tools";

const START: &str = "store the login";
const TAKE: &str = "use the login";
const END: &str = "end the sessions";
const SIGN_ON: &str = "store the person who logged in";

/// Whether a login was stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignOnLoginStart {
    /// It was stored.
    Stored,
    /// Its address has started as many as it may.
    TooManyOfAddress,
    /// There are as many as there may be.
    TooMany,
}

/// A login at an issuer that has succeeded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignOnLogin {
    /// The issuer.
    pub issuer: String,
    /// Its name of the person.
    pub subject: String,
    /// The e-mail address by which a person may be found who has no identity of the issuer.
    pub link_email: Option<String>,
    /// The person to create if there is none.
    pub new: SignOnPerson,
    /// What the rules assign. What they assigned before and do not assign now is removed.
    pub assignments: Vec<SignOnAssignment>,
}

/// A person to create.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignOnPerson {
    /// The id.
    pub id: ActorId,
    /// The name.
    pub name: String,
    /// The e-mail address, which is left out if somebody has it.
    pub email: Option<String>,
}

/// What the rules of an issuer assign in a tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignOnAssignment {
    /// The tenant.
    pub tenant: TenantId,
    /// The rights; never `platform`.
    pub rights: Rights,
    /// Groups of the tenant.
    pub groups: Vec<GroupId>,
}

/// Who logged in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SignOnResult {
    /// A person who is a member of a tenant.
    Person {
        /// The person.
        id: ActorId,
        /// Whether the identity is new.
        is_new_identity: bool,
    },
    /// The person is disabled.
    Disabled,
    /// Neither a rule nor an invitation makes the person a member of a tenant.
    NothingAssigned,
}

impl Access {
    /// Stores a login that waits for the answer of its issuer, unless there are too many.
    pub async fn insert_sign_on_login(
        &self,
        login: SignOnLoginRecord,
        limits: DeviceLoginLimits,
    ) -> Result<SignOnLoginStart, StoreError> {
        let this = self.clone();
        let work = async move {
            let now = this.db.now().as_microsecond();
            let mut tx = this.db.engine.begin().await?;
            let of_address = "SELECT COUNT(*) FROM sign_on_logins WHERE expires_at > $1 AND address = $2";
            let query = sqlx::query(of_address).bind(now).bind(&login.address);
            let of_address: i64 = query.fetch_one(&mut *tx).await?.try_get(0)?;
            if of_address >= i64::from(limits.per_address) {
                return Ok(SignOnLoginStart::TooManyOfAddress);
            }
            let query = sqlx::query("SELECT COUNT(*) FROM sign_on_logins WHERE expires_at > $1").bind(now);
            let total: i64 = query.fetch_one(&mut *tx).await?.try_get(0)?;
            if total >= i64::from(limits.total) {
                return Ok(SignOnLoginStart::TooMany);
            }
            sqlx::query(
                "INSERT INTO sign_on_logins (hash, issuer, browser_hash, next, tenant, address, created_at, \
                 expires_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
            )
            .bind(&login.hash)
            .bind(&login.issuer)
            .bind(&login.browser_hash)
            .bind(&login.next)
            .bind(login.tenant.as_ref().map(TenantId::as_str))
            .bind(&login.address)
            .bind(login.created_at.as_microsecond())
            .bind(login.expires_at.as_microsecond())
            .execute(&mut *tx)
            .await?;
            tx.commit().await?;
            Ok(SignOnLoginStart::Stored)
        };
        self.db.complete_query(START, work).await
    }

    /// Uses up a login of a browser; `None` if there is none, or it has expired. Only one of several requests gets it, and
    /// that of another browser does not use it up.
    pub async fn take_sign_on_login(
        &self,
        hash: &str,
        browser_hash: &str,
    ) -> Result<Option<SignOnLoginRecord>, StoreError> {
        let sql = "DELETE FROM sign_on_logins WHERE hash = $1 AND browser_hash = $2 \
                   RETURNING hash, issuer, browser_hash, next, tenant, address, created_at, expires_at";
        let query = sqlx::query(sql).bind(hash).bind(browser_hash);
        let found = query.fetch_optional(&self.db.engine.pool).await.map_err(failed_to(TAKE))?;
        let login = found.as_ref().map(sign_on_login).transpose().map_err(failed_to(TAKE))?;
        Ok(login.filter(|login| self.db.now() < login.expires_at))
    }

    /// Returns what the rules of issuers have assigned.
    pub async fn assigned_rights(&self) -> Result<Vec<AssignedRights>, StoreError> {
        let action = "load the assigned rights";
        let sql = format!("SELECT {ASSIGNED} FROM assigned_rights");
        let found = sqlx::query(AssertSqlSafe(sql))
            .fetch_all(&self.db.engine.pool)
            .await
            .map_err(failed_to(action))?;
        found.iter().map(assigned).collect::<Result<_, _>>().map_err(failed_to(action))
    }

    /// Returns the person that a subject of an issuer is.
    pub async fn find_identity(&self, issuer: &str, subject: &str) -> Result<Option<ActorId>, StoreError> {
        let action = "find the identity";
        let sql = "SELECT actor_id FROM identities WHERE issuer = $1 AND subject = $2";
        let query = sqlx::query(sql).bind(issuer).bind(subject);
        let found = query.fetch_optional(&self.db.engine.pool).await.map_err(failed_to(action))?;
        found.map(|row| rows::parse_column(&row, "actor_id")).transpose().map_err(failed_to(action))
    }

    /// Returns whether a person has an identity of an issuer.
    pub async fn has_identity(&self, issuer: &str, id: ActorId) -> Result<bool, StoreError> {
        let action = "find the identity";
        let sql = "SELECT 1 FROM identities WHERE actor_id = $1 AND issuer = $2";
        let query = sqlx::query(sql).bind(id.to_string()).bind(issuer);
        let found = query.fetch_optional(&self.db.engine.pool).await.map_err(failed_to(action))?;
        Ok(found.is_some())
    }

    /// Ends the sessions of a person in browsers, and its logins at issuers; returns how many sessions there were.
    pub async fn end_person_sessions(&self, id: ActorId) -> Result<u64, StoreError> {
        let this = self.clone();
        let work = async move {
            let mut change = this.db.begin_shared().await.map_err(failed_to(END))?;
            // An id and `@` contain no wildcard.
            let query = sqlx::query("DELETE FROM sessions WHERE token_hash LIKE $1").bind(format!("{id}@%"));
            let ended = query.execute(&mut *change.tx).await.map_err(failed_to(END))?.rows_affected();
            forget_logins(&mut change.tx, id).await.map_err(failed_to(END))?;
            let _lock = change
                .commit(&ChangeSet::access_of(Some(id)), &id.to_string())
                .await
                .map_err(failed_to(END))?;
            this.signal_change();
            Ok(ended)
        };
        self.db.complete(work).await
    }

    /// Ends the sessions that an issuer names; returns whose they were. `unnamed` are those of a person at the issuer
    /// whose logins have no name.
    pub async fn end_issuer_sessions(
        &self,
        named: String,
        unnamed: Option<(ActorId, String)>,
    ) -> Result<Vec<ActorId>, StoreError> {
        let this = self.clone();
        let work = async move {
            let mut change = this.db.begin_shared().await.map_err(failed_to(END))?;
            let (person, unnamed) =
                unnamed.map_or_else(Default::default, |(id, unnamed)| (format!("{id}@%"), unnamed));
            let sql = "DELETE FROM sessions WHERE issuer_session = $1 \
                       OR (issuer_session = $2 AND token_hash LIKE $3) RETURNING token_hash";
            let query = sqlx::query(sql).bind(&named).bind(&unnamed).bind(&person);
            let rows = query.fetch_all(&mut *change.tx).await.map_err(failed_to(END))?;
            let _lock = change.commit(&ChangeSet::tokens(), "").await.map_err(failed_to(END))?;
            this.signal_change();
            let mut people: Vec<ActorId> = Vec::new();
            for row in &rows {
                let key: &str = row.try_get(0).map_err(failed_to(END))?;
                people.extend(key.split_once('@').and_then(|(id, _)| id.parse::<ActorId>().ok()));
            }
            people.sort_by_key(|id| id.0);
            people.dedup();
            Ok(people)
        };
        self.db.complete(work).await
    }

    /// Finds or creates the person of a login, and replaces what the rules of the issuer have assigned.
    pub async fn sign_on(&self, login: SignOnLogin) -> Result<SignOnResult, StoreError> {
        let this = self.clone();
        let work = async move {
            // Of two first logins of a subject, the second one finds what the first one has stored.
            match this.try_sign_on(&login).await {
                Err(error) if is_conflict(&error) => this.try_sign_on(&login).await,
                done => done,
            }
            .map_err(failed_to(SIGN_ON))
        };
        self.db.complete(work).await
    }

    async fn try_sign_on(&self, login: &SignOnLogin) -> Result<SignOnResult, sqlx::Error> {
        let now = self.db.now().as_microsecond();
        let mut change = self.db.begin_shared().await?;
        let tx = &mut change.tx;
        let known = identified(tx, &login.issuer, &login.subject).await?;
        let is_new_identity = known.is_none();
        let id = match known {
            Some((_, ActorStatus::Disabled)) => return Ok(SignOnResult::Disabled),
            Some((id, ActorStatus::Active | ActorStatus::Invited)) => {
                let sql = "UPDATE identities SET last_login_at = $1 WHERE issuer = $2 AND subject = $3";
                let query = sqlx::query(sql).bind(now).bind(&login.issuer).bind(&login.subject);
                query.execute(&mut **tx).await?;
                id
            }
            None => {
                let linked = linkable(tx, login).await?;
                let id = match linked {
                    Some(id) => id,
                    None if login.assignments.is_empty() => return Ok(SignOnResult::NothingAssigned),
                    None => {
                        insert_person(tx, &login.new, now).await?;
                        login.new.id
                    }
                };
                insert_identity(tx, login, id, now).await?;
                id
            }
        };
        assign(tx, id, login).await?;
        let sql = "SELECT 1 FROM memberships WHERE actor_id = $1 LIMIT 1";
        let is_member = sqlx::query(sql).bind(id.to_string()).fetch_optional(&mut **tx).await?.is_some();
        let _lock = change.commit(&ChangeSet::access_of(Some(id)), &id.to_string()).await?;
        self.signal_change();
        Ok(if is_member {
            SignOnResult::Person { id, is_new_identity }
        } else {
            SignOnResult::NothingAssigned
        })
    }
}

/// Returns the person that a subject of an issuer is.
async fn identified(
    tx: &mut Transaction<'static, Any>,
    issuer: &str,
    subject: &str,
) -> Result<Option<(ActorId, ActorStatus)>, sqlx::Error> {
    let sql = "SELECT a.id AS id, a.status AS status FROM identities i JOIN actors a ON a.id = i.actor_id \
               WHERE i.issuer = $1 AND i.subject = $2";
    let found = sqlx::query(sql).bind(issuer).bind(subject).fetch_optional(&mut **tx).await?;
    found
        .map(|row| {
            // A status of a newer version gives no access.
            let status = ActorStatus::parse(row.try_get("status")?).unwrap_or(ActorStatus::Disabled);
            Ok((rows::parse_column(&row, "id")?, status))
        })
        .transpose()
}

/// Returns the person with the verified e-mail address of a login, if it may become that person's: the person may act, and
/// has no identity of the issuer.
async fn linkable(
    tx: &mut Transaction<'static, Any>,
    login: &SignOnLogin,
) -> Result<Option<ActorId>, sqlx::Error> {
    let Some(email) = &login.link_email else { return Ok(None) };
    let sql = "SELECT id FROM actors WHERE email_key = $1 AND kind = $2 AND status <> $3 AND NOT EXISTS \
               (SELECT 1 FROM identities WHERE identities.actor_id = actors.id AND identities.issuer = $4)";
    let query = sqlx::query(sql)
        .bind(email.to_lowercase())
        .bind(ActorKind::Person.as_str())
        .bind(ActorStatus::Disabled.as_str())
        .bind(&login.issuer);
    let found = query.fetch_optional(&mut **tx).await?;
    found.map(|row| rows::parse_column(&row, "id")).transpose()
}

/// Stores a person; without the e-mail address if somebody has it.
async fn insert_person(
    tx: &mut Transaction<'static, Any>,
    person: &SignOnPerson,
    now: i64,
) -> Result<(), sqlx::Error> {
    let key = person.email.as_ref().map(|email| email.to_lowercase());
    let taken = sqlx::query("SELECT 1 FROM actors WHERE email_key = $1").bind(&key);
    let is_free = taken.fetch_optional(&mut **tx).await?.is_none();
    let sql = "INSERT INTO actors (id, kind, name, email, email_key, description, status, created_at, modified_at) \
               VALUES ($1, $2, $3, $4, $5, '', $6, $7, $8)";
    let query = sqlx::query(sql)
        .bind(person.id.to_string())
        .bind(ActorKind::Person.as_str())
        .bind(&person.name)
        .bind(person.email.as_ref().filter(|_| is_free))
        .bind(key.filter(|_| is_free))
        .bind(ActorStatus::Active.as_str())
        .bind(now)
        .bind(now);
    query.execute(&mut **tx).await.map(drop)
}

async fn insert_identity(
    tx: &mut Transaction<'static, Any>,
    login: &SignOnLogin,
    id: ActorId,
    now: i64,
) -> Result<(), sqlx::Error> {
    let sql = "INSERT INTO identities (issuer, subject, actor_id, created_at, last_login_at) \
               VALUES ($1, $2, $3, $4, $5)";
    let query =
        sqlx::query(sql).bind(&login.issuer).bind(&login.subject).bind(id.to_string()).bind(now).bind(now);
    query.execute(&mut **tx).await.map(drop)
}

/// Replaces what the rules of an issuer have assigned to a person.
async fn assign(
    tx: &mut Transaction<'static, Any>,
    id: ActorId,
    login: &SignOnLogin,
) -> Result<(), sqlx::Error> {
    let actor = id.to_string();
    for sql in [
        "DELETE FROM assigned_groups WHERE actor_id = $1 AND issuer = $2",
        "DELETE FROM assigned_rights WHERE actor_id = $1 AND issuer = $2",
    ] {
        sqlx::query(sql).bind(&actor).bind(&login.issuer).execute(&mut **tx).await?;
    }
    for SignOnAssignment { tenant, rights, groups } in &login.assignments {
        let sql = "SELECT 1 FROM memberships WHERE actor_id = $1 AND tenant = $2";
        let query = sqlx::query(sql).bind(&actor).bind(tenant.as_str());
        if query.fetch_optional(&mut **tx).await?.is_none() {
            insert_assigned_membership(tx, id, tenant).await?;
        }
        let sql = "INSERT INTO assigned_rights (actor_id, tenant, issuer, role, elevated, tools) \
                   VALUES ($1, $2, $3, $4, $5, $6)";
        let query = sqlx::query(sql)
            .bind(&actor)
            .bind(tenant.as_str())
            .bind(&login.issuer)
            .bind(rights.role.as_str())
            .bind(i64::from(rights.elevated))
            .bind(actors::tools_text(&rights.tools));
        query.execute(&mut **tx).await?;
        for group in groups {
            let sql = "INSERT INTO assigned_groups (group_id, actor_id, issuer) VALUES ($1, $2, $3)";
            let query = sqlx::query(sql).bind(group.to_string()).bind(&actor).bind(&login.issuer);
            query.execute(&mut **tx).await?;
        }
    }
    let sql = "SELECT tenant FROM memberships m WHERE actor_id = $1 AND is_assigned = 1 AND NOT EXISTS \
               (SELECT 1 FROM assigned_rights r WHERE r.actor_id = m.actor_id AND r.tenant = m.tenant)";
    for row in sqlx::query(sql).bind(&actor).fetch_all(&mut **tx).await? {
        let tenant: TenantId = rows::parse_column(&row, "tenant")?;
        let query = sqlx::query("DELETE FROM memberships WHERE actor_id = $1 AND tenant = $2");
        query.bind(&actor).bind(tenant.as_str()).execute(&mut **tx).await?;
        actors::end_access(tx, id, &tenant).await?;
    }
    Ok(())
}

/// Makes a person a member who has nothing but what rules and groups give.
async fn insert_assigned_membership(
    tx: &mut Transaction<'static, Any>,
    actor: ActorId,
    tenant: &TenantId,
) -> Result<(), sqlx::Error> {
    let rights = Rights { role: Role::Viewer, elevated: false, platform: false, tools: AllowList::of_none() };
    let membership = Membership {
        actor,
        tenant: tenant.clone(),
        rights,
        is_suspended: false,
        rate_limit: None,
        provisioned: None,
    };
    actors::insert_membership(tx, &membership).await?;
    let query = sqlx::query("UPDATE memberships SET is_assigned = 1 WHERE actor_id = $1 AND tenant = $2");
    query.bind(actor.to_string()).bind(tenant.as_str()).execute(&mut **tx).await.map(drop)
}

fn sign_on_login(row: &AnyRow) -> Result<SignOnLoginRecord, sqlx::Error> {
    Ok(SignOnLoginRecord {
        hash: row.try_get("hash")?,
        issuer: row.try_get("issuer")?,
        browser_hash: row.try_get("browser_hash")?,
        next: row.try_get("next")?,
        tenant: rows::optional_parse_column(row, "tenant")?,
        address: row.try_get("address")?,
        created_at: rows::timestamp(row, "created_at")?,
        expires_at: rows::timestamp(row, "expires_at")?,
    })
}

pub(super) fn assigned(row: &AnyRow) -> Result<AssignedRights, sqlx::Error> {
    Ok(AssignedRights {
        actor: rows::parse_column(row, "actor_id")?,
        tenant: rows::parse_column(row, "tenant")?,
        rights: actors::rights(row)?,
    })
}
