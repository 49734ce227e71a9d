//! Groups. Their rights are those that an admin of haft gives them: a new group has none.

use std::collections::HashSet;

use haft_core::actor::ActorRecord;
use haft_core::id::ActorId;
use haft_scim::{GROUP_SCHEMA, GroupFields, ResourceType, ScimError, ScimType};
use serde_json::{Value, json};

use super::error::ScimFailure;
use super::provider::{Object, Scim, actor_id, group_id};
use super::users::is_user;
use crate::error::ServiceError;
use crate::people::{self, GroupUpdate, GroupWithMembers, load_group};
use crate::rights::check_rights;

impl Scim<'_> {
    /// Finds a group by id.
    pub(super) async fn group(&self, id: &str) -> Result<GroupWithMembers, ScimFailure> {
        let found = match group_id(id) {
            Some(id) => load_group(self.app, &self.identity.tenant, id).await?,
            None => None,
        };
        found.ok_or_else(|| ServiceError::not_found("group", id).into())
    }

    /// Creates a group without rights.
    pub(super) async fn create_group(&self, body: &Object) -> Result<Object, ScimFailure> {
        let group = GroupFields::read(body)?;
        let members = self.check_members(group.members.unwrap_or_default()).await?;
        let fields = people::GroupFields {
            name: group.display_name,
            members: members.iter().map(ToString::to_string).collect(),
            provisioned: Some(group.external_id),
            ..people::GroupFields::default()
        };
        let group = people::create_group(self.app, self.identity, fields).await?;
        Ok(self.group_json(&group))
    }

    /// Gives a group the attributes of a body. Without `members`, these stay.
    pub(super) async fn change_group(
        &self,
        before: &GroupWithMembers,
        body: &Object,
    ) -> Result<Object, ScimFailure> {
        let fields = GroupFields::read(body)?;
        // Service accounts are no users, so they stay, too.
        let users: HashSet<ActorId> = users(before).map(|actor| actor.id).collect();
        let wanted = match &fields.members {
            Some(members) => {
                let known = |id: &String| actor_id(id).is_some_and(|id| users.contains(&id));
                let new = members.iter().filter(|id| !known(id)).cloned().collect();
                let mut wanted = self.check_members(new).await?;
                wanted.extend(members.iter().filter_map(|id| actor_id(id)));
                wanted
            }
            None => users.clone(),
        };
        let group = &before.group;
        let texts = |ids: Vec<&ActorId>| ids.into_iter().map(ToString::to_string).collect::<Vec<String>>();
        let update = GroupUpdate {
            name: (fields.display_name != group.name).then_some(fields.display_name),
            add_members: texts(wanted.difference(&users).collect()),
            remove_members: texts(users.difference(&wanted).collect()),
            provisioned: (!group.is_provisioned || fields.external_id != group.external_id)
                .then_some(fields.external_id),
            ..GroupUpdate::default()
        };
        let is_empty = update.name.is_none()
            && update.add_members.is_empty()
            && update.remove_members.is_empty()
            && update.provisioned.is_none();
        if is_empty {
            return Ok(self.group_json(before));
        }
        let id = group.id.to_string();
        let changed = people::update_group(self.app, self.identity, (None, &id), update).await?;
        Ok(self.group_json(&changed))
    }

    /// Deletes a group that gives no more than the token has.
    pub(super) async fn delete_group(&self, found: &GroupWithMembers) -> Result<(), ScimFailure> {
        check_rights(self.identity, &self.identity.tenant, &found.group.rights)?;
        let id = found.group.id.to_string();
        Ok(people::delete_group(self.app, self.identity, (None, &id)).await?)
    }

    /// Returns the ids of people of the tenant.
    async fn check_members(&self, ids: Vec<String>) -> Result<HashSet<ActorId>, ScimFailure> {
        if ids.is_empty() {
            return Ok(HashSet::new());
        }
        let ids_of = ids.iter().filter_map(|id| actor_id(id));
        let people = people::people_of(self.app, &self.identity.tenant, ids_of).await?;
        let check = |id: String| {
            actor_id(&id).filter(|id| people.contains(id)).ok_or_else(|| {
                let id = haft_core::problem::excerpt(&id, 60);
                ScimError::new(
                    ScimType::InvalidValue,
                    format!("invalid `members`: no user has the id `{id}`"),
                )
            })
        };
        Ok(ids.into_iter().map(check).collect::<Result<_, _>>()?)
    }

    /// Returns a group as SCIM shows it.
    pub(super) fn group_json(&self, found: &GroupWithMembers) -> Object {
        let group = &found.group;
        let members: Vec<Value> = users(found)
            .map(|actor| {
                let location = self.location(ResourceType::User, actor.id.0);
                json!({"value": actor.id.0, "$ref": location, "display": actor.name, "type": "User"})
            })
            .collect();
        let shown = [
            ("schemas", Some(json!([GROUP_SCHEMA]))),
            ("id", Some(json!(group.id.0))),
            ("externalId", group.external_id.clone().map(Value::from)),
            ("displayName", Some(group.name.clone().into())),
            ("members", Some(members.into())),
            (
                "meta",
                Some(json!({
                    "resourceType": ResourceType::Group.as_str(),
                    "created": group.created_at,
                    "lastModified": group.modified_at,
                    "location": self.location(ResourceType::Group, group.id.0),
                })),
            ),
        ];
        shown.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
    }
}

fn users(found: &GroupWithMembers) -> impl Iterator<Item = &ActorRecord> {
    found.members.iter().filter(|actor| is_user(actor))
}
