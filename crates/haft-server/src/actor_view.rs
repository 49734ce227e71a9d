//! People, service accounts and groups in API responses.

use std::collections::HashMap;

use haft_api::people::{
    ActorName, ActorView, GroupName, GroupView, InvitationView, ProvisionedView, RightsView,
};
use haft_core::actor::ActorRecord;
use haft_core::catalog::StoreError;
use haft_core::id::ActorId;
use haft_core::token::TokenRecord;
use haft_platform::Installation;
use haft_platform::login::LoginLink;
use haft_platform::people::{GroupWithMembers, Member};

/// The names of the people and service accounts that own tokens.
pub(crate) struct ActorNames(HashMap<ActorId, ActorName>);

impl ActorNames {
    /// Loads the owners of some tokens.
    pub(crate) async fn load<'a>(
        app: &Installation,
        tokens: impl IntoIterator<Item = &'a TokenRecord>,
    ) -> Result<Self, StoreError> {
        Self::of(app, tokens.into_iter().filter_map(|token| token.actor).collect()).await
    }

    /// Loads some of them.
    pub(crate) async fn of(app: &Installation, ids: Vec<ActorId>) -> Result<Self, StoreError> {
        let actors = app.store().access().actors_by_id(ids).await?;
        Ok(Self(actors.iter().map(|actor| (actor.id, name(actor))).collect()))
    }

    /// Returns the name of one of them.
    pub(crate) fn get(&self, id: ActorId) -> Option<ActorName> {
        self.0.get(&id).cloned()
    }
}

fn name(actor: &ActorRecord) -> ActorName {
    ActorName { id: actor.id.0, kind: actor.kind, name: actor.name.clone() }
}

/// Shows a person or a service account.
pub(crate) fn member(member: Member) -> ActorView {
    let status = member.status();
    let Member { actor, tenant, membership, groups, rights, provisioned, .. } = member;
    ActorView {
        id: actor.id.0,
        kind: actor.kind,
        name: actor.name,
        email: actor.email,
        description: actor.description,
        responsible: member.responsible.as_ref().map(name),
        status,
        tenant: tenant.to_string(),
        membership: RightsView::from(&membership),
        groups: groups.into_iter().map(|(id, name)| GroupName { id: id.0, name }).collect(),
        rights: RightsView::from(&rights),
        rate_limit: member.rate_limit.map(Into::into),
        is_shared: member.is_shared,
        is_suspended: member.is_suspended,
        provisioned: provisioned
            .map(|own| ProvisionedView { user_name: own.user_name, external_id: own.external_id }),
        tokens: member.tokens,
        sessions: member.sessions,
        created_at: actor.created_at,
        modified_at: actor.modified_at,
        last_seen_at: member.last_seen_at,
    }
}

/// Shows a group with its members.
pub(crate) fn group(found: GroupWithMembers) -> GroupView {
    let GroupWithMembers { group, members } = found;
    GroupView {
        id: group.id.0,
        name: group.name,
        description: group.description,
        tenant: group.tenant.to_string(),
        rights: RightsView::from(&group.rights),
        members: members.iter().map(name).collect(),
        is_provisioned: group.is_provisioned,
        created_at: group.created_at,
        modified_at: group.modified_at,
    }
}

/// Shows a link with which a person logs in.
pub(crate) fn invitation(origin: &str, link: &LoginLink) -> InvitationView {
    InvitationView { url: format!("{origin}{}", link.path.expose()), expires_at: link.record.expires_at }
}
