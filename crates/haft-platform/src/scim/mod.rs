//! SCIM 2.0: an identity provider creates, changes and removes the people and groups of a tenant.
//!
//! This module says what users and groups of SCIM are in haft and who may change them; haft-scim reads filters and
//! patches. Rights are never changed: those of a new user come from the settings, those of a group from an admin.

mod error;
mod groups;
mod list;
mod users;

use std::sync::Arc;

use haft_core::id::{ActorId, GroupId};
use haft_core::token::Role;
use haft_scim::ResourceType;
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::context::Context;
use crate::identity::Identity;
use crate::runs::RunEngine;

pub use error::ScimFailure;
pub use list::ListQuery;

/// A JSON object.
type Object = Map<String, Value>;

/// The requests of one identity provider.
pub struct Scim<'a> {
    app: &'a Arc<Context>,
    runs: &'a RunEngine,
    identity: &'a Identity,
    /// The URL that the paths of resources are appended to.
    base: &'a str,
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

    fn location(&self, resource: ResourceType, id: Uuid) -> String {
        format!("{}/{}/{id}", self.base, resource.path())
    }
}

/// Reads the id of a user; what is none is nobody's.
fn actor_id(text: &str) -> Option<ActorId> {
    Uuid::try_parse(text).ok().map(ActorId)
}

fn group_id(text: &str) -> Option<GroupId> {
    Uuid::try_parse(text).ok().map(GroupId)
}
