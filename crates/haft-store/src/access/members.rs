//! Looking up members of a tenant, without reading the others.

use std::collections::{BTreeMap, BTreeSet};

use haft_core::actor::{ActorKind, ActorRecord, AssignedRights, GroupRecord, Membership};
use haft_core::catalog::StoreError;
use haft_core::id::{ActorId, GroupId};
use haft_core::name::TenantId;
use haft_core::token::TokenRecord;
use sqlx::any::AnyRow;
use sqlx::{AssertSqlSafe, Row as _};

use crate::access::Access;
use crate::access::actors::{ACTOR, MEMBERSHIP, actor, membership};
use crate::access::groups::{GROUP, group};
use crate::access::sign_on::{ASSIGNED, assigned};
use crate::access::tokens;
use crate::engine::failed_to;
use crate::rows;

const LOAD: &str = "load the members";
/// The most members that one query looks up.
const CHUNK: usize = 500;

/// What identifies a member of a tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MemberKey<'a> {
    /// The id.
    Id(ActorId),
    /// The e-mail address. The case does not count.
    Email(&'a str),
    /// The user name of an identity provider; the e-mail address of those who have none. The case does not count.
    UserName(&'a str),
    /// The id that an identity provider has for it.
    ExternalId(&'a str),
}

/// Some people and service accounts, with what decides their rights.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MemberRecords {
    /// The people and service accounts, and the people who are responsible for them.
    pub actors: Vec<ActorRecord>,
    /// Their memberships of all tenants.
    pub memberships: Vec<Membership>,
    /// What the rules of issuers assign to them in all tenants.
    pub assigned: Vec<AssignedRights>,
    /// Their groups in all tenants, without other members.
    pub groups: Vec<GroupRecord>,
    /// Their tokens in all tenants.
    pub tokens: Vec<TokenRecord>,
}

impl Access {
    /// Finds a member of a tenant.
    pub async fn member_id(
        &self,
        tenant: &TenantId,
        key: MemberKey<'_>,
    ) -> Result<Option<ActorId>, StoreError> {
        let of_email = "SELECT actor_id FROM actors JOIN memberships ON actor_id = actors.id \
                        WHERE email_key = $1 AND tenant = $2";
        let found = match key {
            MemberKey::Id(id) => {
                let sql = "SELECT actor_id FROM memberships WHERE actor_id = $1 AND tenant = $2";
                self.rows(sql.to_owned(), &[&id.to_string(), tenant.as_str()]).await?
            }
            MemberKey::Email(email) => {
                self.rows(of_email.to_owned(), &[&email.to_lowercase(), tenant.as_str()]).await?
            }
            MemberKey::ExternalId(id) => {
                let sql = "SELECT actor_id FROM memberships WHERE external_id = $1 AND tenant = $2";
                self.rows(sql.to_owned(), &[id, tenant.as_str()]).await?
            }
            MemberKey::UserName(name) => {
                let sql = format!(
                    "SELECT actor_id FROM memberships WHERE user_name_key = $1 AND tenant = $2 \
                     UNION ALL {of_email} AND user_name IS NULL"
                );
                self.rows(sql, &[&name.to_lowercase(), tenant.as_str()]).await?
            }
        };
        found.first().map(|row| rows::parse_column(row, "actor_id")).transpose().map_err(failed_to(LOAD))
    }

    /// Returns some of the members of a tenant with a name.
    pub async fn members_named(
        &self,
        tenant: &TenantId,
        kind: ActorKind,
        name: &str,
    ) -> Result<Vec<ActorId>, StoreError> {
        let sql = "SELECT actor_id FROM actors JOIN memberships ON actor_id = actors.id \
                   WHERE tenant = $1 AND kind = $2 AND name = $3 ORDER BY actor_id LIMIT 10";
        let found = self.rows(sql.to_owned(), &[tenant.as_str(), kind.as_str(), name]).await?;
        read(&found, |row| rows::parse_column(row, "actor_id"))
    }

    /// Returns the number of members of a tenant.
    pub async fn member_count(&self, tenant: &TenantId) -> Result<usize, StoreError> {
        self.count("SELECT COUNT(*) AS number FROM memberships WHERE tenant = $1", tenant).await
    }

    /// Returns the number of groups of a tenant.
    pub async fn group_count(&self, tenant: &TenantId) -> Result<usize, StoreError> {
        self.count("SELECT COUNT(*) AS number FROM actor_groups WHERE tenant = $1", tenant).await
    }

    async fn count(&self, sql: &str, tenant: &TenantId) -> Result<usize, StoreError> {
        let found = self.rows(sql.to_owned(), &[tenant.as_str()]).await?;
        let number = found.first().map(|row| row.try_get::<i64, _>("number"));
        let number = number.transpose().map_err(failed_to(LOAD))?.unwrap_or_default();
        Ok(usize::try_from(number).unwrap_or(usize::MAX))
    }

    /// Returns the person with an e-mail address, in whatever tenant.
    pub async fn person_with_email(&self, email: &str) -> Result<Option<ActorId>, StoreError> {
        let sql = "SELECT id FROM actors WHERE email_key = $1";
        let found = self.rows(sql.to_owned(), &[&email.to_lowercase()]).await?;
        found.first().map(|row| rows::parse_column(row, "id")).transpose().map_err(failed_to(LOAD))
    }

    /// Finds a group of a tenant by its id or name, without its members.
    pub async fn find_group(
        &self,
        tenant: &TenantId,
        reference: &str,
    ) -> Result<Option<GroupRecord>, StoreError> {
        let sql = format!("SELECT {GROUP} FROM actor_groups WHERE tenant = $1 AND (name = $2 OR id = $2)");
        let found = self.rows(sql, &[tenant.as_str(), reference]).await?;
        found.first().map(group).transpose().map_err(failed_to(LOAD))
    }

    /// Returns the members of a group, also those that issuers have assigned.
    pub async fn group_members(&self, id: GroupId) -> Result<Vec<ActorRecord>, StoreError> {
        let sql = format!(
            "SELECT {ACTOR} FROM actors WHERE id IN (SELECT actor_id FROM group_members WHERE group_id = $1 \
             UNION SELECT actor_id FROM assigned_groups WHERE group_id = $1)"
        );
        let found = self.rows(sql, &[&id.to_string()]).await?;
        read(&found, actor)
    }

    /// Returns people and service accounts by id; those that do not exist are left out.
    pub async fn actors_by_id(
        &self,
        ids: impl IntoIterator<Item = ActorId>,
    ) -> Result<Vec<ActorRecord>, StoreError> {
        let ids: BTreeSet<String> = ids.into_iter().map(|id| id.to_string()).collect();
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        let mut found = Vec::new();
        for ids in ids.chunks(CHUNK) {
            let rows =
                self.rows(format!("SELECT {ACTOR} FROM actors WHERE id IN ({})", list(ids)), ids).await?;
            found.extend(read(&rows, actor)?);
        }
        Ok(found)
    }

    /// Returns what decides the rights of people and service accounts.
    pub async fn member_records(&self, ids: &[ActorId]) -> Result<MemberRecords, StoreError> {
        let mut records =
            MemberRecords { actors: self.actors_by_id(ids.iter().copied()).await?, ..<_>::default() };
        let responsible: Vec<ActorId> = records.actors.iter().filter_map(|actor| actor.responsible).collect();
        let responsible = responsible.into_iter().filter(|id| !ids.contains(id));
        records.actors.extend(self.actors_by_id(responsible).await?);
        let texts: Vec<String> = ids.iter().map(ToString::to_string).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        for ids in texts.chunks(CHUNK) {
            self.add_records(&mut records, ids).await?;
        }
        Ok(records)
    }

    async fn add_records(&self, records: &mut MemberRecords, ids: &[&str]) -> Result<(), StoreError> {
        let list = list(ids);
        let of_actors = |columns: &str, table: &str| {
            self.rows(format!("SELECT {columns} FROM {table} WHERE actor_id IN ({list})"), ids)
        };
        let memberships = of_actors(MEMBERSHIP, "memberships").await?;
        let rights = of_actors(ASSIGNED, "assigned_rights").await?;
        let tokens = of_actors(tokens::COLUMNS, "tokens").await?;
        let pairs = format!(
            "SELECT group_id, actor_id FROM group_members WHERE actor_id IN ({list}) \
             UNION SELECT group_id, actor_id FROM assigned_groups WHERE actor_id IN ({list}) ORDER BY actor_id"
        );
        let pairs = self.rows(pairs, ids).await?;
        records.memberships.extend(read(&memberships, membership)?);
        records.assigned.extend(read(&rights, assigned)?);
        records.tokens.extend(read(&tokens, tokens::token)?);
        let pair =
            |row: &AnyRow| Ok((rows::parse_column(row, "group_id")?, rows::parse_column(row, "actor_id")?));
        let mut members: BTreeMap<GroupId, Vec<ActorId>> = BTreeMap::new();
        for (group, member) in read(&pairs, pair)? {
            members.entry(group).or_default().push(member);
        }
        for (id, members) in members {
            if let Some(known) = records.groups.iter_mut().find(|group| group.id == id) {
                known.members.extend(members);
                continue;
            }
            let sql = format!("SELECT {GROUP} FROM actor_groups WHERE id = $1");
            let found = self.rows(sql, &[&id.to_string()]).await?;
            if let Some(found) = found.first().map(group).transpose().map_err(failed_to(LOAD))? {
                records.groups.push(GroupRecord { members, ..found });
            }
        }
        Ok(())
    }

    async fn rows(&self, sql: String, values: &[&str]) -> Result<Vec<AnyRow>, StoreError> {
        let mut query = sqlx::query(AssertSqlSafe(sql));
        for value in values {
            query = query.bind((*value).to_owned());
        }
        query.fetch_all(&self.db.engine.pool).await.map_err(failed_to(LOAD))
    }
}

fn read<T>(
    rows: &[AnyRow],
    convert: impl Fn(&AnyRow) -> Result<T, sqlx::Error>,
) -> Result<Vec<T>, StoreError> {
    rows.iter().map(convert).collect::<Result<_, _>>().map_err(failed_to(LOAD))
}

/// Returns the parameters of a list of values.
fn list(values: &[&str]) -> String {
    let numbers: Vec<String> = (1..=values.len()).map(|number| format!("${number}")).collect();
    numbers.join(", ")
}
