//! The requests of an identity provider: which resource they concern, and who may send them.

use std::sync::Arc;

use haft_core::id::{ActorId, GroupId};
use haft_core::token::Role;
use haft_scim::ResourceType;
use serde_json::{Map, Value};
use uuid::Uuid;

use super::error::ScimFailure;
use crate::context::Context;
use crate::identity::Identity;
use crate::runs::RunEngine;

/// A JSON object.
pub(super) type Object = Map<String, Value>;

/// The requests of one identity provider.
pub struct Scim<'a> {
    pub(super) app: &'a Arc<Context>,
    pub(super) runs: &'a RunEngine,
    pub(super) identity: &'a Identity,
    /// The URL that the paths of resources are appended to.
    pub(super) base: &'a str,
}

impl<'a> Scim<'a> {
    /// Checks that a token may manage people.
    pub fn new(
        app: &'a Arc<Context>,
        runs: &'a RunEngine,
        identity: &'a Identity,
        base: &'a str,
    ) -> Result<Self, ScimFailure> {
        identity.require(Role::Admin)?;
        Ok(Self { app, runs, identity, base })
    }

    /// Returns a user or a group.
    pub async fn get(&self, resource: ResourceType, id: &str) -> Result<Object, ScimFailure> {
        match resource {
            ResourceType::User => Ok(self.user_json(&self.user(id).await?)),
            ResourceType::Group => Ok(self.group_json(&self.group(id).await?)),
        }
    }

    /// Creates a user or a group.
    pub async fn create(&self, resource: ResourceType, body: &Object) -> Result<Object, ScimFailure> {
        match resource {
            ResourceType::User => self.create_user(body).await,
            ResourceType::Group => self.create_group(body).await,
        }
    }

    /// Replaces a user or a group.
    pub async fn replace(
        &self,
        resource: ResourceType,
        id: &str,
        body: &Object,
    ) -> Result<Object, ScimFailure> {
        match resource {
            ResourceType::User => self.change_user(self.user(id).await?, body).await,
            ResourceType::Group => self.change_group(&self.group(id).await?, body).await,
        }
    }

    /// Changes parts of a user or a group.
    pub async fn patch(
        &self,
        resource: ResourceType,
        id: &str,
        body: &Object,
    ) -> Result<Object, ScimFailure> {
        match resource {
            ResourceType::User => {
                let member = self.user(id).await?;
                let mut user = self.user_json(&member);
                haft_scim::patch(resource, &mut user, body)?;
                self.change_user(member, &user).await
            }
            ResourceType::Group => {
                let group = self.group(id).await?;
                let mut patched = self.group_json(&group);
                haft_scim::patch(resource, &mut patched, body)?;
                self.change_group(&group, &patched).await
            }
        }
    }

    /// Removes a user from the tenant, or deletes a group.
    pub async fn delete(&self, resource: ResourceType, id: &str) -> Result<(), ScimFailure> {
        match resource {
            ResourceType::User => self.delete_user(&self.user(id).await?).await,
            ResourceType::Group => self.delete_group(&self.group(id).await?).await,
        }
    }

    pub(super) fn location(&self, resource: ResourceType, id: Uuid) -> String {
        format!("{}/{}/{id}", self.base, resource.path())
    }
}

/// Parses the id of a user; an invalid id matches nobody.
pub(super) fn actor_id(text: &str) -> Option<ActorId> {
    Uuid::try_parse(text).ok().map(ActorId)
}

pub(super) fn group_id(text: &str) -> Option<GroupId> {
    Uuid::try_parse(text).ok().map(GroupId)
}
