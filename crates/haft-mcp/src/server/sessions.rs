//! Sessions of the protocol versions before 2026-07-28. Their number and idle time are limited, and only the token that
//! opened a session can use it.

use std::collections::{HashMap, HashSet};
use std::future::ready;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures_util::future::Either;
use futures_util::{Stream, StreamExt as _, stream};
use rmcp::ErrorData;
use rmcp::model::{ClientJsonRpcMessage, ProtocolVersion, RequestId, ServerJsonRpcMessage, ServerResult};
use rmcp::transport::WorkerTransport;
use rmcp::transport::streamable_http_server::session::local::{
    LocalSessionManager, LocalSessionManagerError, LocalSessionWorker,
};
use rmcp::transport::streamable_http_server::session::{ServerSseMessage, SessionId, SessionManager};

use super::client_context::{SessionKey, current};
use super::direct_response;

/// How long a session may be idle. Longer than the longest call, which must not end its own session.
const IDLE_TIMEOUT: Duration = Duration::from_hours(2);
/// How many sessions can be open.
const MAX_SESSIONS: usize = 1000;
/// How many of them can belong to one owner.
const MAX_PER_OWNER: usize = 100;

type Error = LocalSessionManagerError;

/// The open sessions. Above the limit, the session that was idle for the longest time is closed; its client opens
/// another.
pub(super) struct Sessions {
    local: LocalSessionManager,
    open: Mutex<HashMap<SessionId, Session>>,
    running: RunningRequests,
}

/// The requests without a response yet.
type RunningRequests = Arc<Mutex<HashSet<(SessionId, RequestId)>>>;

/// Removes a request from the running ones when its stream ends.
struct RequestGuard {
    running: RunningRequests,
    request: (SessionId, RequestId),
}

impl Drop for RequestGuard {
    fn drop(&mut self) {
        self.running.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.request);
    }
}

struct Session {
    owner: SessionKey,
    last_used: Instant,
    /// The protocol version, once it is negotiated.
    version: Option<String>,
}

impl Session {
    /// Returns whether streams of its version begin with an empty event.
    fn is_primed(&self) -> bool {
        let first = ProtocolVersion::V_2025_11_25;
        self.version.as_deref().is_none_or(|version| version >= first.as_str())
    }
}

impl Default for Sessions {
    fn default() -> Self {
        let mut local = LocalSessionManager::default();
        local.session_config.keep_alive = Some(IDLE_TIMEOUT);
        Self { local, open: Mutex::default(), running: RunningRequests::default() }
    }
}

impl Sessions {
    /// Marks a session as used; returns `false` where there is no such session of this owner.
    pub(super) fn touch(&self, id: &str, owner: &SessionKey) -> bool {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let session = open.get_mut(id).filter(|session| session.owner == *owner);
        session.map(|session| session.last_used = Instant::now()).is_some()
    }

    /// Adds a session; returns the one to close for it.
    fn add(&self, id: SessionId, owner: SessionKey) -> Option<SessionId> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let own = open.values().filter(|session| session.owner == owner).count();
        let evicted = if own >= MAX_PER_OWNER {
            oldest(&open, |session| session.owner == owner)
        } else if open.len() >= MAX_SESSIONS {
            oldest(&open, |_| true)
        } else {
            None
        };
        if let Some(id) = &evicted {
            open.remove(id);
        }
        open.insert(id, Session { owner, last_used: Instant::now(), version: None });
        evicted
    }

    /// Returns the protocol version of a session.
    pub(super) fn version(&self, id: &str) -> Option<String> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).get(id)?.version.clone()
    }

    fn remove(&self, id: &SessionId) {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
    }
}

fn oldest(open: &HashMap<SessionId, Session>, filter: impl Fn(&Session) -> bool) -> Option<SessionId> {
    let candidates = open.iter().filter(|(_, session)| filter(session));
    candidates.min_by_key(|(_, session)| session.last_used).map(|(id, _)| Arc::clone(id))
}

impl SessionManager for Sessions {
    type Error = Error;
    type Transport = WorkerTransport<LocalSessionWorker>;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), Error> {
        let (id, transport) = self.local.create_session().await?;
        // A session without an owner could not be used.
        if let Some(evicted) = current().and_then(|client| self.add(Arc::clone(&id), client.session_key())) {
            self.local.close_session(&evicted).await?;
        }
        Ok((id, transport))
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, Error> {
        let response_message = self.local.initialize_session(id, message).await?;
        if let ServerJsonRpcMessage::Response(response) = &response_message
            && let ServerResult::InitializeResult(result) = &response.result
            && let Some(session) = self.open.lock().unwrap_or_else(PoisonError::into_inner).get_mut(id)
        {
            session.version = Some(result.protocol_version.to_string());
        }
        Ok(response_message)
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, Error> {
        self.local.has_session(id).await
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), Error> {
        self.remove(id);
        self.local.close_session(id).await
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Error> {
        let ClientJsonRpcMessage::Request(request) = &message else {
            return Ok(Either::Left(self.local.create_stream(id, message).await?));
        };
        let request = (Arc::clone(id), request.id.clone());
        let is_new = self.running.lock().unwrap_or_else(PoisonError::into_inner).insert(request.clone());
        if !is_new {
            // rmcp routes responses by id, so one of the two requests would never get its own.
            let error = ErrorData::invalid_request("a request with this id is still running", None);
            let message = ServerSseMessage::from_message(ServerJsonRpcMessage::error(error, Some(request.1)));
            return Ok(Either::Right(Either::Left(stream::once(ready(message)))));
        }
        let guard = RequestGuard { running: Arc::clone(&self.running), request };
        let messages = self.local.create_stream(id, message).await?;
        let is_primed = {
            let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
            open.get(id).is_none_or(Session::is_primed)
        };
        let messages = messages.filter(move |message| {
            let _ = &guard;
            ready(is_primed || message.message.is_some())
        });
        Ok(Either::Right(Either::Right(direct_response::divert(messages).await)))
    }

    async fn accept_message(&self, id: &SessionId, message: ClientJsonRpcMessage) -> Result<(), Error> {
        self.local.accept_message(id, message).await
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Error> {
        self.local.create_standalone_stream(id).await
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Error> {
        self.local.resume(id, last_event_id).await
    }
}

#[cfg(test)]
mod tests {
    use haft_core::name::TenantId;

    use super::super::client_context::View;
    use super::*;

    fn owner(token: &str) -> SessionKey {
        SessionKey { tenant: TenantId::default_tenant(), principal: token.into(), view: View::All }
    }

    #[test]
    fn a_session_belongs_to_its_owner() {
        let sessions = Sessions::default();
        assert_eq!(sessions.add("s".into(), owner("a")), None);
        assert!(sessions.touch("s", &owner("a")));
        assert!(!sessions.touch("s", &owner("b")), "another token's");
        let other_view = SessionKey { view: View::Bundle("web".parse().unwrap()), ..owner("a") };
        assert!(!sessions.touch("s", &other_view), "another view's");
        assert!(!sessions.touch("t", &owner("a")), "never opened");
        sessions.remove(&"s".into());
        assert!(!sessions.touch("s", &owner("a")), "closed");
    }

    #[test]
    fn one_token_cannot_evict_another() {
        let sessions = Sessions::default();
        sessions.add("other".into(), owner("b"));
        for number in 0..MAX_PER_OWNER {
            assert_eq!(sessions.add(format!("{number}").into(), owner("a")), None);
        }
        assert!(sessions.touch("0", &owner("a")), "the first one is used again");
        assert_eq!(sessions.add("more".into(), owner("a")).as_deref(), Some("1"));
        assert!(sessions.touch("other", &owner("b")));
    }

    #[test]
    fn the_number_of_sessions_is_limited() {
        let sessions = Sessions::default();
        for number in 0..MAX_SESSIONS {
            assert_eq!(sessions.add(format!("{number}").into(), owner(&format!("{}", number % 50))), None);
        }
        assert_eq!(sessions.add("more".into(), owner("new")).as_deref(), Some("0"));
    }
}
