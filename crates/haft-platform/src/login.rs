//! Opening sessions: with a token, or with a single-use link of a token or a person.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use haft_core::actor::login_key;
use haft_core::catalog::StoreError;
use haft_core::hash;
use haft_core::id::ActorId;
use haft_core::login::{LoginLinkRecord, SessionRecord};
use haft_core::name::TenantId;
use haft_core::secret::Secret;

use crate::access::Token;
use crate::context::Context;
use crate::error::ServiceError;
use crate::random;

/// How long a login link works.
const LINK_LIFETIME: Duration = Duration::from_mins(10);
/// How long an invitation works.
const INVITATION_LIFETIME: Duration = Duration::from_hours(7 * 24);

/// A login link that was created.
pub struct LoginLink {
    /// The path with the code.
    pub path: Secret,
    pub record: LoginLinkRecord,
}

impl Context {
    /// Returns a URL that logs a browser in with the local token, once, within ten minutes.
    pub async fn login_link(&self, addr: SocketAddr) -> Result<Secret, StoreError> {
        let token_hash = hash::of_bytes(self.local_token().expose().as_bytes());
        let link = self.create_login_link(token_hash).await?;
        Ok(Secret::new(format!("http://{addr}{}", link.path.expose())))
    }

    /// Creates a login link for a token.
    pub async fn create_login_link(&self, token_hash: String) -> Result<LoginLink, StoreError> {
        let (code, record) = self.new_link(token_hash, LINK_LIFETIME)?;
        self.store().access().insert_login_link(record.clone()).await?;
        Ok(LoginLink { path: Secret::new(format!("/login?code={}", code.expose())), record })
    }

    /// Creates the link with which a person logs in; it replaces earlier ones. Its page has a button, so that a preview of
    /// the link does not use it up.
    pub async fn create_invitation(
        &self,
        person: ActorId,
        tenant: &TenantId,
    ) -> Result<LoginLink, StoreError> {
        let (code, record) = self.new_link(login_key(person, tenant), INVITATION_LIFETIME)?;
        self.store().access().replace_login_links(record.clone()).await?;
        Ok(LoginLink { path: Secret::new(format!("/login?invitation={}", code.expose())), record })
    }

    fn new_link(
        &self,
        token_hash: String,
        lifetime: Duration,
    ) -> Result<(Secret, LoginLinkRecord), StoreError> {
        let code = random::secret()?;
        let record = LoginLinkRecord {
            hash: hash::of_bytes(code.expose().as_bytes()),
            token_hash,
            expires_at: self.now() + lifetime,
        };
        Ok((code, record))
    }

    /// Uses a login link up; returns its token if that still gives access.
    pub async fn use_login_link(&self, code: &str) -> Result<Option<Arc<Token>>, StoreError> {
        let token_hash = self.store().access().take_login_link(&hash::of_bytes(code.as_bytes())).await?;
        Ok(token_hash.and_then(|hash| self.access().token_by_hash(&hash, self.now())))
    }

    /// Opens a session for a token; returns the value of its cookie. The session ends with the token at the latest.
    /// `issuer_session` is the hash of what the issuer of the login calls it.
    pub async fn open_session(
        &self,
        token: &Token,
        issuer_session: Option<String>,
    ) -> Result<(Secret, SessionRecord), ServiceError> {
        let value = random::secret()?;
        let now = self.now();
        let end =
            now.checked_add(self.settings().server.session_lifetime).unwrap_or(haft_core::Timestamp::MAX);
        let record = SessionRecord {
            hash: hash::of_bytes(value.expose().as_bytes()),
            token_hash: token.hash.clone(),
            created_at: now,
            expires_at: token.expires_at.map_or(end, |token_end| token_end.min(end)),
        };
        self.store().access().insert_session(record.clone(), issuer_session).await?;
        if let (None, Some(actor)) = (token.principal.token, &token.principal.actor) {
            self.store().access().activate_person(actor.id).await?;
        }
        self.reload_access().await?;
        Ok((value, record))
    }
}
