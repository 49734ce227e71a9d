//! Who makes a request, and what it may do.

use std::ops::Deref;
use std::sync::Arc;

use haft_core::application::is_grant_key;
use haft_core::executor::CallContext;
use haft_core::login::SessionRecord;
use haft_core::name::TenantId;
use haft_core::outcome::ErrorCode;
use haft_core::principal::Principal;
use haft_core::token::Role;

use crate::access::Token;
use crate::context::Context;
use crate::error::ServiceError;

/// The authenticated principal of a request.
#[derive(Debug, Clone)]
pub struct Identity {
    principal: Arc<Principal>,
    /// The token; `None` if a tool makes the request.
    token: Option<Arc<Token>>,
    /// The session, if a browser makes the request.
    session: Option<Arc<SessionRecord>>,
}

impl Identity {
    /// Returns the identity of the caller of a tool.
    pub fn from_call(call: &CallContext) -> Self {
        Self { principal: Arc::clone(call.principal()), token: None, session: None }
    }

    /// Returns the identity of a principal that another surface has authenticated.
    pub fn from_principal(principal: Arc<Principal>) -> Self {
        Self { principal, token: None, session: None }
    }

    /// Returns the identity that a token gives.
    pub fn from_token(token: Arc<Token>) -> Self {
        Self { principal: Arc::clone(&token.principal), token: Some(token), session: None }
    }

    /// Returns the identity of a browser that a token has logged in.
    pub fn from_session(token: Arc<Token>, session: SessionRecord) -> Self {
        Self { session: Some(Arc::new(session)), ..Self::from_token(token) }
    }

    /// Returns the principal, for the pipeline.
    pub fn principal(&self) -> Arc<Principal> {
        Arc::clone(&self.principal)
    }

    /// Returns the token.
    pub fn token(&self) -> Option<&Arc<Token>> {
        self.token.as_ref()
    }

    /// Returns whether an application that a person has connected makes the request.
    pub fn is_application(&self) -> bool {
        self.token.as_ref().is_some_and(|token| is_grant_key(&token.hash))
    }

    /// Returns the session of a browser.
    pub fn session(&self) -> Option<&SessionRecord> {
        self.session.as_deref()
    }

    /// Completes when an open stream has to end: the token or the session no longer gives access, or the server stops.
    pub fn stream_end(&self, app: &Arc<Context>) -> impl Future<Output = ()> + Send + 'static {
        let (app, token, session) = (Arc::clone(app), self.token.clone(), self.session.clone());
        async move {
            let stopping = app.events().stopping().clone();
            let token_ends = async {
                match &token {
                    Some(token) => app.access().revoked(token, || app.now()).await,
                    None => std::future::pending().await,
                }
            };
            let session_ends = async {
                match &session {
                    Some(session) => session_ends(&app, session).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = stopping.cancelled() => {}
                () = token_ends => {}
                () = session_ends => {}
            }
        }
    }

    /// Rejects a token whose role is too low.
    pub fn require(&self, role: Role) -> Result<(), ServiceError> {
        if self.role >= role {
            return Ok(());
        }
        let message = format!("role `{}` required; the token has `{}`", role.as_str(), self.role.as_str());
        let error = ServiceError::new(ErrorCode::Forbidden, message);
        Err(ServiceError { required_role: Some(role), ..error })
    }

    /// Rejects a token with an allow-list of tools, for requests that concern all tools.
    pub fn require_all_tools(&self, action: &str) -> Result<(), ServiceError> {
        if self.tools.is_unlimited() {
            return Ok(());
        }
        let message = format!("the token has an allow-list of tools; to {action}, use one without");
        Err(ServiceError::new(ErrorCode::Forbidden, message))
    }

    /// Returns whether it administers the platform.
    pub fn is_platform_admin(&self) -> bool {
        self.platform && self.role == Role::Admin
    }

    /// Rejects everybody but platform admins.
    pub fn require_platform(&self) -> Result<(), ServiceError> {
        if self.is_platform_admin() {
            return Ok(());
        }
        Err(ServiceError::new(ErrorCode::Forbidden, "platform admin required; the token has no `platform`"))
    }

    /// Rejects a change to what an owner has: an editor changes what belongs to its tenant, a platform admin also what is
    /// global.
    pub fn require_editor_of(&self, owner: &TenantId) -> Result<(), ServiceError> {
        self.require(Role::Editor)?;
        if !owner.is_global() || self.is_platform_admin() {
            return Ok(());
        }
        let message = "built-in tools belong to all tenants; only a platform admin can change them";
        Err(ServiceError::new(ErrorCode::Forbidden, message))
    }
}

impl Deref for Identity {
    type Target = Principal;

    fn deref(&self) -> &Principal {
        &self.principal
    }
}

/// Completes when a session has expired or its browser has logged out, on whatever node.
async fn session_ends(app: &Context, session: &SessionRecord) {
    loop {
        // One that another node has just opened is not in memory yet.
        let is_open = app.now() < session.expires_at
            && (app.access().session(&session.hash, app.now()).is_some()
                || !matches!(app.store().access().find_session(&session.hash).await, Ok(None)));
        if !is_open {
            return;
        }
        app.access().changed().await;
    }
}
