//! Sessions of the protocol versions before 2026-07-28: bounded in number and idle time, each for the token that
//! opened it.

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

use super::seat::{Owner, current};

/// How long a session may be silent. A call may take ten minutes, and must not end its own session.
const IDLE: Duration = Duration::from_mins(30);
/// How many sessions there are at once, and how many of them are of one token.
const MAX_COUNT: usize = 1000;
const MAX_OF_ONE: usize = 100;

type Error = LocalSessionManagerError;

/// Keeps the sessions. Where there are too many, the one that was silent for the longest time ends; its client
/// opens another.
pub(super) struct Sessions {
    local: LocalSessionManager,
    known: Mutex<HashMap<SessionId, Known>>,
    running: Running,
}

/// The requests that are not answered yet.
type Running = Arc<Mutex<HashSet<(SessionId, RequestId)>>>;

/// Forgets a request when its stream ends.
struct Answered {
    running: Running,
    request: (SessionId, RequestId),
}

impl Drop for Answered {
    fn drop(&mut self) {
        self.running.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.request);
    }
}

struct Known {
    owner: Owner,
    used: Instant,
    /// The protocol version that it speaks, once that was agreed on.
    version: Option<String>,
}

impl Known {
    /// Tells whether its version knows streams that begin with an empty event.
    fn is_primed(&self) -> bool {
        let first = ProtocolVersion::V_2025_11_25;
        self.version.as_deref().is_none_or(|version| version >= first.as_str())
    }
}

impl Default for Sessions {
    fn default() -> Self {
        let mut local = LocalSessionManager::default();
        local.session_config.keep_alive = Some(IDLE);
        Self { local, known: Mutex::default(), running: Running::default() }
    }
}

impl Sessions {
    /// Tells whether a session is there for its owner to use, and notes that it is used.
    pub(super) fn touch(&self, id: &str, owner: &Owner) -> bool {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let session = known.get_mut(id).filter(|session| session.owner == *owner);
        session.map(|session| session.used = Instant::now()).is_some()
    }

    /// Takes a session in; returns the one that has to go for it.
    fn enter(&self, id: SessionId, owner: Owner) -> Option<SessionId> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let own = known.values().filter(|session| session.owner == owner).count();
        let leaves = if own >= MAX_OF_ONE {
            oldest(&known, |session| session.owner == owner)
        } else if known.len() >= MAX_COUNT {
            oldest(&known, |_| true)
        } else {
            None
        };
        if let Some(id) = &leaves {
            known.remove(id);
        }
        known.insert(id, Known { owner, used: Instant::now(), version: None });
        leaves
    }

    /// Returns the protocol version that a session speaks.
    pub(super) fn version(&self, id: &str) -> Option<String> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).get(id)?.version.clone()
    }

    fn forget(&self, id: &SessionId) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
    }
}

fn oldest(known: &HashMap<SessionId, Known>, counts: impl Fn(&Known) -> bool) -> Option<SessionId> {
    let counted = known.iter().filter(|(_, session)| counts(session));
    counted.min_by_key(|(_, session)| session.used).map(|(id, _)| Arc::clone(id))
}

impl SessionManager for Sessions {
    type Error = Error;
    type Transport = WorkerTransport<LocalSessionWorker>;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), Error> {
        let (id, transport) = self.local.create_session().await?;
        // Without an owner nobody could use it.
        if let Some(leaves) = current().and_then(|seat| self.enter(Arc::clone(&id), seat.owner())) {
            self.local.close_session(&leaves).await?;
        }
        Ok((id, transport))
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, Error> {
        let answer = self.local.initialize_session(id, message).await?;
        if let ServerJsonRpcMessage::Response(response) = &answer
            && let ServerResult::InitializeResult(agreed) = &response.result
            && let Some(known) = self.known.lock().unwrap_or_else(PoisonError::into_inner).get_mut(id)
        {
            known.version = Some(agreed.protocol_version.to_string());
        }
        Ok(answer)
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, Error> {
        self.local.has_session(id).await
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), Error> {
        self.forget(id);
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
            // Of two answers with one id, one would find nobody, and its request would wait for ever.
            let why = ErrorData::invalid_request("a request with this id is still running", None);
            let refusal = ServerSseMessage::from_message(ServerJsonRpcMessage::error(why, Some(request.1)));
            return Ok(Either::Right(Either::Left(stream::once(ready(refusal)))));
        }
        let answered = Answered { running: Arc::clone(&self.running), request };
        let answers = self.local.create_stream(id, message).await?;
        let is_primed = {
            let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            known.get(id).is_none_or(Known::is_primed)
        };
        let kept = answers.filter(move |answer| {
            let _ = &answered;
            ready(is_primed || answer.message.is_some())
        });
        Ok(Either::Right(Either::Right(kept)))
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

    use super::super::seat::View;
    use super::*;

    fn owner(token: &str) -> Owner {
        Owner { tenant: TenantId::default_tenant(), token: token.into(), view: View::All }
    }

    #[test]
    fn a_session_is_for_its_owner() {
        let sessions = Sessions::default();
        assert_eq!(sessions.enter("s".into(), owner("a")), None);
        assert!(sessions.touch("s", &owner("a")));
        assert!(!sessions.touch("s", &owner("b")), "another token's");
        let elsewhere = Owner { view: View::Bundle("web".parse().unwrap()), ..owner("a") };
        assert!(!sessions.touch("s", &elsewhere), "another view's");
        assert!(!sessions.touch("t", &owner("a")), "never opened");
        sessions.forget(&"s".into());
        assert!(!sessions.touch("s", &owner("a")), "closed");
    }

    #[test]
    fn one_token_cannot_push_out_another() {
        let sessions = Sessions::default();
        sessions.enter("other".into(), owner("b"));
        for number in 0..MAX_OF_ONE {
            assert_eq!(sessions.enter(format!("{number}").into(), owner("a")), None);
        }
        assert!(sessions.touch("0", &owner("a")), "the first one is used again");
        assert_eq!(sessions.enter("more".into(), owner("a")).as_deref(), Some("1"));
        assert!(sessions.touch("other", &owner("b")));
    }

    #[test]
    fn there_are_only_so_many() {
        let sessions = Sessions::default();
        for number in 0..MAX_COUNT {
            assert_eq!(sessions.enter(format!("{number}").into(), owner(&format!("{}", number % 50))), None);
        }
        assert_eq!(sessions.enter("more".into(), owner("new")).as_deref(), Some("0"));
    }
}
