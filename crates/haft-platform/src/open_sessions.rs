//! Open sessions of browsers: those of the caller, and for admins those of a person; ending one of them.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

use haft_core::actor::{ActorKind, login_key};
use haft_core::login::SessionRecord;

use crate::audit;
use crate::context::Context;
use crate::error::ServiceError;
use crate::identity::Identity;
use crate::people::{self, Member};
use crate::rights::{check_rights, forbidden};

/// The length of an id: that of a part of the hash, which nobody can make a cookie of.
const ID_LENGTH: usize = 32;

/// A session that is open.
#[derive(Debug, Clone)]
pub struct OpenSession {
    pub record: SessionRecord,
    /// The token that opened it; `None` after a login of a person.
    pub token_name: Option<String>,
    /// Whether the request comes from it.
    pub is_current: bool,
}

impl OpenSession {
    /// Returns what names the session in the API.
    pub fn id(&self) -> &str {
        self.record.hash.get(..ID_LENGTH).unwrap_or_default()
    }
}

/// Lists the sessions of the caller, or those of a person of the tenant, newest first.
pub async fn list(
    app: &Context,
    identity: &Identity,
    person: Option<&str>,
) -> Result<Vec<OpenSession>, ServiceError> {
    let member = other_person(app, identity, person).await?;
    sessions_of(app, identity, member.as_ref()).await
}

/// Ends a session of the caller, or one of a person of the tenant.
pub async fn end(
    app: &Arc<Context>,
    identity: &Identity,
    (person, id): (Option<&str>, &str),
) -> Result<(), ServiceError> {
    if identity.is_application() {
        return Err(forbidden("an application that a person has connected ends no sessions"));
    }
    let member = other_person(app, identity, person).await?;
    if let Some(member) = &member {
        // Nobody ends those of people who may do more.
        check_rights(identity, &member.tenant, &member.rights)?;
    }
    let sessions = sessions_of(app, identity, member.as_ref()).await?;
    let found = sessions.into_iter().find(|session| session.id() == id);
    let Some(session) = found else { return Err(ServiceError::not_found("session", id)) };
    app.store().access().delete_session(session.record.hash).await?;
    app.reload_access().await?;
    let name = member.as_ref().map_or(&*identity.name, |member| member.actor.name.as_str());
    audit::note(identity, "session.end", name);
    Ok(())
}

/// Returns the person that a request names; `None` if it is the caller.
async fn other_person(
    app: &Context,
    identity: &Identity,
    person: Option<&str>,
) -> Result<Option<Member>, ServiceError> {
    let is_own = |named: &str| identity.actor.as_ref().is_some_and(|own| own.id.to_string() == named);
    match person {
        Some(person) if person != "me" && !is_own(person) => {
            Ok(Some(people::find(app, identity, ActorKind::Person, (None, person)).await?))
        }
        _ => Ok(None),
    }
}

async fn sessions_of(
    app: &Context,
    identity: &Identity,
    member: Option<&Member>,
) -> Result<Vec<OpenSession>, ServiceError> {
    let openers = openers(app, identity, member).await?;
    let current = identity.session().map(|session| session.hash.as_str());
    let sessions = app.store().access().sessions().await?;
    let mut found: Vec<OpenSession> = sessions
        .into_iter()
        .filter_map(|record| {
            let token_name = openers.get(&record.token_hash)?.clone();
            let is_current = current == Some(record.hash.as_str());
            Some(OpenSession { record, token_name, is_current })
        })
        .collect();
    found.sort_by_key(|session| Reverse(session.record.created_at));
    Ok(found)
}

/// Returns what opens sessions of somebody: the login of a person, and tokens with their names.
async fn openers(
    app: &Context,
    identity: &Identity,
    member: Option<&Member>,
) -> Result<HashMap<String, Option<String>>, ServiceError> {
    let own = identity.actor.as_ref().filter(|actor| !actor.is_reduced).map(|actor| actor.id);
    let Some(actor) = member.map(|member| member.actor.id).or(own) else {
        // A token that has no owner, or less than its owner, knows only its own sessions.
        let token = identity.token().map(|token| (token.hash.clone(), Some(identity.name.to_string())));
        return Ok(token.into_iter().collect());
    };
    let tokens = app.store().access().tokens().await?.into_iter();
    let tokens = tokens.filter(|token| token.actor == Some(actor) && token.tenant == identity.tenant);
    let mut openers: HashMap<_, _> = tokens.map(|token| (token.hash, Some(token.name))).collect();
    openers.insert(login_key(actor, &identity.tenant), None);
    Ok(openers)
}
