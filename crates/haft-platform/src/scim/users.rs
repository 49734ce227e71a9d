//! Users: people as members of a tenant.

use haft_core::actor::{ActorKind, ActorRecord, ActorStatus, LOCAL_OWNER, Provisioned};
use haft_core::outcome::ErrorCode;
use haft_scim::{ResourceType, USER_SCHEMA, UserFields};
use haft_store::MemberKey;
use serde_json::{Value, json};

use super::error::ScimFailure;
use super::provider::{Object, Scim, actor_id};
use crate::error::ServiceError;
use crate::people::{self, Directory, Member, MemberFields, MemberUpdate, RightsFields};

/// Returns whether somebody is a user of an identity provider: a person, but not the owner of the home folder.
pub(super) fn is_user(actor: &ActorRecord) -> bool {
    actor.kind == ActorKind::Person && actor.id != LOCAL_OWNER
}

impl Scim<'_> {
    /// Finds a user by id.
    pub(super) async fn user(&self, id: &str) -> Result<Member, ScimFailure> {
        let found = match actor_id(id) {
            Some(id) => self.member(MemberKey::Id(id)).await?,
            None => None,
        };
        found.ok_or_else(|| ServiceError::not_found("user", id).into())
    }

    /// Finds a person of the tenant.
    pub(super) async fn member(&self, key: MemberKey<'_>) -> Result<Option<Member>, ScimFailure> {
        let found = Directory::load_member(self.app, &self.identity.tenant, key).await?;
        Ok(found.filter(|member| is_user(&member.actor)))
    }

    /// Creates a user, with the rights of the settings.
    pub(super) async fn create_user(&self, body: &Object) -> Result<Object, ScimFailure> {
        let user = UserFields::read(body)?;
        let settings = &self.app.settings().scim;
        let rights = RightsFields {
            role: Some(settings.default_role.as_str().to_owned()),
            tools: Some((!settings.all_tools).then(Vec::new)),
            ..RightsFields::default()
        };
        let fields = MemberFields {
            name: shown_name(&user, None),
            email: user.email.clone(),
            rights,
            is_disabled: user.active == Some(false),
            provisioned: Some(provisioned(&user)),
            ..MemberFields::default()
        };
        let member = people::new_member(self.app, self.identity, ActorKind::Person, fields).await?;
        Ok(self.user_json(&member))
    }

    /// Gives a user the attributes of a body. What the body does not say about the access stays.
    pub(super) async fn change_user(&self, member: Member, body: &Object) -> Result<Object, ScimFailure> {
        let user = UserFields::read(body)?;
        let update = update_of(&member, &user);
        if is_empty(&update) {
            return Ok(self.user_json(&member));
        }
        self.check_may_change(&member).await?;
        let member = people::update(self.app, self.runs, self.identity, member, update).await?;
        Ok(self.user_json(&member))
    }

    /// Removes a user from the tenant.
    pub(super) async fn delete_user(&self, member: &Member) -> Result<(), ScimFailure> {
        self.check_may_change(member).await?;
        Ok(people::remove(self.app, self.runs, self.identity, member).await?)
    }

    /// Protects those on whom the access of the identity provider depends. That nobody changes people who may do more is
    /// a rule of [`people`].
    async fn check_may_change(&self, member: &Member) -> Result<(), ScimFailure> {
        let Some(own) = &self.identity.actor else { return Ok(()) };
        let is_responsible = match own.kind {
            ActorKind::Person => own.id == member.actor.id,
            ActorKind::ServiceAccount => {
                let own =
                    Directory::load_member(self.app, &self.identity.tenant, MemberKey::Id(own.id)).await?;
                own.is_some_and(|own| own.actor.responsible == Some(member.actor.id))
            }
        };
        if is_responsible {
            let message = format!(
                "`{}` is responsible for the token of the identity provider, so it cannot change this person; \
                 an admin of haft can",
                member.actor.name
            );
            return Err(ServiceError::new(ErrorCode::Forbidden, message).into());
        }
        Ok(())
    }

    /// Returns a user as SCIM shows it.
    pub(super) fn user_json(&self, member: &Member) -> Object {
        let actor = &member.actor;
        let provisioned = member.provisioned.as_ref();
        let mut name = Object::from_iter([("formatted".to_owned(), Value::from(actor.name.as_str()))]);
        let parts = [
            ("givenName", provisioned.and_then(|provisioned| provisioned.given_name.as_ref())),
            ("familyName", provisioned.and_then(|provisioned| provisioned.family_name.as_ref())),
        ];
        for (key, value) in parts.into_iter().filter_map(|(key, value)| Some((key, value?))) {
            name.insert(key.to_owned(), Value::from(value.as_str()));
        }
        let emails: Vec<Value> = actor
            .email
            .iter()
            .map(|email| json!({"value": email, "type": "work", "primary": true}))
            .collect();
        let groups: Vec<Value> = member
            .groups
            .iter()
            .map(|(id, name)| {
                let location = self.location(ResourceType::Group, id.0);
                json!({"value": id.0, "$ref": location, "display": name, "type": "direct"})
            })
            .collect();
        let user = [
            ("schemas", Some(json!([USER_SCHEMA]))),
            ("id", Some(json!(actor.id.0))),
            (
                "externalId",
                provisioned.and_then(|provisioned| provisioned.external_id.clone()).map(Value::from),
            ),
            ("userName", Some(user_name(member).into())),
            ("name", Some(Value::Object(name))),
            ("displayName", Some(actor.name.clone().into())),
            ("emails", Some(emails.into())),
            ("active", Some(is_active(member).into())),
            ("groups", Some(groups.into())),
            (
                "meta",
                Some(json!({
                    "resourceType": ResourceType::User.as_str(),
                    "created": actor.created_at,
                    "lastModified": actor.modified_at,
                    "location": self.location(ResourceType::User, actor.id.0),
                })),
            ),
        ];
        user.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
    }
}

/// Returns the name with which the identity provider identifies a user; what serves as one if it has not said it.
fn user_name(member: &Member) -> String {
    let own = member.provisioned.as_ref().map(|provisioned| provisioned.user_name.clone());
    own.or_else(|| member.actor.email.clone()).unwrap_or_else(|| member.actor.id.to_string())
}

fn is_active(member: &Member) -> bool {
    member.status() != ActorStatus::Disabled
}

fn provisioned(user: &UserFields) -> Provisioned {
    Provisioned {
        user_name: user.user_name.clone(),
        external_id: user.external_id.clone(),
        given_name: user.given_name.clone(),
        family_name: user.family_name.clone(),
    }
}

/// Returns what differs. Name, address and status of a person who is a member of other tenants belong to all of them:
/// there the access to this tenant is all that changes.
fn update_of(member: &Member, user: &UserFields) -> MemberUpdate {
    let new = provisioned(user);
    let is_new = member.provisioned.as_ref() != Some(&new);
    let provisioned = is_new.then_some(new);
    let active = user.active.filter(|active| *active != is_active(member));
    if member.is_shared {
        return MemberUpdate {
            provisioned,
            is_suspended: active.map(|active| !active),
            ..MemberUpdate::default()
        };
    }
    let name = shown_name(user, Some(member));
    let email = user.email.clone().filter(|email| !email.is_empty());
    MemberUpdate {
        name: (name != member.actor.name).then_some(name),
        email: (email != member.actor.email).then(|| email.unwrap_or_default()),
        status: active.map(|active| if active { ActorStatus::Active } else { ActorStatus::Disabled }),
        provisioned,
        ..MemberUpdate::default()
    }
}

fn is_empty(update: &MemberUpdate) -> bool {
    update.name.is_none()
        && update.email.is_none()
        && update.status.is_none()
        && update.is_suspended.is_none()
        && update.provisioned.is_none()
}

/// Returns the name to show: the one that is meant to be shown, the whole one, its parts, or the user name.
fn shown_name(user: &UserFields, before: Option<&Member>) -> String {
    let parts = joined(user.given_name.as_deref(), user.family_name.as_deref());
    // A name that was made of the parts follows them.
    let follows_parts = before.is_some_and(|member| {
        let provisioned = member.provisioned.as_ref();
        let parts = provisioned.and_then(|own| joined(own.given_name.as_deref(), own.family_name.as_deref()));
        parts.as_deref() == Some(member.actor.name.as_str())
            && user.display_name.as_ref() == Some(&member.actor.name)
    });
    let whole = user.display_name.clone().or_else(|| user.formatted_name.clone());
    let whole = whole.filter(|_| !(follows_parts && parts.is_some()));
    whole.or(parts).unwrap_or_else(|| user.user_name.clone())
}

fn joined(given: Option<&str>, family: Option<&str>) -> Option<String> {
    let parts: Vec<&str> = [given, family].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(" "))
}
